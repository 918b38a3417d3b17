"""Pools of contestants, pairings, ratings, cross-play."""
