"""harness: declarative evaluation of groups of language models."""

__version__ = "0.1.0"
