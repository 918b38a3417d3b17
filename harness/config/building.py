"""A name in a spec, or `use:` with its arguments → the plugin's class, its checked arguments, an instance."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.api import Engine
from harness.api.errors import Place, SpecError, UserError, ValuePath, raise_all
from harness.config.project import Project
from harness.plugins import parameters
from harness.plugins.approvals import NotApprovedError
from harness.plugins.manifests import offers

Reference = str | Mapping[str, Any]
"""What a spec refers to a plugin by."""
PlaceOf = Callable[..., Place]
"""Where the value at a path below the reference was written."""


def split(reference: Reference) -> tuple[str, dict[str, Any]]:
    """The plugin's name, and its arguments as they were written."""
    if isinstance(reference, str):
        return reference, {}
    return str(reference["use"]), {k: v for k, v in reference.items() if k != "use"}


def policy_name(reference: Reference) -> str:
    """What tables call a policy: its `label`, where it has one, else its plugin's name."""
    name, arguments = split(reference)
    return str(arguments.get("label") or name)


def parts_of(kind: str, reference: Reference, project: Project, place_of: PlaceOf) -> tuple[type[Any], dict[str, Any]]:
    """The plugin class and its checked arguments, inner references already built."""
    name, arguments = split(reference)
    cls = project.load(kind, name, place_of("use") if not isinstance(reference, str) else place_of())
    raise_all(
        SpecError(f"{offers('kinds')[kind].value['singular']} {name!r}: {what}", place=place_of(*path))
        for path, what in parameters.faults(cls, arguments)
    )

    def refer(inner: str | type[parameters.ParameterType], reference: Any, path: ValuePath) -> Any:
        at = functools.partial(place_of, *path)
        if not isinstance(inner, str):
            return inner.at(reference, at())
        return make(*parts_of(inner, reference, project, at), at)

    return cls, parameters.built(cls, arguments, refer)


class Plugins:
    """A project's plugins as a spec configures them, each made once for a reference."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._made: dict[str, Any] = {}
        self._parts: dict[str, tuple[type[Any], dict[str, Any]]] = {}

    def get(self, kind: str, reference: Reference, place_of: PlaceOf) -> Any:
        """The plugin. Raises as `parts_of` and `make`."""
        key = json.dumps([kind, reference], default=str)
        if key not in self._made:
            self._made[key] = make(*self.parts(kind, reference, place_of), place_of)
        return self._made[key]

    def parts(self, kind: str, reference: Reference, place_of: PlaceOf) -> tuple[type[Any], dict[str, Any]]:
        """As `parts_of`."""
        key = json.dumps([kind, reference], default=str)
        if key not in self._parts:
            self._parts[key] = parts_of(kind, reference, self.project, place_of)
        return self._parts[key]


def make(cls: type[Any], arguments: dict[str, Any], place_of: PlaceOf) -> Any:
    """An instance. Raises `UserError`, with its place, for whatever the plugin raises."""
    try:
        return cls(**arguments)
    except NotApprovedError as error:
        raise NotApprovedError(error.needed, error.place or place_of()) from None
    except UserError as error:
        raise type(error)(error.message, place=error.place or place_of(*error.at), hint=error.hint) from None
    except ValueError as error:  # how a __post_init__ says what it thinks of its parameters: all of it is in the text
        raise SpecError(str(error) or type(error).__name__, place=place_of()) from None
    except TypeError as error:
        raise SpecError(str(error) or type(error).__name__, place=place_of()) from error
    except Exception as error:
        from harness.storage.plugin_errors import describe  # what only a failing plugin needs

        raise SpecError(f"{cls.__name__} fails: {describe(error)}", place=place_of()) from error


def engine(reference: Reference, project: Project, place_of: PlaceOf | None = None) -> Engine:
    """Build an engine from a name, or from `use:` and its arguments. Raises `SpecError`, `PluginError`."""
    place_of = place_of or (lambda *_: Place("--model_args"))
    cls, arguments = parts_of("engines", reference, project, place_of)
    built: Engine = make(cls, arguments, place_of)
    return built
