"""The extensions of other people that a run uses: their code is part of what was run, as the project's plugins are.

A run names them in run.json (`extensions`), with hashes of their files among its `code` and their packages among its
`versions`. Extensions that ship are not listed: the version of harness stands for them.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.api.errors import SetupError
from harness.api.plugin import MOUNT
from harness.config.plan import Plan
from harness.plugins import manifests
from harness.plugins.extension import Extension

_ALWAYS: Final = ("abilities",)
"""What takes part in every run, whatever its spec says."""
_NAMED: Final = ("keys", "tables", "table_keys", "engines", "executors", "post_run")
"""The names by which a spec refers to an extension; run.json keeps them, for when the extension is gone."""


def extensions_of(plan: Plan) -> dict[str, Extension]:
    """Name → extension of a third party that the plan's spec, its plugins or all runs use."""
    return {name: one for name, one in manifests.of_third_parties().items() if _is_used(one, plan)}


def _is_used(one: Extension, plan: Plan) -> bool:
    points, tables = one.points, plan.spec.tables
    named = {word for table in tables for word in (*table, table.get("kind"))}
    if any(points[point] for point in _ALWAYS) or points["keys"].keys() & plan.spec.data.keys():
        return True
    if named & {*points["tables"], *points["table_keys"]}:
        return True
    if any(metric.measured_by in points["post_run"] for metric in plan.metrics.values() if metric.measured_by):
        return True
    executor = plan.spec.get("executor")
    if (executor.get("use") if isinstance(executor, Mapping) else executor) in points["executors"]:
        return True
    return any(_comes_from(cls, one) for cls in _classes(plan))


def _classes(plan: Plan) -> Iterator[type]:
    """The classes of all plugins of a plan, and what these derive from."""
    plugins: list[Any] = [*plan.engines.values(), *plan.metrics.values()]
    for condition in plan.conditions:
        plugins += [condition.task, condition.protocol, getattr(condition.protocol, "channel", None)]
        plugins += [group.policy() for group in condition.groups if group.policy is not None]
    for cls in {type(plugin) for plugin in plugins}:
        yield from cls.__mro__


def _comes_from(cls: type, one: Extension) -> bool:
    """Whether a class is defined in an extension's package, or in a project that it brings."""
    if f"{cls.__module__}.".startswith(f"{one.package}."):
        return True
    if not cls.__module__.startswith(MOUNT):
        return False
    mount = sys.modules[cls.__module__.partition(".")[0]]
    return any(Path(path).is_relative_to(one.file.parent) for path in mount.__path__)


def files(plan: Plan) -> dict[str, str]:
    """`extension:file` → SHA-256, for every Python file and manifest of the extensions that the plan uses."""
    return {
        f"{name}:{file.relative_to(one.file.parent)}": hashlib.sha256(file.read_bytes()).hexdigest()
        for name, one in extensions_of(plan).items()
        for file in [one.file, *sorted(one.file.parent.rglob("*.py"))]
    }


def descriptions(plan: Plan) -> dict[str, dict[str, Any]]:
    """What run.json says of them: name → package, its version, and the names that a spec may use of it."""
    return {
        name: {
            "package": one.distribution,
            "version": _version(one.distribution),
            **{point: sorted(one.points[point]) for point in _NAMED if one.points[point]},
            **({"metrics": metrics} if (metrics := _metrics(one, plan)) else {}),
        }
        for name, one in extensions_of(plan).items()
    }


def _metrics(one: Extension, plan: Plan) -> list[str]:
    """Which of the spec's metrics an extension defines, by the names that tables have for them."""
    return sorted(
        name for name, metric in plan.metrics.items() if any(_comes_from(cls, one) for cls in type(metric).__mro__)
    )


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # its folder is on the path, and it was never installed
        return None


def missing_extensions(meta: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of the extensions that a run.json names, those that cannot be used here."""
    here = manifests.extensions()
    return {name: dict(one) for name, one in (meta.get("extensions") or {}).items() if name not in here}


def advice(missing: Mapping[str, Mapping[str, Any]]) -> str:
    """What to install for extensions that are gone, in words."""
    parts = [f"the extension {name} of the package {one.get('package')} {one.get('version') or ''}".rstrip()
             for name, one in missing.items()]  # fmt: skip
    packages = " ".join(sorted({str(one.get("package")) for one in missing.values()}))
    return f"this run used {' and '.join(parts)}, which is not here: pip install {packages}"


def without(missing: Mapping[str, Mapping[str, Any]]) -> Callable[[dict[str, Any]], None]:
    """What takes all that extensions that are gone have added out of a spec's data.

    Their metrics go with the cells that show them, and with tables and a headline that show nothing else: their code
    knew how numbers of episodes become one.
    """
    names = {point: {text for one in missing.values() for text in one.get(point, ())} for point in (*_NAMED, "metrics")}
    kinds, keys, metrics = names["tables"], names["tables"] | names["table_keys"], names["metrics"]

    def trimmed(entry: Any) -> bool:
        """Take what is gone out of a table or a headline; whether it still shows something."""
        if not isinstance(entry, dict):
            return True
        if entry.get("kind") in kinds or keys & entry.keys():
            return False
        for key, value in entry.items() if metrics else ():
            if key in ("metrics", "also_show") and isinstance(value, list):
                entry[key] = [name for name in value if name not in metrics]
            elif key in ("unit", "digits", "uncertainty") and isinstance(value, dict):
                entry[key] = {name: one for name, one in value.items() if name not in metrics}
        said = {key: value for key, value in entry.items() if key not in ("title", "labels", "order", "note")}
        return entry.get("metrics") != [] and metrics.isdisjoint(_texts(said))

    def reduce(data: dict[str, Any]) -> None:
        for key in names["keys"] & data.keys():
            del data[key]
        if isinstance(tables := data.get("tables"), list):
            data["tables"] = [table for table in tables if trimmed(table)]
        if not trimmed(data.get("headline")):
            del data["headline"]
        if metrics and isinstance(entries := data.get("metrics"), list):
            data["metrics"] = [entry for entry in entries if _called(entry) not in metrics]
            if not data["metrics"]:
                raise SetupError(f"there is no number to show: {advice(missing)}")
            cells = [_called(entry) for entry in data["metrics"]]
            data["tables"] = data.get("tables") or [{"title": "Scores", "rows": "model", "metrics": cells}]

    return reduce


def _texts(data: Any) -> Iterator[str]:
    """Every text in plain data, but for keys."""
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _texts(value)
    elif isinstance(data, str):
        yield data


def _called(entry: Any) -> str:
    """The name that tables have for an entry of `metrics:`."""
    return str(entry.get("name", entry.get("use")) if isinstance(entry, dict) else entry)
