"""Runs side by side: comparisons, leaderboards, effects of a study's choices, figures that papers have published."""
