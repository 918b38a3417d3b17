"""The version, for the package and for what a run records. Only here is it set."""

__version__ = "0.7.0"
