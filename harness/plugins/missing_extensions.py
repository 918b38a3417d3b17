"""Extensions that are not installed, cannot be used or have failed: which, why, and what to install.

Loaded for messages only.
"""

from __future__ import annotations

import functools
import json
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.api.errors import Place, SetupError, UserError
from harness.plugins import manifests
from harness.plugins.manifests import OWN, SHIPPED, Extension, Offer, is_installed, read

INDEX: Final = Path(__file__).parents[1] / "shipped.toml"
"""What each shipped extension adds, even if its folder is missing; `index` makes it."""


@dataclass(frozen=True)
class BrokenExtension:
    """A disabled extension: what is wrong with it, and the names that it would add, as far as they are known."""

    name: str
    error: UserError
    points: Mapping[str, Mapping[str, Any]]


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
        f"{' and '.join(names)}{what}: {_install(extension.distribution, extra)}"
        for names, what, extra in missing
        if names
    ]
    return f"needs {'; '.join(texts)}" if texts else None


def raise_import_error(offer: Offer, module: str, error: BaseException, key: str) -> NoReturn:
    """Say why the module that an offer names under a key cannot be imported. Raises as `Offer.load`."""
    one = offer.extension
    if missing_module(error) is not None or isinstance(error, UserError):
        raise error
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        raise offer.mistake(f"{module} cannot be imported: {type(error).__name__}: {error}", key) from error
    if error.name.partition(".")[0] == one.package.partition(".")[0]:
        raise offer.mistake(f"there is no module {error.name}", key) from None
    why = f"the extension {one.name} needs {error.name}, which is not installed"
    raise SetupError(why, hint=f"Install it: {_install(one.distribution, offer.extra)}") from error


def missing() -> dict[str, str]:
    """Name → why an extension that ships, or is installed, cannot be used here, and what to do."""
    found, usable = manifests.all_extensions(), manifests.extensions()
    why = {name: f"is not installed: {_install(OWN, one.get('extra'))}" for name, one in _index().items()}
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
    """What tables must say of models, as extensions do that are here, even if they lack another one; of what comes with
    one that is not here, which that is."""
    notes = {
        name: str(bringer(name, "model_notes")) for one in _index().values() for name in one.get("model_notes", ())
    }
    for one in manifests.all_extensions().values():
        notes |= one.points["model_notes"]
    for kind, note in notes.items():
        if named := [part for part in played if part == kind or part.startswith(f"{kind} (")]:
            yield f"{', '.join(named)}: {note}"


def missing_module(error: BaseException) -> str | None:
    """The same for code that imports a missing extension; None for all other errors."""
    parts = str(error.name).split(".") if isinstance(error, ModuleNotFoundError) else []
    if parts[:2] != ["harness", "extensions"] or len(parts) < 3 or parts[2] in manifests.all_extensions():
        return None
    return f"comes with the extension {parts[2]}, which {missing().get(parts[2], 'is not installed')}"


def culprit(error: BaseException) -> tuple[Extension, Place] | None:
    """The third-party extension whose code raised an exception, or its cause, and the innermost line of that code.

    None if no third-party extension is involved.
    """
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        for frame, line in reversed([*traceback.walk_tb(cause.__traceback__)]):
            module = f"{frame.f_globals.get('__name__')}."
            for one in manifests.extensions().values():
                if module.startswith(f"{one.package}.") and not one.file.is_relative_to(SHIPPED):
                    file = frame.f_code.co_filename
                    return one, Place(file, line, name=f"{file}:{line}")
        cause = cause.__cause__
    return None


@functools.cache
def _index() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(INDEX.read_text("utf-8"))


def index() -> str:
    """The content of `INDEX`, from the manifests: a line for each extension, with the names that it adds."""
    command = "python -m harness.plugins.manifests > harness/shipped.toml"
    lines = [f"# What each extension that ships adds. Made by: {command}"]
    for file in manifests.shipped():
        one = read(f"{manifests.GROUP}.{file.parent.name}", file)
        parts = [f'summary = "{one.summary}"', *([f'extra = "{one.extra}"'] if one.extra else [])]
        brought: dict[str, Any] = {point: [*names] for point, names in one.points.items()}
        options = [option for added in one.points["lists"].values() for option in added.get("folders", ())]
        options += [option for added in one.points["post_run"].values() for option in added.get("parameters", ())]
        brought["options"] = sorted(options)
        parts += [f"{point} = {json.dumps(names)}" for point, names in brought.items() if names]
        lines.append(f"{one.name} = {{{', '.join(parts)}}}")
    return "\n".join(lines) + "\n"


def _install(distribution: str, extra: object) -> str:
    return f"pip install '{distribution}[{extra}]'" if extra else f"pip install --force-reinstall {distribution}"
