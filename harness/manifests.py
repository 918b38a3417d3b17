"""Extensions: what each adds to the core, as its `extension.toml` says; nothing of an extension is imported to read it.

An extension is a package with an `extension.toml`: those of `harness/extensions/`, and those of installed packages,
which the entry points of the group `harness.extensions` name (`foo = "harness_foo"`). docs/reference/extensions.md
describes the file and its tables, the extension points.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import Place, PluginError, SetupError, near

MANIFEST: Final = "extension.toml"
GROUP: Final = "harness.extensions"
POINTS: Final = (
    *("keys", "tables", "after", "checks", "confinement", "engines", "executors", "commands", "lists", "reports"),
    *("charts", "exports"),
)
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
        """Why it cannot be used here; None if it can."""
        try:
            found = importlib.util.find_spec(self.package)
        except ImportError:
            found = None
        if found is None:
            return f"{self.package} cannot be imported"
        missing = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if not missing:
            return None
        how = f": pip install 'mas-eval-harness[{self.extra}]'" if self.extra else ""
        return f"needs {' and '.join(missing)}{how}"

    def load(self, reference: str) -> Any:
        """The object at `module:attribute`, the module counting from the package. Raises `SetupError`."""
        module, _, attribute = reference.partition(":")
        name = f"{self.package}.{module}" if module else self.package
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):  # a package that it needs
                raise
            raise SetupError(f"the extension {self.name} is not installed: there is no module {error.name}") from None
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
    """Name → extension, in order of names. Raises `PluginError` for a manifest with a mistake."""
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
