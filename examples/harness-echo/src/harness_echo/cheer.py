"""A kind of plugin: files of `registry/cheers/` have a class that derives from `Cheer`."""

from __future__ import annotations


class Cheer:
    """What to say first. Fields are YAML parameters, as of every plugin.

    Attributes:
        times: how often.
    """

    times: int = 1
