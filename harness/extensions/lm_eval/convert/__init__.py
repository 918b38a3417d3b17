"""Specs of this project for tasks of other harnesses."""

from .lm_eval import Conversion, Note, convert

__all__ = ["Conversion", "Note", "convert"]
