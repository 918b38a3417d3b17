"""Judges of finished episodes: runs of their own in the folder of the run that they judge, and what becomes of them.

Begin with `after`, which the core calls.
"""
