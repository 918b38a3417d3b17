"""What runs before a run: whether a plan fits together (`plans`), and an estimate of its requests (`estimate`)."""

from harness.runtime.steps import Drive, drive

from .plans import examine, misassigned

__all__ = ["Drive", "drive", "examine", "misassigned"]
