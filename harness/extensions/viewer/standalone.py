"""Episodes as pages that need no server: the viewer's scripts as one, its styles, and an episode's data.

A page that is opened from a folder cannot load modules, so they become one script: `embedded.js` takes the place of
`api.js`, and `standalone.js` that of `main.js`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError
from harness.config.project import Project

from ._reader_process import TABLE_SECONDS, Reader, TooSlowError

_ENTRY: Final = "standalone.js"
_IN_PLACE: Final = {"api.js": "embedded.js"}
_STYLES: Final = ("base.css", "lists.css", "episode.css")
_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def script() -> str:
    """What draws an episode whose data stand in the page, as one script without imports.

    Raises:
        ValueError: the modules import each other in a circle, or something that is not there.
    """
    parts: dict[str, str] = {}
    _add(_ENTRY, parts, ())
    return '(() => {\n"use strict";\nconst modules = {};\n' + "".join(parts.values()) + "})();\n"


def style() -> str:
    """The style sheets of such a page."""
    return "".join(_static(name) for name in _STYLES)


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8")


def _add(name: str, parts: dict[str, str], above: Sequence[str]) -> None:
    """Add a module to the script, behind those that it imports."""
    if name in above:
        raise ValueError(f"{name} imports itself: {' → '.join((*above, name))}")
    if name in parts:
        return
    source = _static(_IN_PLACE.get(name, name))
    for names, other in _IMPORT.findall(source):
        _add(other, parts, (*above, name))
        exported = _EXPORT.findall(_static(_IN_PLACE.get(other, other)))
        if missing := [one for one in _names(names) if one.partition(":")[0] not in exported]:
            raise ValueError(f"{name} imports {', '.join(missing)} from {other}, which has no such export")
    body = _IMPORT.sub(lambda found: f'const {{ {", ".join(_names(found[1]))} }} = modules["{found[2]}"];\n', source)
    if re.search(r"^import\b", body, re.MULTILINE):
        raise ValueError(f"{name} has an import of another form than `import {{ … }} from …`")
    own = ", ".join(_EXPORT.findall(source))
    parts[name] = f'modules["{name}"] = (() => {{\n{_EXPORT.sub("", body)}return {{ {own} }};\n}})();\n'


def _names(listed: str) -> list[str]:
    """`a, b as c` as a pattern has them: `a`, `b: c`."""
    return [": ".join(one.split(" as ")) for one in map(str.strip, listed.split(",")) if one]


class EpisodeReader:
    """Reads episodes of finished runs as the viewer's pages draw them, in a process with bounded time and memory.

    Runs of one spec should come one after the other. Plugins are those that are there at the first one.

    Args:
        project: whose plugins render prompts and draw.
    """

    def __init__(self, project: Project) -> None:
        self._reader = Reader(project.root, follows=False)

    def __enter__(self) -> EpisodeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def read(self, folder: Path, episodes: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Id → episode, of those that a run has.

        Raises:
            DataError: a journal is damaged, or it takes longer than a page may.
        """
        try:
            found: list[str] = self._reader.do("stored", folder, list(episodes), seconds=TABLE_SECONDS)
        except TooSlowError as error:
            raise DataError(f"episodes of {folder} cannot be shown: {error}") from None
        return {one["id"]: one for one in map(json.loads, found)}
