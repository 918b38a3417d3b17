"""Extensions: what each adds to the core, as its `extension.toml` says; nothing of an extension is imported to read it.

An extension is a package with an `extension.toml`: those of `harness/extensions/`, and those of installed packages,
which the entry points of the group `harness.extensions` name (`foo = "harness_foo"`). docs/reference/extensions.md
describes the file and its tables, the extension points.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import Place, PluginError, SetupError, near

MANIFEST: Final = "extension.toml"
INDEX: Final = Path(__file__).with_name("shipped.toml")
"""What each extension that ships brings, also where its folder is missing; `index` makes it."""
GROUP: Final = "harness.extensions"
POINTS: Final = (
    "projects", "keys", "tables", "after", "checks", "confinement", "engines", "executors", "commands", "lists",
    "reports", "charts", "exports",
)  # fmt: skip
"""The tables of a manifest."""
_TEXTS: Final = {"name": str, "summary": str, "extra": str}
_KEYS: Final = {**_TEXTS, "packages": list, "needs": list, **dict.fromkeys(POINTS, dict)}


@dataclass(frozen=True)
class Extension:
    """One extension.

    Attributes:
        name, summary: what it is called, and what it is for in one line.
        package: the Python package that has the manifest; paths of modules in the manifest count from it.
        file: the manifest.
        extra: the extra of this distribution that installs what it needs, if it needs something.
        packages: what it needs, as Python imports it.
        needs: other extensions that it needs.
        points: table of the manifest → name → what stands there.
    """

    name: str
    summary: str
    package: str
    file: Path
    extra: str | None
    packages: tuple[str, ...]
    needs: tuple[str, ...]
    points: Mapping[str, Mapping[str, Any]]

    def lacking(self) -> str | None:
        """The packages that it needs and that are not installed, in words; None if there are none."""
        missing = [name for name in self.packages if importlib.util.find_spec(name) is None]
        return f"needs {' and '.join(missing)}: {_install(self.extra)}" if missing else None

    def load(self, reference: str) -> Any:
        """The object at `module:attribute`, the module counting from the package. Raises `SetupError`."""
        module, _, attribute = reference.partition(":")
        name = f"{self.package}.{module}" if module else self.package
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):  # a package that it needs
                raise
            raise SetupError(f"the extension {self.name} is not whole: there is no module {error.name}") from None
        return getattr(found, attribute) if attribute else found


@dataclass(frozen=True)
class Offer:
    """What one extension offers at one point under one name."""

    extension: Extension
    value: Any

    def load(self) -> Any:
        """The object that it names. Raises `SetupError` where the extension is not whole."""
        return self.extension.load(self.value if isinstance(self.value, str) else self.value["run"])


@functools.cache
def extensions() -> Mapping[str, Extension]:
    """Name → extension, in order of names, without those that need one which is not here.

    Raises `PluginError` for a manifest with a mistake.
    """
    found = dict(_found())
    while lame := [name for name, one in found.items() if not found.keys() >= {*one.needs}]:
        for name in lame:
            del found[name]
    return found


@functools.cache
def _found() -> Mapping[str, Extension]:
    found: dict[str, Extension] = {}
    shipped = Path(__file__).parent / "extensions"
    for package, file in (*_shipped(shipped), *_installed()):
        extension = read(package, file)
        if (other := found.get(extension.name)) is not None:
            message = f"two extensions are called {extension.name!r}; the other one is {other.file}"
            raise PluginError(message, place=Place(str(file)))
        found[extension.name] = extension
    return dict(sorted(found.items()))


@functools.cache
def offers(point: str) -> Mapping[str, Offer]:
    """Name → what an extension offers at a point, such as "commands". Raises `PluginError` as `extensions`."""
    found: dict[str, Offer] = {}
    for extension in extensions().values():
        for name, value in extension.points[point].items():
            if (other := found.get(name)) is not None:
                message = f"{point}: {name!r} is in the extension {other.extension.name} too, {other.extension.file}"
                raise PluginError(message, place=Place(str(extension.file)))
            found[name] = Offer(extension, value)
    return found


# ----------------------------------------------------------------------------------- what is missing


def missing() -> dict[str, str]:
    """Name → why an extension that ships, or is installed, cannot be used here, and what to do."""
    found, usable = _found(), extensions()
    why = {name: f"is not installed: {_install(one.get('extra'))}" for name, one in _index().items()}
    for name, one in found.items():
        absent = [need for need in one.needs if need not in usable]
        why[name] = f"needs the extension {' and '.join(absent)}" if absent else one.lacking() or ""
    return {name: text for name, text in sorted(why.items()) if text}


def bringer(what: str, *points: str) -> str | None:
    """For a name that nothing here has: which extension would bring it, and what to do; None if none would.

    `points`: the tables of manifests in which it could stand.
    """
    for name, one in _index().items():
        if name not in extensions() and any(what in one.get(point, ()) for point in points):
            return f"{what!r} comes with the extension {name}, which {missing()[name]}"
    return None


def missing_module(error: BaseException) -> str | None:
    """The same for code that imports an extension which is not here; None for all other errors."""
    parts = str(error.name).split(".") if isinstance(error, ModuleNotFoundError) else []
    if parts[:2] != ["harness", "extensions"] or len(parts) < 3 or parts[2] in _found():
        return None
    return f"comes with the extension {parts[2]}, which {missing().get(parts[2], 'is not installed')}"


@functools.cache
def _index() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(INDEX.read_text("utf-8"))


def index() -> str:
    """The content of `INDEX`, from the manifests: a line for each extension, with the names that it brings."""
    lines = ["# What each extension that ships brings. Made by: python -m harness.manifests > harness/shipped.toml"]
    for package, file in _shipped(Path(__file__).parent / "extensions"):
        one = read(package, file)
        parts = [f'summary = "{one.summary}"', *([f'extra = "{one.extra}"'] if one.extra else [])]
        parts += [f"{point} = {json.dumps([*names])}" for point, names in one.points.items() if names]
        lines.append(f"{one.name} = {{{', '.join(parts)}}}")
    return "\n".join(lines) + "\n"


def _install(extra: object) -> str:
    return f"pip install 'mas-eval-harness[{extra}]'" if extra else "pip install --force-reinstall mas-eval-harness"


# ----------------------------------------------------------------------------------------- reading


def _shipped(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.glob(f"*/{MANIFEST}")):
        yield f"harness.extensions.{file.parent.name}", file


def _installed() -> Iterator[tuple[str, Path]]:
    if not _some_installed():  # reading the metadata of all packages takes longer than all else at a start
        return
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        found = importlib.util.find_spec(entry.value.partition(":")[0])
        for folder in () if found is None else found.submodule_search_locations or ():
            yield entry.value, Path(folder) / MANIFEST


def _some_installed() -> bool:
    texts = (file for path in sys.path for file in Path(path).glob("*.dist-info/entry_points.txt"))
    return any(f"[{GROUP}]" in file.read_text("utf-8", "replace") for file in texts)


def read(package: str, file: Path) -> Extension:
    """The extension that a manifest describes. Raises `PluginError` for a mistake in it."""
    place = Place(str(file))
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PluginError(f"the manifest of an extension cannot be read: {error}", place=place) from None
    for key, value in data.items():
        if key not in _KEYS:
            raise PluginError(f"unknown key {key!r}. {near(key, _KEYS)}", place=place)
        if not isinstance(value, _KEYS[key]):
            raise PluginError(f"{key}: expected a {_KEYS[key].__name__}, found {value!r:.60}", place=place)
    for key in ("name", "summary"):
        if key not in data:
            raise PluginError(f"missing required key {key!r}", place=place)
    points = {point: data.get(point, {}) for point in POINTS}
    packages, needs = (tuple(map(str, data.get(key, ()))) for key in ("packages", "needs"))
    return Extension(data["name"], data["summary"], package, file, data.get("extra"), packages, needs, points)


if __name__ == "__main__":
    print(index(), end="")
