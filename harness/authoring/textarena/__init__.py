"""TextArena's environments: which there are, and games of them as frozen worlds."""

from . import catalog
from .live import LiveGame, Position
from .moves import listed
from .world import ExampleGame, TextWorld

__all__ = ["ExampleGame", "LiveGame", "Position", "TextWorld", "catalog", "listed"]
