"""Games as stepped tasks: returns, chance from the seed, one rule for invalid moves. Stepped tasks are in `worlds`."""

from .tasks import GameTask, Invalid, legal_instead, player_names

__all__ = ["GameTask", "Invalid", "legal_instead", "player_names"]
