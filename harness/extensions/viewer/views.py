"""Which view draws an episode, and its scenes as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from harness.api import Protocol, Task
from harness.api.errors import UserError
from harness.config.project import Project
from harness.transcripts.view_api import Scene, Transcript, View

from .generic import GenericView

_GENERIC = GenericView()


class Views:
    """The views of a project and its parents, nearest first; made once, because loading imports plugins.

    Attributes:
        problems: why some views cannot be used.
    """

    def __init__(self, project: Project) -> None:
        self.problems: list[str] = []
        self._views: list[View] = []
        for name in project.files("views"):
            try:
                self._views.append(project.load("views", name)())
            except (UserError, TypeError) as error:
                self.problems.append(f"view {name}: {error}")

    def choose(self, task: Task, protocol: Protocol) -> View:
        """The first view that draws this; the generic one where none does, or where asking fails."""
        for view in self._views:
            try:
                if view.draws(task, protocol):
                    return view
            except Exception as error:  # a plugin's bug: the others can still draw
                problem = f"view {type(view).__name__}: {type(error).__name__}: {error}"
                self.problems += [] if problem in self.problems else [problem]
        return _GENERIC

    def scenes(
        self, transcript: Transcript, task: Task | None, protocol: Protocol | None
    ) -> tuple[list[Scene], str | None]:
        """The scenes of an episode, one for the start and one a round, and a note where a view failed."""
        wanted = len(transcript.rounds) + 1
        note = None
        if task is not None and protocol is not None and transcript.case is not None:
            view = self.choose(task, protocol)
            try:
                drawn = list(islice(view.scenes(transcript, task), wanted + 1))  # a view may never end
                if len(drawn) == wanted:
                    return drawn, self._note() if view is _GENERIC else None
                gave = len(drawn) if len(drawn) < wanted else "too many"
                note = f"{type(view).__name__} gave {gave} scenes for {wanted - 1} rounds"
            except Exception as error:
                note = f"{type(view).__name__} failed: {type(error).__name__}: {error}"
        return list(_GENERIC.scenes(transcript, task)), self._note(note and f"{note:.400}; this is the generic picture")

    def _note(self, note: str | None = None) -> str | None:
        """The note, and what is wrong with views: where none draws, a broken one may have been meant for this."""
        return "; ".join(filter(None, (note, *(f"{problem:.300}" for problem in self.problems[:3])))) or None


def as_json(scenes: Iterable[Scene]) -> list[dict[str, Any]]:
    """Scenes for the page. What did not change is left out, and in a list it is null: a network is sent once.

    A key that is missing is as in the scene before. So is an entry that is null, of a list with the same length.
    """
    before: dict[str, Any] = {}
    result = []
    for scene in scenes:
        now = {part.name: _plain(getattr(scene, part.name)) for part in fields(Scene)}
        result.append(_changes(before, now))
        before = now
    return result


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, value in now.items():
        old = before.get(name)
        if name in before and old == value:
            continue
        if name == "sheets" and isinstance(old, list) and len(old) == len(value):
            value = [_sheet(one, other) for one, other in zip(old, value, strict=True)]
        elif isinstance(value, list):
            value = _entries(old, value)
        changed[name] = value
    return changed


def _sheet(old: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
    """A sheet as it changed; of one that grew by a column, rows are what came on."""
    if old == now:
        return None
    rows, before = now["rows"], old["rows"]
    if len(rows) == len(before) and all(new[: len(one)] == one for one, new in zip(before, rows, strict=True)):
        return {**now, "rows": [new[len(one) :] for one, new in zip(before, rows, strict=True)], "grown": True}
    return {**now, "rows": _entries(before, rows)} if old["title"] == now["title"] else now


def _entries(old: Any, now: Sequence[Any]) -> list[Any]:
    if not isinstance(old, list) or len(old) != len(now):
        return list(now)
    return [None if one == other else other for one, other in zip(old, now, strict=True)]


def _plain(value: Any) -> Any:
    """A part as JSON. `dataclasses.asdict` copies deeply, which takes ten times as long for 100 agents."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
