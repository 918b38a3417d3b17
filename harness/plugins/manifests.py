"""The extensions that are here: what each adds to the core, read from its `extension.toml` without importing it.

Those of `harness/extensions/`, and those of installed packages. docs/reference/extensions.md describes the file.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.plugins.extension import GROUP, MANIFEST, SHIPPED, Extension, Offer, core, read

if TYPE_CHECKING:
    from harness.plugins.installed import BrokenExtension


@functools.cache
def extensions() -> Mapping[str, Extension]:
    """Name → usable extension, in order of names: without mistakes, and all extensions that it needs are usable."""
    here = dict(all_extensions())
    while lame := [name for name, one in here.items() if not here.keys() >= {*one.needs}]:
        for name in lame:
            del here[name]
    return here


def of_third_parties() -> dict[str, Extension]:
    """Name → usable extension that does not ship with the harness."""
    return {name: one for name, one in extensions().items() if not one.file.is_relative_to(SHIPPED)}


def all_extensions() -> Mapping[str, Extension]:
    """As `extensions`, and also those that need an extension which is missing."""
    return read_all()[0]


@functools.cache
def read_all() -> tuple[Mapping[str, Extension], tuple[BrokenExtension, ...]]:
    """The extensions whose manifests are correct, and the third-party extensions that are disabled."""
    ours = {file.parent.name: read(f"{GROUP}.{file.parent.name}", file) for file in shipped()}
    if not some_installed():  # reading the metadata of all packages takes longer than all else at a start
        return ours, ()
    from harness.plugins.installed import beside

    return beside(ours)


@functools.cache
def offers(point: str) -> Mapping[str, Offer]:
    """Name → what the core or an extension offers at a point, such as "commands"; the core's come first."""
    every = [
        (one, name, value) for one in (core(), *extensions().values()) for name, value in one.points[point].items()
    ]
    return {name: Offer(one, point, name, value) for one, name, value in every}


# ----------------------------------------------------------------------------------------- reading


def shipped() -> list[Path]:
    """The manifests of the extensions that ship."""
    return sorted(SHIPPED.glob(f"*/{MANIFEST}"))


def some_installed() -> bool:
    """Whether some installed package has an entry point of the group."""
    texts = (file for path in sys.path for file in Path(path).glob("*.dist-info/entry_points.txt"))
    return any(f"[{GROUP}]" in file.read_text("utf-8", "replace") for file in texts)


def is_installed(package: str) -> bool:
    """Whether a package can be imported, as far as that shows without importing it."""
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # the package around it is missing
        return False
