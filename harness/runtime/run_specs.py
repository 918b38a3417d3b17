"""Specs of runs, read back. What follows from a spec alone is made once for all runs of it: whoever compares runs has
hundreds of a few specs."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import api
from harness.api import Metric
from harness.api.run_files import SPEC
from harness.config import resolve, spec
from harness.config.plan import Plan, prepare, survey
from harness.config.project import Project
from harness.config.spec import Spec
from harness.config.yamls import MAX_BYTES
from harness.runtime.used_extensions import missing_extensions, without
from harness.storage.files import no_pipe

if TYPE_CHECKING:
    from harness.runtime.sources import Hashes

_KEPT: Final = 64
"""So many specs are kept, those last asked for."""


class RunPlan:
    """What runs of a spec have in common: their plan, in which models are stand-ins, and what its readers ask of it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """As `harness.config.plan.prepare`, which is done first."""
        return prepare(self.plan)

    @cached_property
    def cases(self) -> Mapping[str, str]:
        """`Survey.cases`. Raises what the task raises."""
        return survey(self.plan).cases

    @cached_property
    def code(self) -> Mapping[str, Hashes]:
        """The files that it uses, as `harness.runtime.sources.code`."""
        from harness.runtime.sources import code  # what loading a run does not need

        return code(self.plan)

    @property
    def is_of_folder(self) -> bool:
        """Whether a task reads what lies beside the spec: then runs in other folders have another plan."""
        return any(type(one.task).stands_in is not api.Task.stands_in for one in self.plan.conditions)


@dataclass
class _Known:
    """What was made of a spec; `plans`: whether models play → the plan."""

    spec: Spec
    metrics: Mapping[str, Metric] | None = None
    plans: dict[bool, RunPlan] = field(default_factory=dict)


class RunSpecs:
    """Reads specs of runs' folders. Files with the same content are one spec.

    Plugins and prompts are those that are there when a spec is first asked for: a command needs a reader of its own.

    Args:
        project: where names are looked up.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: OrderedDict[tuple[bytes, tuple[str, ...]], _Known] = OrderedDict()

    def read(self, folder: Path, meta: Mapping[str, Any]) -> tuple[Spec, dict[str, Metric]]:
        """A run's spec and metrics, which know what the run's record says of them.

        What extensions added that are gone is left out. Raises `SpecError`, `PluginError`, `DataError`.
        """
        missing = missing_extensions(meta)
        known = self._of(folder / SPEC, tuple(sorted(missing)), without(missing) if missing else None)
        if known.metrics is None:
            known.metrics = resolve.metrics(known.spec, self.project)
        own = {name: copy.copy(metric) for name, metric in known.metrics.items()}
        if meta.get("inner"):
            from harness.config.inner_engines import with_inner  # what only such a run needs

            own = with_inner(own, self.project)
        for name, metric in own.items():
            metric.recall(name, meta)
        return _standing_at(known.spec, str(folder / SPEC)), own

    def plan(self, folder: Path, meta: Mapping[str, Any]) -> RunPlan:
        """A run's plan, as far as runs of the spec have it in common. Raises as `read`."""
        known, plays = self._of(folder / SPEC), not meta.get("policies_only")
        if plays in known.plans:
            return known.plans[plays]
        from harness.engines.mock import Mock  # what loading a run does not need

        own = _standing_at(known.spec, str(folder / SPEC))
        made = RunPlan(resolve.plan(own, self.project, Mock() if plays else None))
        if not made.is_of_folder:
            known.plans[plays] = made
        return made

    def _of(
        self, file: Path, left_out: tuple[str, ...] = (), reduce: Callable[[dict[str, Any]], None] | None = None
    ) -> _Known:
        """What is known of the spec in a file without what extensions of these names added."""
        key = _digest(file), left_out
        if (known := self._known.get(key)) is None:
            known = _Known(spec.load(str(file), self.project, reduce=reduce))
            if known.spec.documents() != {str(file)}:  # it extends one that may be another one for another file
                return known
            self._known[key] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return known


def _digest(file: Path) -> bytes:
    try:
        with open(file, "rb", opener=no_pipe) as opened:
            return hashlib.sha256(opened.read(MAX_BYTES + 1)).digest()
    except OSError:  # `load` says what is wrong
        return b""


def _standing_at(shared: Spec, file: str) -> Spec:
    """The spec as it is read from a file of the same content."""
    if shared.file == file:
        return shared
    places = {path: replace(place, file=file) if place.file == shared.file else place
              for path, place in shared.places.items()}  # fmt: skip
    return replace(shared, file=file, places=places)
