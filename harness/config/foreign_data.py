"""The files and folders that a foreign spec would put into prompts. Loaded for such specs alone."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from harness.config.keys import keys_of
from harness.config.project import Project
from harness.config.spec import Spec, data_roots
from harness.plugins import approvals
from harness.plugins.needed_approval import NeededApproval

_MAX_PATH_CHARS = 4096
"""Characters of a path."""
_MAX_MATCHES = 100
"""Matches of a part of a pattern that are followed."""
_MAGIC = re.compile(r"[*?\[]")
_PROSE = re.compile(r"\[[^]]*\s[^]]*\]")
"""A text in brackets: as a pattern it would match names of one character alone.

It is a text only as the last part of what holds no other pattern and no `..`: the parts behind it could be any."""
_PRESENTATION_KEYS = frozenset({"name", "description", "tables", "headline", "cluster"})
"""Keys of specs that no plugin of an episode gets."""
_PATHS = frozenset({"data_files", "data_dir", "dataset_path"})
"""Parameters that hold paths: a bare word counts too where it names something."""


def readings(spec: Spec, project: Project) -> list[NeededApproval]:
    """The files and folders that foreign documents name in the spec, and that are not theirs to read."""
    foreign = (needed for there, document, needed in _named(spec, project) if not approvals.may_read(there, document))
    return list(dict.fromkeys(foreign))


def digests_of_read(spec: Spec, project: Project) -> frozenset[str]:
    """By which all files and folders that the spec names are approved, whoever's they are."""
    return frozenset(needed.digest for _, _, needed in _named(spec, project))


def _named(spec: Spec, project: Project) -> Iterator[tuple[Path, str, NeededApproval]]:
    """(file or folder, the document that names it, the approval to read it) of all that the spec names.

    Any text that a plugin gets may be a path that it opens. It counts as one if something is there: from where plugins
    open it (`data_roots`), or where it says itself. What a pattern matches counts as the folder that it begins with. A
    key says which of its paths are not opened (`SpecKey.unopened`).
    """
    unopened = {(key.name, entry) for key in keys_of(spec) for entry in key.unopened}
    roots = data_roots(spec, project)
    for variant in spec.variants():
        waiting: list[tuple[tuple[Hashable, ...], Any]] = [
            ((key,), value) for key, value in variant.data.items() if key not in _PRESENTATION_KEYS
        ]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += [((*path, key), one) for key, one in value.items()]
                waiting += [((*path, "data_files"), text) for text in _below_data_dir(value)]
            elif isinstance(value, list):
                waiting += [((*path, i), one) for i, one in enumerate(value)]
            elif isinstance(value, str) and path not in unopened:
                why = ".".join(map(str, path))
                for root in roots:
                    if (there := _there(value, root, not _PATHS.isdisjoint(path))) is not None:
                        document = spec.place_in(variant, *path).file
                        # A folder that needs approval has it for all that is in it: only others are walked.
                        links = _linked(there) if approvals.may_read(there, document) else ()
                        for one in (there, *links):
                            yield one, document, NeededApproval.reading(one, why)


def _linked(folder: Path) -> Iterator[Path]:
    """Where the links in a folder lead: whoever reads the folder follows them."""
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.is_symlink() and not (there := path.resolve()).is_relative_to(folder):
                yield there


def _below_data_dir(task: Mapping[str, Any]) -> Iterator[str]:
    """The `data_files` as they are opened, below the folder that stands beside them: `../../x` may lead out of it."""
    folders = (task.get("data_dir"), task.get("dataset_path"))
    given = task.get("data_files")
    named = given.values() if isinstance(given, Mapping) else [given]
    files = chain.from_iterable(one if isinstance(one, list) else [one] for one in named)
    for folder, file in product([one for one in folders if isinstance(one, str)], files):
        if isinstance(file, str) and len(folder) + len(file) < _MAX_PATH_CHARS:
            yield str(Path(folder).expanduser() / file)


def _there(text: str, root: Path, is_path: bool) -> Path | None:
    """The file or folder that a text names, from a root; None if it names none.

    A bare word is none, unless it has a suffix or stands where only paths do (`is_path`); nor is a text in brackets a
    pattern elsewhere.
    """
    if not text or len(text) > _MAX_PATH_CHARS:
        return None
    try:
        path = Path(text).expanduser()
        if not (is_path or "/" in text or text.startswith("~") or path.suffix):
            return None
        magic = next((i for i, part in enumerate(path.parts) if _MAGIC.search(part)), None)
        if magic is None or (not is_path and _is_prose(path, magic)):
            return (root / path).resolve() if (root / path).exists() else None
        base = root.joinpath(*path.parts[:magic])
        return base.resolve() if _has_match(base, path.parts[magic:]) else None
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return None  # no path at all: a NUL, or the home of a user that is not there


def _is_prose(path: Path, magic: int) -> bool:
    """Whether a path, whose first part with a pattern is this one, is a text that ends in one in brackets."""
    is_last = magic == len(path.parts) - 1
    return is_last and ".." not in path.parts and _PROSE.fullmatch(path.name) is not None


def _has_match(base: Path, parts: Sequence[str]) -> bool:
    """Whether a pattern matches anything below a folder, as far as a few folders of each level say."""
    folders = [base] if base.is_dir() else []
    for part in parts:
        if part == "**":
            break  # all that lies below
        if _MAGIC.search(part):
            folders = list(islice(chain.from_iterable(folder.glob(part) for folder in folders), _MAX_MATCHES))
        else:
            folders = [folder / part for folder in folders if (folder / part).exists()]
    return bool(folders)
