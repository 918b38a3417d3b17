"""Runs in workers of a Ray cluster."""
