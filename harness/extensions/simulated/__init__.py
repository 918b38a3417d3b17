"""Policies that know the right answer, and the mark that results of such players have."""
