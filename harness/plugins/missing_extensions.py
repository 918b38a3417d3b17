"""Extensions that are not installed, cannot be used or have failed: which, why, and what to install.

Loaded for messages only.
"""

from __future__ import annotations

import functools
import json
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.api.causes import causes
from harness.api.errors import Place
from harness.plugins import manifests
from harness.plugins.extension import (
    ADDS_OPTIONS,
    GROUP,
    OWN,
    SHIPPED,
    Extension,
    Offer,
    install,
    missing_extension,
    read,
)
from harness.plugins.manifests import is_installed

INDEX: Final = Path(__file__).parents[1] / "shipped.toml"
"""What each shipped extension adds, even if its folder is missing; `index` makes it."""


def lacking(extension: Extension) -> str | None:
    """The packages that it, or something that it adds, needs and that are not installed, in words; None if there are
    none."""
    parts = [(extension.packages, "", extension.extra)]
    for point, names in extension.points.items():
        for name, value in names.items():
            own = value.get("packages", ()) if isinstance(value, Mapping) else ()
            parts.append((tuple(own), f" for {point}.{name}", Offer(extension, point, name, value).extra))
    missing = [([name for name in packages if not is_installed(name)], *rest) for packages, *rest in parts]
    texts = [
        f"{' and '.join(names)}{what}: {install(extension.distribution, extra)}"
        for names, what, extra in missing
        if names
    ]
    return f"needs {'; '.join(texts)}" if texts else None


def missing() -> dict[str, str]:
    """Name → why an extension that ships, or is installed, cannot be used here, and what to do."""
    found, usable = manifests.all_extensions(), manifests.extensions()
    why = {name: f"is not installed: {install(OWN, one.get('extra'))}" for name, one in _index().items()}
    for name, one in found.items():
        absent = [need for need in one.needs if need not in usable]
        why[name] = f"needs the extension {' and '.join(absent)}" if absent else lacking(one) or ""
    for broken in manifests.read_all()[1]:
        name = broken.name if broken.name not in found else f"{broken.name} (another one)"
        why[name] = f"cannot be used: {broken.error}"
    return {name: text for name, text in sorted(why.items()) if text}


def bringer(what: str, *points: str) -> str | None:
    """For an unknown name: which missing extension would add it, and what to install. None if none would.

    `points`: the tables of manifests in which to look; "options": options of the core's commands.
    """
    known: dict[str, Mapping[str, Any]] = {**_index()}
    known |= {name: one.points for name, one in manifests.all_extensions().items()}
    known |= {one.name: one.points for one in manifests.read_all()[1] if one.name not in manifests.extensions()}
    for name, brought in known.items():
        if name not in manifests.extensions() and any(what in brought.get(point, ()) for point in points):
            return f"{what!r} comes with the extension {name}, which {missing()[name]}"
    return None


def model_notes(played: Iterable[str]) -> Iterator[str]:
    """What tables must say of models: the `note` of an engine of that name, even where its extension lacks another one;
    of one that comes with an extension which is not here, which that is."""
    engines = {name: one for of in manifests.all_extensions().values() for name, one in of.points["engines"].items()}
    notes: dict[str, list[str]] = {}
    for model in played:
        name = model.partition(" (")[0]
        entry = engines.get(name)
        note = entry.get("note") if isinstance(entry, Mapping) else None
        if entry is None:
            note = bringer(name, "engines")
        if note:
            notes.setdefault(note, []).append(model)
    for note, models in notes.items():
        yield f"{', '.join(models)}: {note}"


def missing_module(error: BaseException) -> str | None:
    """The same for code that imports a missing extension; None for all other errors."""
    name = missing_extension(error)
    return None if name is None else f"comes with the extension {name}, which {missing().get(name, 'is not installed')}"


def culprit(error: BaseException) -> tuple[Extension, Place] | None:
    """The third-party extension whose code raised an exception, or its cause, and the innermost line of that code.

    None if no third-party extension is involved.
    """
    for cause in causes(error):
        for frame, line in reversed([*traceback.walk_tb(cause.__traceback__)]):
            module = f"{frame.f_globals.get('__name__')}."
            for one in manifests.extensions().values():
                if module.startswith(f"{one.package}.") and not one.file.is_relative_to(SHIPPED):
                    file = frame.f_code.co_filename
                    return one, Place(file, line, name=f"{file}:{line}")
    return None


@functools.cache
def _index() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(INDEX.read_text("utf-8"))


def index() -> str:
    """The content of `INDEX`, from the manifests: a line for each extension, with the names that it adds."""
    command = "python -m harness.plugins.missing_extensions > harness/shipped.toml"
    lines = [f"# What each extension that ships adds. Made by: {command}"]
    for file in manifests.shipped():
        one = read(f"{GROUP}.{file.parent.name}", file)
        parts = [f'summary = "{one.summary}"', *([f'extra = "{one.extra}"'] if one.extra else [])]
        brought: dict[str, Any] = {point: [*names] for point, names in one.points.items()}
        options = [option for added in one.points["lists"].values() for option in added.get("folders", ())]
        for point in ADDS_OPTIONS:
            options += [option for added in one.points[point].values() for option in added.get("parameters", ())]
        brought["options"] = sorted(options)
        parts += [f"{point} = {json.dumps(names)}" for point, names in brought.items() if names]
        lines.append(f"{one.name} = {{{', '.join(parts)}}}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(index(), end="")
