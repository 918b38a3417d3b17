"""Checks of a plan before it runs: whether it fits together (`consistency`), and what it takes (`estimate`)."""
