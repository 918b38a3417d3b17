"""Runs side by side: comparisons of two, standings, leaderboards over many."""
