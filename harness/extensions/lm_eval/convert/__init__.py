"""Specs of this project for tasks of other harnesses."""

from .lm_eval import Converted, Note, convert

__all__ = ["Converted", "Note", "convert"]
