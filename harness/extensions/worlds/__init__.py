"""Stepped tasks: a frozen world, and what actions make of it."""

from .tasks import SteppedTask, World

__all__ = ["SteppedTask", "World"]
