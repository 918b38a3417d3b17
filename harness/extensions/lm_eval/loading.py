"""Tasks by the package's own objects: first what their YAML says, their data only when they are needed."""

from __future__ import annotations

import contextlib
import copy
import fnmatch
import functools
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.api.errors import PluginError, UserError
from harness.plugins import approvals
from harness.plugins.needed_approval import NeededApproval

from . import _package, task_approvals, task_index
from ._checks import check
from ._task_errors import UnreadableDataError, explain_error
from .data import LocalData
from .programs import in_place_of_the_metric
from .reply_grader import Origin
from .requests import Settings
from .single_task import SingleTask
from .task_approvals import as_approved

_LOCK = threading.Lock()
_COUNT = itertools.count()


@dataclass(frozen=True)
class LoadedTasks:
    """What names, patterns and files stand for.

    Attributes:
        leaves: the tasks by name, in the package's order.
        groups: the package's `Group` objects by name, those of groups in groups too.
    """

    leaves: Mapping[str, SingleTask] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)


def load(
    names: Sequence[str],
    include_path: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    data: LocalData | None = None,
    settings: Settings | None = None,
) -> LoadedTasks:
    """Load tasks, groups and tags without their data.

    Args:
        names: as for `lm_eval --tasks`: names, patterns with `*`, or YAML files.
        include_path: folders with more tasks in YAML.
        metadata: for the tasks' own use.
        data: local files in place of their data sets.
        settings: what to ask each task for.

    Raises:
        PluginError: an unknown name, or a task that the package cannot make.
        SetupError, DataError: as `index.entries`; a task in Python whose data are not there.
        NotApprovedError: it would run files of others that are not approved; none of them has run.
    """
    wanted, known = _tasks_of(names, include_path)
    approvals.require(_needed(wanted, known, data))
    from lm_eval.tasks import TaskManager, _factory
    from lm_eval.tasks._index import Entry, Kind

    kinds = {"task": Kind.TASK, "python": Kind.PY_TASK, "group": Kind.GROUP, "tag": Kind.TAG}
    lazy = _lazy_class()
    with _LOCK, _package.quietly(), in_place_of_the_metric(), as_approved():
        manager = TaskManager(include_defaults=False, metadata=dict(metadata or {}))
        manager.task_index.update(
            {
                entry.name: Entry(entry.name, kinds[entry.kind], entry.path, None, set(entry.members))
                for entry in known.values()
            }
        )
        usual = _factory.ConfigurableTask
        _factory.ConfigurableTask = lazy  # its data wait until `SingleTask.open`
        try:
            loaded = manager.load(wanted)
        except UserError:
            raise
        except Exception as error:
            if str(error).startswith("Duplicate task"):
                hint = "Leave one of them out: `harness list tasks --lm_eval` shows which are groups and tags."
                raise PluginError(str(error), hint=hint, at=("task",)) from None
            at = known[wanted[0]].path if wanted[0] in known else Path(wanted[0])
            raise explain_error(error, ", ".join(wanted), at, "while it is loaded") from error
        finally:
            _factory.ConfigurableTask = usual
    if not loaded["tasks"]:
        raise PluginError(f"{', '.join(names)} has no tasks", at=("task",))
    data, settings = data or LocalData(), settings or Settings()
    arguments = (tuple(names), tuple(include_path), dict(metadata or {}), data, settings)
    origin = Origin(next(_COUNT), arguments)
    leaves = {name: SingleTask(name, task, data, settings, origin) for name, task in loaded["tasks"].items()}
    for leaf in leaves.values():
        check(leaf)
    approvals.require(_needed(wanted, known, data))  # no file was another one meanwhile
    return LoadedTasks(leaves, loaded.get("groups", {}))


def needed(
    names: Sequence[str], include_path: Sequence[str] = (), data: LocalData | None = None
) -> list[NeededApproval]:
    """The code of others that loading these tasks would run. Arguments and errors as in `load`; runs nothing."""
    return _needed(*_tasks_of(names, include_path), data)


