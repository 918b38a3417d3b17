"""Figures that papers have published, beside a run's own."""
