"""All functions of expressions, by name."""

from . import _lists, _numbers, _texts  # noqa: F401  (they register their functions)
from ._registered import FUNCTIONS

__all__ = ["FUNCTIONS"]
