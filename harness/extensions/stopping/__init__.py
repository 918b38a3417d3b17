"""Runs that end once a number is known well enough."""
