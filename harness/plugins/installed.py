"""Third-party extensions: finds their manifests and checks them.

A mistake in a manifest disables that extension. `harness list` reports it, and so does the error about a name that the
extension would add.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from harness.api.errors import Place, PluginError, UserError, near
from harness.plugins.extension import (
    ADDS_OPTIONS,
    API_VERSIONS,
    CLOSED,
    GROUP,
    MANIFEST,
    OWN,
    POINTS,
    Extension,
    core,
    read,
)

_NEEDED: Final = {"extra?": "text", "packages?": "texts"}
_RUN: Final = {"run": "reference", **_NEEDED}
_SHAPES: Final[Mapping[str, Any]] = {
    "projects": "text",
    "kinds": {**_RUN, "singular": "text", "help": "text", "home?": "text"},
    "keys": ("reference", {**_RUN, "seats_agents?": "yes or no", "without_numbers?": "texts"}),
    "tables": ("reference", {**_RUN, "key?": "yes or no"}),
    "table_keys": "reference",
    "stopping": {**_RUN, "parameters?": "names", "eval?": "reference"},
    "listeners": {**_RUN, "parameters?": "names", "eval?": "reference"},
    "post_run": {**_RUN, "parameters?": "names", "eval?": "reference", "score?": "reference"},
    "plans": {**_RUN, "options": "reference", "parameters": "names"},
    "checks": "reference",
    "engines": ("module", {"run": "module", "note?": "text", **_NEEDED}),
    "abilities": "reference",
    "executors": "reference",
    "commands": {**_RUN, "options": "reference", "help": "text", "usage": "text", "examples?": "texts"},
    "starters": ("text", {"folder": "text", "run": "reference", "of?": "text"}),
    "lists": {**_RUN, "help": "text", "folders?": "texts by name"},
    "charts": {**_RUN, "help": "text"},
    "exports": "reference",
    "findings": {**_RUN, "file": "text"},
    "parts": "reference",
}
"""Table of a manifest → the type of its values: a word of `_IS`, keys (with "?": optional), or either."""
_IS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "text": lambda value: isinstance(value, str),
    "name": lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w-]*", value, re.ASCII) is not None,
    "module": lambda value: isinstance(value, str) and re.fullmatch(r"\w+(\.\w+)*", value) is not None,
    "reference": lambda value: isinstance(value, str) and re.fullmatch(r"(\w+(\.\w+)*)?:\w+", value) is not None,
    "yes or no": lambda value: isinstance(value, bool),
    "version": lambda value: type(value) is int,
    "texts": lambda value: isinstance(value, list) and all(map(_IS["text"], value)),
    "names": lambda value: isinstance(value, list) and all(map(_IS["name"], value)),
    "texts by name": lambda value: (
        isinstance(value, dict) and all(map(_IS["name"], value)) and all(map(_IS["text"], value.values()))
    ),
}
_WORDS: Final = {
    "text": "a text",
    "name": "a name",
    "module": "the name of a module, such as engine",
    "reference": "module:attribute, such as command:run",
    "yes or no": "true or false",
    "version": "the version of the extension points, a whole number",
    "texts": "a list of texts",
    "names": "a list of names",
    "texts by name": "a table of texts",
}
_KEYS: Final = {
    "name": "name",
    "summary": "text",
    "api?": "version",
    "extra?": "text",
    "packages?": "texts",
    "needs?": "texts",
}
OF_THE_CORE: Final[Mapping[str, Set[str]]] = {
    "kinds": {"prompts", "specs"},
    "keys": {
        *("name", "task", "protocol", "prompts", "metrics", "description", "extends", "agents", "models", "matrix"),
        *("baseline", "generation_kwargs", "structured_output", "dedupe_calls", "executor", "seed", "repeats"),
        *("limit", "cluster", "headline", "tables"),
    },
    "table_keys": {
        *("title", "kind", "rows", "columns", "metrics", "where", "aggregate", "overall", "overall_title"),
        *("uncertainty", "error_style", "cluster", "digits", "unit", "published", "paper", "labels"),
        *("order", "ratio", "relative_drop", "hide_empty", "note", "figure"),
    },
    "lists": {"help", "debug"},
}
"""Point → names that the core uses besides those of its own manifest; no extension can offer them."""


@dataclass(frozen=True)
class BrokenExtension:
    """A disabled extension: what is wrong with it, and the names that it would add, as far as they are known."""

    name: str
    error: UserError
    points: Mapping[str, Mapping[str, Any]]


def beside(shipped: Mapping[str, Extension]) -> tuple[Mapping[str, Extension], tuple[BrokenExtension, ...]]:
    """All extensions, and the disabled ones. If two offer the same name, the one that is found later is disabled."""
    found, broken = dict(shipped), list[BrokenExtension]()
    of_the_core = [(point, name) for point, names in OF_THE_CORE.items() for name in names]
    taken = dict.fromkeys([*of_the_core, *claims(core().points)], "the harness")
    for one in shipped.values():
        taken |= _claimed(one)
    for entry in _installed():
        try:
            if isinstance(entry.file, UserError):
                raise entry.file
            one = checked(entry.package, entry.file, entry.distribution)
            place = Place(str(entry.file))
            if (other := found.get(one.name)) is not None:
                raise PluginError(f"two extensions are called {one.name!r}; the other one is {other.file}", place=place)
            own = [*claims(one.points)]
            if clash := next((claim for claim in own if claim in taken or own.count(claim) > 1), None):
                owner = taken.get(clash, "it")
                raise PluginError(f"{'.'.join(clash)}: {owner} has one of that name already", place=place)
        except UserError as error:
            broken.append(BrokenExtension(entry.name, error, _names_in(entry.file)))
        else:
            found[one.name] = one
            taken |= _claimed(one)
    return dict(sorted(found.items())), tuple(broken)


def _claimed(one: Extension) -> dict[tuple[str, str], str]:
    return dict.fromkeys(claims(one.points), f"the extension {one.name} ({one.file})")


def claims(points: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """(point, name) of all that an extension offers; options of the command line are names too, and keys of tables."""
    for point, offered in points.items():
        yield from ((point, name) for name in offered)
    tables = points["tables"].items()
    yield from (("table_keys", name) for name, one in tables if isinstance(one, Mapping) and one.get("key"))
    yield from (("lists", option) for one in points["lists"].values() for option in one.get("folders", ()))
    yield from (
        (f"{point}.parameters", name)
        for point in ADDS_OPTIONS
        for one in points[point].values()
        for name in one.get("parameters", ())
    )


def _names_in(file: Path | UserError) -> Mapping[str, Mapping[str, Any]]:
    """Point → the names in a manifest, even if the manifest has mistakes."""
    try:
        data = tomllib.loads(file.read_text("utf-8")) if isinstance(file, Path) else {}
    except (OSError, ValueError):
        data = {}
    return {point: data[point] for point in POINTS if isinstance(data.get(point), dict)}


@dataclass(frozen=True)
class _Entry:
    """Where a manifest is, or why it cannot be found; `name` stands for the extension until its manifest is read."""

    name: str
    package: str
    file: Path | UserError
    distribution: str = OWN


def _installed() -> Iterator[_Entry]:
    for entry in sorted(entry_points(group=GROUP)):
        package = entry.value.partition(":")[0].strip()
        distribution = entry.dist.name if entry.dist is not None else package
        yield _Entry(entry.name, package, _manifest_of(package, f"{entry.name} = {entry.value!r}"), distribution)


def _manifest_of(package: str, written: str) -> Path | UserError:
    """The manifest of an installed package, or why there is none; `written`: the entry point that names the package."""
    place = Place("", name=f"entry point {written} of {GROUP}")
    try:
        found = importlib.util.find_spec(package)
    except Exception as error:  # it imports the packages around it
        return PluginError(f"the package cannot be found: {type(error).__name__}: {error}", place=place)
    folders = [Path(folder) for folder in found.submodule_search_locations or ()] if found is not None else []
    if not folders:
        return PluginError(f"there is no package {package!r}", place=place, hint="Name the folder with the manifest.")
    return next((folder / MANIFEST for folder in folders if (folder / MANIFEST).is_file()), folders[0] / MANIFEST)


def checked(package: str, file: Path, distribution: str = OWN) -> Extension:
    """The extension that a manifest describes. Raises `PluginError`, with the file and the key, for a mistake in it."""
    place = Place(str(file))
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PluginError(f"the manifest of an extension cannot be read: {error}", place=place) from None
    _check_version(data.get("api"), distribution, place)
    if distribution != OWN and (closed := next((point for point in CLOSED if point in data), None)):
        hint = f"The open ones: {', '.join(point for point in POINTS if point not in CLOSED)}."
        raise PluginError(f"{closed}: only extensions that ship with the harness offer these", place=place, hint=hint)
    own = {key: value for key, value in data.items() if key not in POINTS}
    if (wrong := _wrong(own, _KEYS, POINTS)) is not None:
        raise PluginError(wrong, place=place)
    points: dict[str, Mapping[str, Any]] = {point: data.get(point, {}) for point in POINTS}
    for point, offered in points.items():
        if not isinstance(offered, dict):
            raise PluginError(f"{point}: expected a table, found {offered!r:.60}", place=place)
        for name, value in offered.items():
            wrong = None if _IS["name"](name) else "a name has letters, digits, _ and -"
            wrong = wrong or _wrong(value, _SHAPES[point])
            if wrong is not None:
                raise PluginError(f"{point}.{name}{'' if wrong.startswith('.') else ': '}{wrong}", place=place)
    for name, folder in points["projects"].items():
        if not (file.parent / folder / "harness.yaml").is_file():
            raise PluginError(f"projects.{name}: there is no harness.yaml in {folder!r}", place=place)
    for name, folder in points["starters"].items():
        if isinstance(folder, dict):
            if not (file.parent / folder["folder"]).is_dir():
                raise PluginError(f"starters.{name}: there is no folder {folder['folder']!r}", place=place)
            continue
        wanted = "harness.yaml" if name == "project" else "specs/__NAME__.yaml"
        if not (file.parent / folder / wanted).is_file():
            raise PluginError(f"starters.{name}: there is no {wanted} in {folder!r}", place=place)
    return read(package, file, distribution)


def _check_version(version: Any, distribution: str, place: Place) -> None:
    """Raise `PluginError` if a package is for another version of the extension points, with what to install.

    Comes before all other checks: what a newer version adds would look like a mistake. A manifest that names none is
    for the first version.
    """
    if type(version) is not int or version in API_VERSIONS:
        return
    offered = " to ".join(dict.fromkeys((str(API_VERSIONS[0]), str(API_VERSIONS[-1]))))
    is_new = version > API_VERSIONS[-1]
    message = f"api: written for version {version} of the extension points, and this harness offers {offered}"
    older, newer = (OWN, distribution) if not is_new else (distribution, OWN)
    hint = f"Install a newer {newer}: pip install --upgrade {newer}; or an older {older}."
    raise PluginError(message, place=place, hint=hint)


def _wrong(value: Any, shape: Any, others: tuple[str, ...] = ()) -> str | None:
    """What is wrong with a value of a manifest, in words; None if nothing is. `others`: keys that are right too."""
    if isinstance(shape, tuple):
        shape = next((one for one in shape if isinstance(one, dict) == isinstance(value, dict)), shape[0])
    if isinstance(shape, str):
        return None if _IS[shape](value) else f"expected {_WORDS[shape]}, found {value!r:.60}"
    if not isinstance(value, dict):
        return f"expected a table with {' and '.join(key for key in shape if key[-1] != '?')}, found {value!r:.60}"
    known = {key.removesuffix("?"): kind for key, kind in shape.items()}
    for key in value:
        if key not in known:
            from harness.plugins.renamed import new_key

            return f"unknown key {key!r}. {new_key(key, [*known, *others]) or near(key, [*known, *others])}"
    for key in shape:
        if key[-1] != "?" and key not in value:
            return f"missing required key {key!r}"
    for key, part in value.items():
        if (wrong := _wrong(part, known[key])) is not None:
            return f".{key}: {wrong}" if not others else f"{key}: {wrong}"
    return None
