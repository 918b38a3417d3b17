"""One extension: what its manifest says, and what it offers, which is loaded when asked for."""

from __future__ import annotations

import functools
import importlib
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from harness.api.errors import Place, PluginError, SetupError, UserError, near

MANIFEST: Final = "extension.toml"
GROUP: Final = "harness.extensions"
OWN: Final = "mas-eval-harness"
"""The distribution of the harness itself."""
SHIPPED: Final = Path(__file__).parents[1] / "extensions"
CORE: Final = Path(__file__).parents[1] / "core.toml"
"""What the core offers, in the form of a manifest."""
POINTS: Final = (
    "projects", "kinds", "keys", "tables", "table_keys", "stopping", "listeners", "post_run", "plans", "checks",
    "engines", "abilities",
    "executors", "commands", "starters", "lists", "charts", "exports", "findings", "parts",
)  # fmt: skip
"""The tables of a manifest."""
ADDS_OPTIONS: Final = ("stopping", "listeners", "post_run", "plans")
"""Those whose entries add options to commands of the core."""
CLOSED: Final = ("parts",)
"""Those that only extensions which ship fill: the core imports no extension, and asks for a part by its name."""
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
            self._raise_import_error(name, error, key)
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

    def _raise_import_error(self, module: str, error: BaseException, key: str) -> NoReturn:
        """Say why a module that it names under a key cannot be imported. Raises as `load`."""
        one = self.extension
        if missing_extension(error) is not None or isinstance(error, UserError):
            raise error
        if not isinstance(error, ModuleNotFoundError) or error.name is None:
            raise self.mistake(f"{module} cannot be imported: {type(error).__name__}: {error}", key) from error
        if error.name.partition(".")[0] == one.package.partition(".")[0]:
            raise self.mistake(f"there is no module {error.name}", key) from None
        why = f"the extension {one.name} needs {error.name}, which is not installed"
        raise SetupError(why, hint=f"Install it: {install(one.distribution, self.extra)}") from error

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


def read(package: str, file: Path, distribution: str = OWN) -> Extension:
    """The extension that a manifest without mistakes describes (`harness.plugins.installed` finds mistakes)."""
    data = tomllib.loads(file.read_text("utf-8"))
    points = {point: data.get(point, {}) for point in POINTS}
    packages, needs = (tuple(data.get(key, ())) for key in ("packages", "needs"))
    texts = data["name"], data["summary"], package, file, distribution, data.get("extra")
    return Extension(*texts, packages, needs, points)


def missing_extension(error: BaseException) -> str | None:
    """The extension that ships and is not here, where code has imported it; None for all other errors."""
    parts = str(error.name).split(".") if isinstance(error, ModuleNotFoundError) else []
    if parts[:2] != GROUP.split(".") or len(parts) < 3 or (SHIPPED / parts[2] / MANIFEST).is_file():
        return None
    return parts[2]


def install(distribution: str, extra: object) -> str:
    """The command that installs it."""
    return f"pip install '{distribution}[{extra}]'" if extra else f"pip install --force-reinstall {distribution}"
