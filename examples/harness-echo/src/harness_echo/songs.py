"""A list: `harness list tasks --songs [WORD]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

SONGS = {"cuckoo": "two notes, over and over", "frere_jacques": "a canon for four voices"}


def songs(options: argparse.Namespace) -> int:
    """Print the songs whose names contain the word. Returns the exit code."""
    for name, about in SONGS.items():
        if options.songs in name:
            print(f"{name:<14} {about}")
    return 0