def _needed(
    wanted: Sequence[str], known: Mapping[str, task_index.TaskEntry], data: LocalData | None
) -> list[NeededApproval]:
    files = task_approvals.needed(wanted, known)
    if data is not None and data.dataset_kwargs.get("trust_remote_code"):
        what = f"code that comes with the data of {', '.join(wanted)}"
        facts = {"tasks": sorted(wanted), "kwargs": dict(data.dataset_kwargs)}
        files.append(NeededApproval.declared(what, facts, why="dataset_kwargs: trust_remote_code"))
    return files


def _tasks_of(
    names: Sequence[str], include_path: Sequence[str]
) -> tuple[list[str], Mapping[str, task_index.TaskEntry]]:
    """The tasks, groups, tags and files that names and patterns stand for, and the index."""
    specs, folders = _resolved(names, include_path)
    known = task_index.entries(folders, specs)
    wanted: list[str] = []
    for spec in specs:
        matches = fnmatch.filter(known, spec) if "*" in spec else []
        whole = [known[name] for name in matches if known[name].kind in ("group", "tag")]
        inner = {member for entry in whole for member in entry.members}  # they come with it
        wanted += sorted({*matches} - inner) if matches else [spec]
    for spec in wanted:
        if spec not in known and not Path(spec).is_file():
            raise task_index.unknown(spec, known)
    return wanted, known


def _resolved(names: Sequence[str], include_path: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Names, with files as absolute paths, and folders to look in: those of YAML files too, for a group's members."""
    folders = [Path(folder).expanduser() for folder in include_path]
    specs = []
    for name in names:
        file = Path(name).expanduser()
        if file.suffix in (".yaml", ".yml") and file.is_file():
            specs.append(str(file.resolve()))
            if file.resolve().parent not in [folder.resolve() for folder in folders]:
                folders.append(file.resolve().parent)
        else:
            specs.append(name)
    return specs, folders


class _LaterError(Exception):
    """Ends the making of a task where its data would be loaded."""


@functools.cache
def _lazy_class() -> type[Any]:
    """`ConfigurableTask`, whose making stops before its data are loaded and is done again when they are needed."""
    from lm_eval.api.task import ConfigurableTask

    class LazyTask(ConfigurableTask):  # type: ignore[misc]
        """A task whose data are loaded by `open_data`."""

        _local: LocalData | None = None

        def __init__(self, *arguments: Any, config: Any = None, **more: Any) -> None:
            self._config_as_read = copy.deepcopy(config)
            with contextlib.suppress(_LaterError):
                super().__init__(*arguments, config=config, **more)

        def open_data(self, local: LocalData) -> None:
            """Make the task whole."""
            self._local = local
            super().__init__(config=copy.deepcopy(self._config_as_read))

        def download(self, dataset_kwargs: Any = None, **more: Any) -> None:
            if self._local is None:
                raise _LaterError
            path, name = self.DATASET_PATH, self.DATASET_NAME
            try:
                if self._local.replaces_hub:
                    self.dataset = self._local.load(path, name, self._splits())
                else:
                    super().download({**(dataset_kwargs or {}), **self._local.dataset_kwargs}, **more)
            except UserError:
                raise
            except Exception as error:
                if callable(self.config.custom_dataset):
                    raise
                files = (dataset_kwargs or {}).get("data_files")
                what = f"the data set {path}" + (f" ({name})" if name else "") + (f", files {files}" if files else "")
                raise UnreadableDataError(what) from error

        def _splits(self) -> list[str]:
            """The split with the documents, and the one with examples, which the package reads in any case."""
            config, shots = self.config, self.fewshot_cfg
            asked = config.test_split or config.validation_split
            examples = shots.split or (None if shots.samples is not None else config.training_split)
            return [split for split in dict.fromkeys((asked, examples)) if split]

    return LazyTask
