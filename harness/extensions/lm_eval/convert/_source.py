"""A task's YAML as lm-eval writes it: with includes and functions, and with the line of every key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from harness.api.errors import DataError, Place, PluginError
from harness.extensions.lm_eval.index import TaskEntry

_MAX_CHARS: Final = 1_000_000
_DEEPEST: Final = 30
_VALUES: Final = 50_000


@dataclass(frozen=True, slots=True)
class Function:
    """`!function module.name`: a function of a Python file beside the YAML file."""

    name: str

    def __str__(self) -> str:
        return f"!function {self.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's value, and where it is."""

    value: Any
    place: Place


class _Loader(yaml.SafeLoader):
    """Plain data and `!function`."""


def _function(loader: yaml.Loader, node: yaml.Node) -> Function:
    return Function(str(node.value))


_Loader.add_constructor("!function", _function)


def read(file: Path, above: tuple[Path, ...] = ()) -> dict[str, Entry]:
    """The keys of a YAML file, those of the files that it includes before its own.

    Raises:
        DataError: for a file that is missing, too large or no mapping, and files that include each other.
    """
    file = file.expanduser().resolve()
    if file in above or len(above) > _DEEPEST:
        raise DataError("the file includes itself", place=Place(_short_path(above[-1])))
    own = _keys(file)
    includes = own.pop("include", None)
    merged: dict[str, Entry] = {}
    for name in _listed(includes.value) if includes else []:
        inner = read(file.parent / str(name), (*above, file))
        merged |= {key: entry for key, entry in inner.items() if key != "task_list"}
    return merged | own


def _keys(file: Path) -> dict[str, Entry]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_CHARS + 1)
        if len(text) > _MAX_CHARS:
            raise DataError(f"more than {_MAX_CHARS:,} bytes", place=Place(_short_path(file)))
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise DataError("a task's YAML is a mapping of keys", place=Place(_short_path(file)))
        keys = {}
        for key, node in root.value:
            at = Place(_short_path(file), key.start_mark.line + 1, key.start_mark.column + 1)
            keys[str(loader.construct_object(key))] = Entry(loader.construct_object(node, deep=True), at)
        _refuse_bombs([entry.value for entry in keys.values()], file)
        return keys
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"the file cannot be read: {reason}", place=Place(_short_path(file))) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        what = " ".join(str(error).split())[:300]
        raise DataError(f"not YAML as lm-eval reads it: {what}", place=Place(_short_path(file))) from None


def _refuse_bombs(values: list[Any], file: Path) -> None:
    """Raise `DataError` where aliases stand for more values than a spec has."""
    waiting, count = list(values), 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > _VALUES:
            raise DataError(
                f"more than {_VALUES:,} values, with those that aliases repeat", place=Place(_short_path(file))
            )
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple | set):
            waiting += value


def _short_path(file: Path) -> str:
    """A file's path for readers: from here, or from the package's folder."""
    if file.is_relative_to(Path.cwd()):
        return str(file.relative_to(Path.cwd()))
    parts = file.parts
    at = max((i for i, part in enumerate(parts) if part == "lm_eval"), default=0)
    return str(Path(*parts[at:])) if parts[at : at + 2] == ("lm_eval", "tasks") else str(file)


def overridden(keys: Mapping[str, Entry], by: Mapping[str, Any], place: Place) -> dict[str, Entry]:
    """The keys with those of a group's entry in place of their own."""
    return {**keys, **{str(key): Entry(own, place) for key, own in by.items()}}


def lookup(keys: Mapping[str, Entry], key: str, default: Any = None) -> Any:
    """A key's value; the default where it is missing or null."""
    entry = keys.get(key)
    return default if entry is None or entry.value is None else entry.value


def file_of(entry: TaskEntry) -> Path:
    """The YAML file of a name. Raises `PluginError` if there is none."""
    if entry.path is None:
        raise PluginError(f"{entry.name} has no file of its own")
    return entry.path


def _listed(names: Any) -> list[Any]:
    return names if isinstance(names, list) else [names]
