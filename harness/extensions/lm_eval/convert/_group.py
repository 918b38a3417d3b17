"""lm-eval's groups and tags as one spec: a condition for each task, and the groups' rows in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api.errors import Place, PluginError
from harness.extensions.lm_eval.index import TaskEntry

from ._source import Entry, file_of, lookup, overridden, read
from ._task import Conversion, Note, TaskConversion, word


@dataclass
class GroupConversion:
    """Converts a group or tag: one condition for each task, and the group's rows in a table."""

    entries: Mapping[str, TaskEntry]
    notes: list[Note] = field(default_factory=list)
    tasks: dict[str, TaskConversion] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def spec(self, name: str, keys: Mapping[str, Entry]) -> Conversion:
        """One spec with a matrix over the group's tasks."""
        self._add(name, keys, {})
        if not self.tasks:
            hint = f"{{use: lm_eval, task: {name}}} plays them as they are."
            raise PluginError(f"{name} has no task in YAML", hint=hint)
        specs = {member: task.spec(member) for member, task in self.tasks.items()}
        cells: dict[str, dict[str, Any]] = {}
        for converted in specs.values():
            cells |= {metric["name"]: metric for metric in converted.spec["metrics"]}
        everywhere = [
            name for name in cells if all(name in (m["name"] for m in c.spec["metrics"]) for c in specs.values())
        ]
        metrics = [
            metric if name in everywhere or metric["use"] != "grade" else {**metric, "optional": True}
            for name, metric in cells.items()
        ]
        first = next(iter(cells))
        parts = ("task", "protocol", "prompts", "generation_kwargs")
        used = [part for part in parts if any(part in c.spec for c in specs.values())]
        members = [{"name": member, **{part: c.spec.get(part, {}) for part in used}} for member, c in specs.items()]
        table = {
            "title": name,
            "rows": "subtask",
            "cell": list(cells),
            "error": "sem",
            "digits": 4,
            "groups": self.rows,
        }
        spec = {
            "name": word(name),
            "description": f"lm-eval's group {name}, converted.",
            "matrix": {"subtask": members},
            **{part: f"${{subtask.{part}}}" for part in used},
            "metrics": metrics,
            "headline": next(c.spec["headline"] for c in specs.values() if c.spec["headline"]["cell"] == first),
            "tables": [{**table, "groups": [self._shown(row, cells) for row in self.rows]}],
        }
        return Conversion(
            spec, tuple(dict.fromkeys((*self.notes, *(note for c in specs.values() for note in c.notes))))
        )

    def _shown(self, row: dict[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
        """A group's row with the metrics that it aggregates."""
        wanted = [cell for cell in cells if cell.partition(",")[0] in row["cells"]] if "cells" in row else []
        rest = {key: value for key, value in row.items() if key != "cells"}
        return {**rest, "cells": wanted} if wanted else rest

    def _add(self, name: str, keys: Mapping[str, Entry], more: Mapping[str, Any]) -> list[str]:
        """Add a group's members; the titles of the rows that stand for it."""
        place = keys["task"].place
        shared = {key: entry.value for key, entry in keys.items() if key not in _GROUP_KEYS} | dict(more)
        titles = [title for member in lookup(keys, "task", []) for title in self._member(name, member, shared, place)]
        at = len(self.rows)
        for entry in _aggregations(lookup(keys, "aggregate_metric_list")):
            weight = "size" if entry.get("weight_by_size", True) else "equal"
            metrics = entry.get("metric")
            row = next((row for row in self.rows[at:] if row["weight"] == weight), None)
            if row is None:
                title = name if len(self.rows) == at else f"{name} ({weight})"
                row = {"title": title, "of": titles, "weight": weight, "cells": []}
                self.rows.append(row)
            row["cells"] += metrics if isinstance(metrics, list) else [metrics]
        return titles

    def _member(self, group: str, member: Any, shared: Mapping[str, Any], place: Place) -> Iterator[str]:
        more = {
            **shared,
            **({k: v for k, v in member.items() if k not in ("task", "group")} if isinstance(member, dict) else {}),
        }
        name = str(
            (member.get("task") if "group" not in member else member["group"]) if isinstance(member, dict) else member
        )
        entry = self.entries.get(name)
        if isinstance(member, dict) and "group" in member and entry is None:
            keys = {key: Entry(value, place) for key, value in member.items()}
            yield from self._add(name, keys, shared)
        elif entry is None:
            self.notes.append(Note("left out", place, "task", f"there is no task {name!r}"))
        elif entry.kind == "group":
            yield from self._add(name, read(file_of(entry)), more)
        elif entry.kind == "tag":
            for one in sorted(entry.members):
                yield from self._member(group, one, shared, place)
        elif entry.kind == "python":
            self.notes.append(Note("left out", place, "task", f"{name} is written in Python"))
        else:
            self.tasks[name] = TaskConversion(overridden(read(file_of(entry)), more, place))
            yield name


_GROUP_KEYS: Final = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag", "include"})


def _aggregations(value: Any) -> list[Mapping[str, Any]]:
    return [] if value is None else value if isinstance(value, list) else [value]
