"""Runs that others can check: a file of what it takes to check one, and the check. Begin with `check.py`."""
