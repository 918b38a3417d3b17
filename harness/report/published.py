"""Published figures, read from `results/published/*.yaml`. The built-in file explains the format at its top."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Final

from harness.config import spec, yamls
from harness.config.project import Project
from harness.config.spec import Spec
from harness.errors import DataError, Place, UserError
from harness.tables import Published, Record, text

_RESERVED: Final = frozenset({"metric", "value", "stderr", "std", "n", "overall"})


def load_published(path: Path) -> list[Published]:
    """Read one file, or every `*.yaml` of a folder (none if there is no such folder).

    A table's id is `<file name>/<id>`, e.g. "agentsnet/table2".

    Raises:
        DataError: with file and table, for anything that is not what it should be.
    """
    if not path.is_file():
        return [table for file in sorted(path.glob("*.yaml")) for table in load_published(file)]
    try:
        document = yamls.read(path).data
    except UserError as error:
        raise DataError(f"cannot read published figures: {error.message}", place=error.place) from error
    try:
        entries = _typed(_mapping(document, "the file").get("tables"), list, "tables")
        tables = [_table(path.stem, entry) for entry in entries]
        if repeated := _repeated([table.id for table in tables]):
            raise DataError(f"two tables are called {repeated}")
    except DataError as error:
        raise DataError(error.message, place=Place(str(path))) from error
    return tables


def against(published: Iterable[Published], run: Spec, project: Project) -> list[Published]:
    """The published tables, with what a run plays otherwise than the profile behind each (`Published.differs`).

    Compared are task, protocol and prompts of the conditions that run and profile share, and the parameters of the
    metrics that have figures.

    Raises:
        SpecError: for a profile that is no spec of the project.
    """
    profiles: dict[str, Spec] = {}
    compared = []
    for table in published:
        name = table.profile
        if name is not None and name not in profiles:
            profiles[name] = spec.load(name, project)
        compared.append(
            table if name is None else replace(table, differs=_differs(table, run, profiles[name], project))
        )
    return compared


def _differs(table: Published, run: Spec, profile: Spec, project: Project) -> str | None:
    """One line on what is not as in the profile; None if all is."""
    metrics = {record.metric for record in table.records}
    theirs = {variant.id: variant for variant in profile.variants()}
    both = [(variant, theirs[variant.id]) for variant in run.variants() if variant.id in theirs]
    other: dict[str, None] = {}
    for mine, its in both:
        here, there = _settings(mine.data, metrics, project), _settings(its.data, metrics, project)
        for path in {**there, **here}:
            if here.get(path) != there.get(path):
                other[f"{path} is {here.get(path, 'not set')}, there {there.get(path, 'not set')}"] = None
    if not both:
        return f"The profile {profile.name} has none of this run's conditions."
    if not other:
        return None
    listed = "; ".join([*other][:_MOST]) + ("; …" if len(other) > _MOST else "")
    return f"This run is not the profile {profile.name}: {listed}. `--spec {profile.name}` plays it."


_MOST: Final = 8
"""So many differences are listed."""


def _settings(data: Mapping[str, Any], metrics: Collection[str], project: Project) -> dict[str, str]:
    """Dotted path → value as text, of what decides what is played and how it is counted, defaults included."""
    settings: dict[str, str] = {"prompts": text(data.get("prompts"))}

    def take(path: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                take(f"{path}.{key}", item)
        else:
            settings[path] = "none" if value is None else text(value)

    for key, kind in (("task", "tasks"), ("protocol", "protocols")):
        entry_of = data.get(key)
        own = dict(entry_of) if isinstance(entry_of, Mapping) else {"use": entry_of}
        plugin = project.load(kind, str(own["use"]))
        take(key, {f.name: f.default for f in fields(plugin) if f.init and f.default is not MISSING} | own)
    for entry in data.get("metrics", []):
        if isinstance(entry, Mapping) and entry.get("name", entry.get("use")) in metrics:
            take(f"metric {entry.get('name', entry.get('use'))}", {k: v for k, v in entry.items() if k != "name"})
    return settings


def _table(stem: str, entry: Any) -> Published:
    fields = _mapping(entry, "a published table")
    name = _typed(fields.get("id"), str, "id")
    try:
        records = tuple(_record(record) for record in _typed(fields.get("records"), list, "records"))
        covers = _mapping(fields.get("covers", {}), "covers")
        table = Published(
            id=f"{stem}/{name}",
            source=_typed(fields.get("source"), str, "source"),
            title=_typed(fields.get("title"), str, "title"),
            records=records,
            covers={label: tuple(_typed(values, list, f"covers {label}")) for label, values in covers.items()},
            warnings=tuple(_typed(w, str, "a warning") for w in _typed(fields.get("warnings", []), list, "warnings")),
            profile=None if fields.get("profile") is None else _typed(fields["profile"], str, "profile"),
        )
        places = [(r.metric, r.overall, *sorted((k, text(v)) for k, v in r.labels.items())) for r in records]
        if repeated := _repeated(places):
            raise DataError(f"two figures for {repeated}")
    except DataError as error:
        raise DataError(f"{name}: {error.message}") from error
    return table


def _record(entry: Any) -> Record:
    fields = _mapping(entry, "a record")
    n, overall = fields.get("n"), fields.get("overall", False)
    errors = {name: fields[name] for name in ("stderr", "std") if fields.get(name) is not None}
    if isinstance(n, bool) or not isinstance(n, int | None) or not isinstance(overall, bool):
        raise DataError(f"n of {entry!r:.120} is a whole number, overall is true or false")
    return Record(
        labels={label: value for label, value in fields.items() if label not in _RESERVED},
        metric=_typed(fields.get("metric"), str, f"the metric of {entry!r:.120}"),
        value=_number(fields.get("value"), f"the value of {entry!r:.120}"),
        n=n,
        overall=overall,
        **{name: _number(error, f"the {name} of {entry!r:.120}") for name, error in errors.items()},
    )


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{what} is not a finite number")
    return value


def _mapping(value: Any, what: str) -> dict[str, Any]:
    mapping: dict[str, Any] = _typed(value, dict, what)
    return mapping


def _typed(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"{what} should be a {_KINDS[kind]}, found {value!r:.80}")
    return value


_KINDS: Final[dict[type, str]] = {dict: "mapping", list: "list", str: "text"}


def _repeated(values: list[Any]) -> Any:
    return next((value for value, count in Counter(values).items() if count > 1), None)
