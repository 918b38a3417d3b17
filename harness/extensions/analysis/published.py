"""Published figures, read from `results/published/*.yaml`. The built-in file explains the format at its top."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from harness.api import Range
from harness.api.errors import DataError, Place, SpecError, UserError, near
from harness.config import spec, yamls
from harness.config.plan import Plan
from harness.config.project import Project, find
from harness.config.proposals import complete
from harness.config.spec import Spec
from harness.evaluation.run import Run
from harness.plugins.parameters import OPEN, fields, problems
from harness.tables import text
from harness.tables.published_figures import PublishedFigure, PublishedTable

_Figure = Annotated[float, Range(ge=-1e15, le=1e15)]


class RecordEntry(TypedDict):
    """A published figure as YAML writes it; its labels are beside these keys."""

    metric: str
    value: _Figure
    stderr: NotRequired[Annotated[_Figure | None, "standard error, as printed"]]
    std: NotRequired[Annotated[_Figure | None, "standard deviation, as printed"]]
    n: NotRequired[Annotated[int | None, "observations behind it"]]
    overall: NotRequired[Annotated[bool, "whether it is of a row's summary column"]]


class PublishedEntry(TypedDict):
    """A published table as YAML writes it (`published_figures.PublishedTable`)."""

    id: str
    source: str
    title: str
    records: list[Annotated[RecordEntry, OPEN]]
    covers: NotRequired[dict[str, list[Any]]]
    warnings: NotRequired[list[str]]
    profile: NotRequired[str | None]


class PublishedFile(TypedDict):
    """A file of `results/published`, which may say more about the publication."""

    tables: list[Annotated[PublishedEntry, OPEN]]


def load_published(path: Path) -> list[PublishedTable]:
    """Read one file, or every `*.yaml` of a folder (none if there is no such folder).

    A table's id is `<file name>/<id>`, e.g. "agentsnet/table2".

    Raises:
        DataError: with the place in the file, for anything that is not what it should be.
    """
    if not path.is_file():
        return [table for file in sorted(path.glob("*.yaml")) for table in load_published(file)]
    try:
        document = yamls.read(path)
    except UserError as error:
        raise DataError(f"cannot read published figures: {error.message}", place=error.place, hint=error.hint) from None
    for where, what in problems(document.data, Annotated[PublishedFile, OPEN]):
        raise DataError(what, place=document.place(*where))
    ids: set[str] = set()
    tables = []
    for i, entry in enumerate(document.data["tables"]):
        if entry["id"] in ids:
            raise DataError(f"two tables are called {entry['id']!r}", place=document.place("tables", i, "id"))
        ids.add(entry["id"])
        own = {key: value for key, value in entry.items() if key in ("source", "title", "profile")}
        records = [_record(record) for record in entry["records"]]
        cells: set[str] = set()
        for j, record in enumerate(records):
            cell = text([record.metric, record.overall, dict(record.labels)])
            if cell in cells:
                message = f"two figures of {record.metric!r} for {text(dict(record.labels))}"
                raise DataError(message, place=document.place("tables", i, "records", j))
            cells.add(cell)
        covers = {label: tuple(values) for label, values in entry.get("covers", {}).items()}
        warnings = tuple(entry.get("warnings", ()))
        table_id = f"{path.stem}/{entry['id']}"
        tables.append(PublishedTable(id=table_id, records=tuple(records), covers=covers, warnings=warnings, **own))
    return tables


def _record(entry: Mapping[str, Any]) -> PublishedFigure:
    keys = fields(RecordEntry)
    labels = {label: value for label, value in entry.items() if label not in keys}
    return PublishedFigure(labels, **{key: value for key, value in entry.items() if key in keys})


def of_run(run: Run) -> list[PublishedTable]:
    """All published tables, `against` a run."""
    return against((table for file in _files(find()) for table in _read(file, file.stat().st_mtime_ns)), run)


def unknown(plays: Sequence[tuple[Plan, Place]]) -> Iterator[SpecError]:
    """Published tables that the tables of a spec name, and that there are not."""
    plan = plays[0][0]
    for i, entry in enumerate(plan.spec.tables):
        cited = entry.get("published", [])
        cited = [cited] if isinstance(cited, str) else cited
        known = _known_ids(plan.project, cited) if cited else []
        for name in (name for name in cited if name not in known):
            place = plan.spec.place("tables", i)
            yield SpecError(f"published: unknown table {name!r}. {near(name, known)}", place=place)


def _known_ids(project: Project, cited: Iterable[str]) -> list[str]:
    """The ids of the published tables in the files that some ids name; in all files, where these have none."""
    stems = {name.partition("/")[0] for name in cited}
    files = _files(project)
    named = [file for file in files if file.stem in stems]  # reading all takes longest of all
    return [table.id for file in named or files for table in _read(file, file.stat().st_mtime_ns)]


def _files(project: Project) -> list[Path]:
    return [file for folder in project.published() for file in sorted(folder.glob("*.yaml"))]


@functools.lru_cache(256)
def _read(file: Path, changed: int) -> list[PublishedTable]:
    return load_published(file)


def against(published: Iterable[PublishedTable], run: Run) -> list[PublishedTable]:
    """Published tables; those that a run's tables show with what it plays otherwise than the profile behind each
    (`PublishedTable.differs`).

    Compared are task, protocol and prompts of the conditions that run and profile share, and the parameters of the
    metrics that have figures.

    Raises:
        SpecError: for a profile that is not a spec of the project.
    """
    profiles: dict[str, Spec] = {}
    project, tables, shown = find(), [], {name for table in run.table_specs for name in table.published}
    for table in published:
        if table.profile is not None and table.id in shown:
            if table.profile not in profiles:
                profiles[table.profile] = complete(spec.load(table.profile, project), project)
            table = dataclasses.replace(table, differs=_differs(table, run.spec, profiles[table.profile], project))
        tables.append(table)
    return tables


def _differs(table: PublishedTable, run: Spec, profile: Spec, project: Project) -> str | None:
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
    listed = "; ".join([*other][:8]) + ("; …" if len(other) > 8 else "")
    return f"This run is not the profile {profile.name}: {listed}. `--spec {profile.name}` plays it."


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
        take(
            key,
            {f.name: f.default for f in dataclasses.fields(plugin) if f.init and f.default is not dataclasses.MISSING}
            | own,
        )
    for entry in data.get("metrics", []):
        if isinstance(entry, Mapping) and entry.get("name", entry.get("use")) in metrics:
            take(f"metric {entry.get('name', entry.get('use'))}", {k: v for k, v in entry.items() if k != "name"})
    return settings
