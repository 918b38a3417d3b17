"""Extensions: what each adds to the core, read from its `extension.toml` without importing the extension.

An extension is a package with an `extension.toml`: those of `harness/extensions/`, and those of installed packages,
which the entry points of the group `harness.extensions` name (`foo = "harness_foo"`). docs/reference/extensions.md
describes the file and its tables, the extension points.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.api.errors import Place, PluginError, SetupError, UserError, near

if TYPE_CHECKING:
    from harness.plugins.missing_extensions import BrokenExtension

MANIFEST: Final = "extension.toml"
GROUP: Final = "harness.extensions"
OWN: Final = "mas-eval-harness"
"""The distribution of the harness itself."""
SHIPPED: Final = Path(__file__).parents[1] / "extensions"
CORE: Final = Path(__file__).parents[1] / "core.toml"
"""What the core offers, in the form of a manifest."""
POINTS: Final = (
    "projects", "kinds", "keys", "tables", "table_keys", "post_run", "checks", "confinement",
    "engines", "abilities", "executors", "commands", "starters", "lists", "reports", "charts",
    "exports", "findings", "model_notes", "what_if",
)  # fmt: skip
"""The tables of a manifest."""
CLOSED: Final = ("confinement", "reports", "model_notes", "what_if")
"""Those in which one provider has a place: the extensions that ship fill them, and no package of someone else can."""
API_VERSIONS: Final = range(1, 2)
"""The versions of the extension points that this harness offers, the newest last: `api` of a manifest is one of them.

It rises when a table, a key or a method of an interface changes its meaning or goes; what is only new changes nothing.
"""
T = TypeVar("T")


@dataclass(frozen=True)
class Extension:
    """One extension.

    Attributes:
        name, summary: what it is called, and what it is for in one line.
        package: the Python package that has the manifest; paths of modules in the manifest count from it.
        file: the manifest.
        distribution: what pip installs to have it.
        extra: the extra of that distribution that installs what it needs, if it needs something.
        packages: what it needs, as Python imports it.
        needs: other extensions that it needs.
        points: table of the manifest → name → value.
    """

    name: str
    summary: str
    package: str
    file: Path
    distribution: str
    extra: str | None
    packages: tuple[str, ...]
    needs: tuple[str, ...]
    points: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Offer:
    """What one extension offers at one point under one name: `value` comes from its manifest."""

    extension: Extension
    point: str
    name: str
    value: Any

    def reference(self, key: str = "run") -> str:
        """What the manifest names, or names under a key of the entry: a module, or an attribute of one."""
        return str(self.value if isinstance(self.value, str) else self.value[key])

    @property
    def source(self) -> Path:
        """The file of the module that the manifest names."""
        return self.extension.file.parent / f"{self.reference().replace('.', '/')}.py"

    @property
    def extra(self) -> str | None:
        """The extra that installs what it needs: its own, or that of its extension."""
        own = self.value.get("extra") if isinstance(self.value, Mapping) else None
        return self.extension.extra if own is None else str(own)

    def load(self, key: str = "run") -> Any:
        """The object that the manifest names, or that it names under a key of the entry.

        Raises `PluginError`, with the manifest and the key, if there is none, and `SetupError` if a package that it
        needs is not installed.
        """
        one = self.extension
        module, _, attribute = self.reference(key).partition(":")
        name = f"{one.package}.{module}" if module else one.package
        try:
            found: Any = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            from harness.plugins.missing_extensions import raise_import_error

            raise_import_error(self, name, error, key)
        if not hasattr(found, attribute):
            raise self.mistake(f"{name} has no {attribute!r}. {near(attribute, vars(found))}", key)
        return getattr(found, attribute)

    def load_class(self, base: type[T]) -> type[T]:
        """The class that the manifest names. Raises as `load`, and `PluginError` if it is not a subclass of `base`."""
        found = self.load()
        if not (isinstance(found, type) and issubclass(found, base)):
            raise self.mistake(f"expected a subclass of {base.__module__}.{base.__name__}, found {_kind(found)}")
        if inspect.isabstract(found):
            missing = ", ".join(sorted(found.__abstractmethods__))  # type: ignore[attr-defined]
            raise self.mistake(f"the class {found.__name__} has no {missing}")
        return found

    def load_instance(self, kind: type[T]) -> T:
        """The object that the manifest names. Raises as `load`, and `PluginError` if it is not a `kind`."""
        found = self.load()
        if not isinstance(found, kind):
            raise self.mistake(f"expected a {kind.__module__}.{kind.__name__}, found {_kind(found)}")
        return found

    def load_function(self, key: str = "run") -> Callable[..., Any]:
        """The function that the manifest names. Raises as `load`, and `PluginError` if it is not a function."""
        found = self.load(key)
        if not callable(found):
            raise self.mistake(f"expected a function, found {_kind(found)}", key)
        function: Callable[..., Any] = found
        return function

    def mistake(self, what: str, key: str = "run") -> PluginError:
        """The error for something wrong with it, at its place in the manifest."""
        path = [self.point, self.name, *([] if isinstance(self.value, str) else [key])]
        return PluginError(f"{'.'.join(path)}: {what}", place=Place(str(self.extension.file)))


def _kind(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"{type(found).__name__} {found!r:.60}"


@functools.cache
def core() -> Extension:
    """What the core offers, as if it were an extension."""
    return read("harness", CORE)


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


def find_offer(point: str, name: str, wanted: str) -> Offer:
    """What an extension offers at a point under a name. Raises `SetupError` where none does; `wanted`: for what."""
    if (offer := offers(point).get(name)) is None:
        from harness.plugins.missing_extensions import bringer

        message = f"{wanted} comes with an extension that is not installed ([{point}] {name})"
        raise SetupError(message, hint=bringer(name, point))
    return offer


def loadable_classes(point: str, base: type[T]) -> dict[str, type[T]]:
    """Name → class of everything offered at a point, without classes of third parties that cannot be loaded.

    For callers that use all of them. A caller that uses one by its name gets the error.
    """
    classes = {}
    for name, offer in offers(point).items():
        try:
            classes[name] = offer.load_class(base)
        except (UserError, ModuleNotFoundError):
            if offer.extension.file.is_relative_to(SHIPPED):
                raise
    return classes


def report_part(name: str, wanted: str) -> Any:
    """What an extension offers among the reports under a name. Raises as `find_offer`."""
    return find_offer("reports", name, wanted).load_function()


# ----------------------------------------------------------------------------------------- reading


def shipped() -> list[Path]:
    """The manifests of the extensions that ship."""
    return sorted(SHIPPED.glob(f"*/{MANIFEST}"))


def some_installed() -> bool:
    """Whether some installed package has an entry point of the group."""
    texts = (file for path in sys.path for file in Path(path).glob("*.dist-info/entry_points.txt"))
    return any(f"[{GROUP}]" in file.read_text("utf-8", "replace") for file in texts)


def read(package: str, file: Path, distribution: str = OWN) -> Extension:
    """The extension that a manifest without mistakes describes (`harness.plugins.installed` finds mistakes)."""
    data = tomllib.loads(file.read_text("utf-8"))
    points = {point: data.get(point, {}) for point in POINTS}
    packages, needs = (tuple(data.get(key, ())) for key in ("packages", "needs"))
    texts = data["name"], data["summary"], package, file, distribution, data.get("extra")
    return Extension(*texts, packages, needs, points)


if __name__ == "__main__":
    from harness.plugins.missing_extensions import index

    print(index(), end="")


def is_installed(package: str) -> bool:
    """Whether a package can be imported, as far as that shows without importing it."""
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # the package around it is missing
        return False
