"""TextArena's environments: which there are, and games of them as frozen worlds."""

from . import catalog
from .clocked import ClockedGame
from .live import LiveGame, Position
from .moves import listed
from .public import Public
from .world import ExampleGame, TextWorld

__all__ = ["ClockedGame", "ExampleGame", "LiveGame", "Position", "Public", "TextWorld", "catalog", "listed"]
