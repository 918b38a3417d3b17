"""A run as lm-eval writes one: `MODEL/results_DATE.json`, and beside it `samples_TASK_DATE.jsonl` of every task.

The layout is that of lm-eval 0.4 (its `EvalResults` and `SampleResult`); tests read it with the package. A task is what
lm-eval would call one: a value of the label `task`, or the spec; where a run has several conditions, one for each.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

from harness.api import Metric
from harness.api.printable import clean_name
from harness.evaluation.run import Run
from harness.extensions.exports.form import ExportForm
from harness.extensions.exports.texts import as_json, plain
from harness.report.provenance import ended_early, who_answered
from harness.tables import Cell, EpisodeScore
from harness.tables.group_rows import RowGroup, combined
from harness.tables.groups import Groups
from harness.tables.scores import by_condition, finite, measured
from harness.tables.table import text
from harness.transcripts.view_api import RecordedTurn, Transcript

from ._export_run import provenance, seeds
from ._export_tasks import OwnTasks, own_tasks

Json = dict[str, Any]
_LABEL: Final = "task"
_MAX_NAME_CHARS: Final = 150  # characters of a task in a file's name
_NO_FILTER: Final = "none"


@dataclass
class _Task:
    """What is one task in lm-eval's words: the episodes of a condition, or those of them with one label `task`.

    Attributes:
        key: its name in files.
        alias: its name in tables.
        label: its value of the label `task`, as text; the empty text where the run has none.
        condition: the condition.
        scores: its episodes.
        documents: case → number, in the order of the plan.
        hashes: of the samples that were written.
    """

    key: str
    alias: str
    label: str
    condition: str
    scores: list[EpisodeScore]
    documents: dict[str, int] = field(default_factory=dict)
    hashes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for score in self.scores:
            self.documents.setdefault(score.case, len(self.documents))


def files_of(run: Run) -> tuple[str, ...]:
    """The files that `write_results` writes."""
    date = _date(run)
    names = []
    for model, tasks in _tasks(run).items():
        names.append(f"{_folder(model)}/results_{date}.json")
        names += [f"{_folder(model)}/samples_{task.key}_{date}.jsonl" for task in tasks]
    return tuple(names)


def write_results(run: Run, folder: Path) -> tuple[int, int]:
    """Write results and samples of a finished run, one episode in memory at a time.

    Args:
        run: the run.
        folder: exists.

    Returns:
        how many tasks and samples there are.

    Raises:
        DataError: the journal is damaged.
        OSError: a file cannot be written.
    """
    models = _tasks(run)
    for model in models:
        (folder / _folder(model)).mkdir(exist_ok=True)
    own = own_tasks(run)
    samples = _write_samples(run, models, folder, own)
    for model, tasks in models.items():
        path = folder / _folder(model) / f"results_{_date(run)}.json"
        results = _results(run, model, tasks, own)
        path.write_text(json.dumps(plain(results), indent=2, ensure_ascii=False), "utf-8")
    return sum(map(len, models.values())), samples


# ---------------------------------------------------------------------------------------------- tasks


def _tasks(run: Run) -> dict[str, list[_Task]]:
    """Model → its tasks, in order of first appearance."""
    groups = by_condition(run.scores)
    several = len({condition for _, condition in groups}) > 1
    result: dict[str, list[_Task]] = {}
    for (model, condition), scores in groups.items():
        tasks = result.setdefault(model, [])
        for label, own in _by_label(scores).items():
            alias = label or run.spec.name
            if several:
                alias = f"{alias} {condition}"
            tasks.append(_Task(_free_key(alias, [task.key for task in tasks]), alias, label, condition, own))
    return result


def _by_label(scores: Iterable[EpisodeScore]) -> dict[str, list[EpisodeScore]]:
    result: dict[str, list[EpisodeScore]] = {}
    for score in scores:
        label = score.labels.get(_LABEL)
        result.setdefault("" if label is None else text(label), []).append(score)
    return result


def _free_key(alias: str, taken: Sequence[str]) -> str:
    """A name for files that no other task has."""
    key = re.sub(r"[^\w.,=+-]+", "_", clean_name(alias)).strip("._") or "task"
    if len(key.encode()) > _MAX_NAME_CHARS or key in taken:
        key = f"{key[: _MAX_NAME_CHARS // 4]}_{_hash(alias)[:8]}"
    return key


def _folder(model: str) -> str:
    return re.sub(r"[\"<>:/|\\?*\[\]\s]+", "__", clean_name(model)).strip(".")[:_MAX_NAME_CHARS] or "model"


def _date(run: Run) -> str:
    """When the run ended, as lm-eval writes it into file names; the same run always gives the same."""
    when = datetime.fromisoformat(str(run.meta.get("end") or run.meta["start"])).replace(tzinfo=None)
    return when.isoformat(timespec="microseconds").replace(":", "-")


# ---------------------------------------------------------------------------------------------- results


def _results(run: Run, model: str, tasks: Sequence[_Task], own: OwnTasks | None) -> Json:
    meta = run.meta
    start = datetime.fromisoformat(str(meta["start"]))
    hidden = run.headline.metric if own is None and run.headline_missing is not None else None
    shown = {name: metric for name, metric in run.metrics.items() if name != hidden}
    by_task = {task.key: _numbers(task, shown, run.cluster) for task in tasks}
    groups, children = _groups(run, tasks, by_task) if own is None else ({}, {})
    engine = ((meta.get("identity") or {}).get("engine") or {}).get("engine")  # the class; None if policies play
    config: Json = {"model": model if engine is None else str(engine).lower()}
    config["model_args"] = (meta.get("engine_args") or {}).get("model") or {}
    config |= {"batch_size": None, "batch_sizes": [], "device": None, "use_cache": None, "limit": run.spec.get("limit")}
    config |= {"gen_kwargs": dict(meta.get("generation_kwargs") or {}), "random_seed": run.spec.get("seed")}
    config |= seeds(run)
    versions = meta.get("versions") or {}
    results = {
        "results": by_task | groups,
        **({"groups": groups} if groups else {}),
        "group_subtasks": children,
        "configs": {task.key: _config(run, task) for task in tasks},
        "versions": dict.fromkeys([*by_task, *groups], versions.get("harness")),
        "n-shot": {task.key: _shots(run) for task in tasks},
        "higher_is_better": {task.key: _directions(by_task[task.key], run.metrics) for task in tasks},
        "n-samples": {
            task.key: {"original": len(task.documents), "effective": by_task[task.key]["sample_len"]} for task in tasks
        },
        "config": config,
        "git_hash": (meta.get("git") or {}).get("commit"),
        "date": start.timestamp(),
        "transformers_version": versions.get("transformers"),
        "lm_eval_version": versions.get("lm_eval"),
        "harness_version": versions.get("harness"),
        **provenance(run),
        "task_hashes": {task.key: _hash("".join(task.hashes)) for task in tasks},
        "model_source": config["model"],
        "model_name": model,
        "model_name_sanitized": _folder(model),
        "total_evaluation_time_seconds": str(meta.get("duration")),
    }
    if own is not None:
        own.describe(results, {task.key: task.label for task in tasks})
    return results


def _numbers(task: _Task, metrics: Mapping[str, Metric], cluster: Sequence[str]) -> Json:
    """A task's numbers: `"METRIC,FILTER"` and `"METRIC_stderr,FILTER"`, those of metrics without a number left out.

    So is the metric of the headline where too few turns of the model were parsed, and `configs` says why;
    but not of lm-eval's own tasks, which count a reply that is not read as wrong.
    """
    row: Json = {"name": task.key, "alias": task.alias, "sample_len": 0}
    for name, metric in metrics.items():
        stat = measured(metric, task.scores, name, cluster)
        if finite(stat.value) is not None:
            own, its_filter = _parts(name)
            row[f"{own},{its_filter}"] = stat.value
            row[f"{own}_stderr,{its_filter}"] = "N/A" if finite(stat.stderr) is None else stat.stderr
    played = {score.case for score in task.scores if score.error is None}
    row["sample_len"] = len(played)
    return row


def _parts(name: str) -> tuple[str, str]:
    """(metric, filter) of a metric's name in a spec."""
    own, _, its_filter = name.partition(",")
    return own, its_filter or _NO_FILTER


def _groups(run: Run, tasks: Sequence[_Task], rows: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, list[str]]]:
    """Group → its numbers, and group → the names of what it directly consists of, from the tables' `groups:`."""
    keys = {task.label: task.key for task in tasks if task.label}
    groups: dict[str, Json] = {}
    children: dict[str, list[str]] = {}
    if len(keys) < len(tasks):  # several conditions: their rows are not part of one mean
        return groups, children
    for table, entry in zip(run.table_specs, run.spec.tables, strict=True):
        declared = next((key.groups for key in table.added if isinstance(key, Groups)), ())
        for group, written in zip(declared, entry.get("groups", ()), strict=True):
            members = [keys[name] for name in group.members if name in keys]
            if members:
                children[group.title] = [keys.get(name, name) for name in map(text, written["of"])]
                row = groups.setdefault(group.title, {"alias": group.title, "name": group.title})
                row |= _group_row(group, table.cells, [rows[key] for key in members])
    return groups, children


def _group_row(group: RowGroup, cells: Iterable[str], members: Sequence[Json]) -> Json:
    row: Json = {"sample_len": sum(member["sample_len"] for member in members)}
    for cell in group.cells or cells:
        own, its_filter = _parts(cell)
        value, stderr = f"{own},{its_filter}", f"{own}_stderr,{its_filter}"
        mean = combined(
            [
                Cell(
                    value=member[value],
                    stderr=error if (error := member[stderr]) != "N/A" else None,
                    n=member["sample_len"],
                )
                for member in members
                if value in member
            ],
            group.weight,
        )
        if mean.value is not None:
            row |= {value: mean.value, stderr: "N/A" if mean.stderr is None else mean.stderr}
    return row


def _config(run: Run, task: _Task) -> Json:
    own = run.spec.get("task")
    return {
        "task": task.key,
        "task_alias": task.alias,
        "repeats": run.spec.get("repeats"),
        "num_fewshot": _shots(run),
        "metadata": {"version": _version(run), "condition": task.condition}
        | ({} if (why := run.headline_missing) is None else {"headline_missing": why})
        | ({"who_answered": who} if (who := [*who_answered(run.meta)]) else {})
        | ({} if (enough := ended_early(run.meta)) is None else {"ended_early": enough}),
        "harness": {"task": own, "protocol": run.spec.get("protocol"), "prompts": run.spec.get("prompts")},
    }


def _version(run: Run) -> Any:
    return (run.meta.get("versions") or {}).get("harness")


def _shots(run: Run) -> int:
    task = run.spec.get("task")
    shots = task.get("num_fewshot") if isinstance(task, Mapping) else None
    return shots if isinstance(shots, int) else 0


def _directions(row: Json, metrics: Mapping[str, Metric]) -> Json:
    """Metric → whether higher is better, None if the metric does not say."""
    return {
        own: getattr(metric, "higher_is_better", None)
        for name, metric in metrics.items()
        if ",".join(_parts(name)) in row and (own := _parts(name)[0])
    }


# ---------------------------------------------------------------------------------------------- samples


def _write_samples(run: Run, models: Mapping[str, Sequence[_Task]], folder: Path, own: OwnTasks | None) -> int:
    """One line an episode and filter, in the order in which episodes finished."""
    count = 0
    tasks: dict[str, tuple[_Task, EpisodeScore]] = {
        score.id: (task, score) for of in models.values() for task in of for score in task.scores
    }
    filters: dict[str, list[str]] = {}
    for name in run.metrics:
        filters.setdefault(_parts(name)[1], []).append(name)
    with contextlib.ExitStack() as files:
        targets: dict[int, TextIO] = {}
        for model, of in models.items():
            for task in of:
                path = folder / _folder(model) / f"samples_{task.key}_{_date(run)}.jsonl"
                targets[id(task)] = files.enter_context(path.open("x", encoding="utf-8"))
        for transcript in run.transcripts():
            if transcript.id not in tasks:
                continue
            task, score = tasks[transcript.id]
            for its_filter, names in (filters or {_NO_FILTER: []}).items():
                if own is not None:
                    names = [name for name in names if own.has(task.label, ",".join(_parts(name)))]
                sample = _sample(transcript, score, task, its_filter, names)
                if own is not None and not _replace(sample, transcript, own, its_filter):
                    continue
                task.hashes.append(sample["doc_hash"] + sample["prompt_hash"] + sample["target_hash"])
                targets[id(task)].write(as_json(sample) + "\n")
                count += 1
    return count


def _sample(transcript: Transcript, score: EpisodeScore, task: _Task, its_filter: str, names: Iterable[str]) -> Json:
    doc = _document(transcript)
    target = "" if transcript.case is None or transcript.case.target is None else _text(transcript.case.target)
    turns = [turn for turn in transcript.turns if turn.move is not None]
    prompts = [_prompt(turn) for turn in turns]
    values = {_parts(name)[0]: value for name in names if (value := _value(transcript, score, name)) is not None}
    return {
        "doc_id": task.documents[score.case],
        "doc": doc,
        "target": target,
        "arguments": {f"gen_args_{i}": {"arg_0": prompt, "arg_1": {}} for i, prompt in enumerate(prompts)},
        "resps": [_replies(turn) for turn in turns],
        "filtered_resps": [_answer(transcript)],
        "filter": its_filter,
        "metrics": list(values),
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(prompts[0] if prompts else ""),
        "target_hash": _hash(target),
        "repeat": transcript.repeat,
        "error": transcript.error,
        **values,
    }


def _replace(sample: Json, transcript: Transcript, own: OwnTasks, its_filter: str) -> bool:
    """Put what the package's own task says into a sample; False if the task has no such filter."""
    case, outcome = transcript.case, transcript.outcome
    if case is None or outcome is None:
        return True
    samples = outcome.facts.get("samples")
    alone = samples is not None and outcome.group is None
    parts = own.sample(case, list(samples or ()) if alone else [outcome.group], its_filter)
    if parts is None:
        return False
    document, prompt = parts.pop("doc_text"), parts.pop("prompt_text")
    if not alone:  # what several agents were sent and replied stays
        parts = {name: parts[name] for name in ("doc_id", "doc", "target", "filtered_resps")}
    sample |= parts | {"doc_hash": _hash(document), "target_hash": _hash(parts["target"])}
    if alone:
        sample["prompt_hash"] = _hash(prompt)
    return True


def _document(transcript: Transcript) -> Json:
    doc: Json = {"id": transcript.case_id}
    if transcript.case is not None:
        doc |= transcript.case.public
    document: Json = plain(doc)
    return document


def _prompt(turn: RecordedTurn) -> str:
    """What the agent was sent: one text as it is, several messages as JSON, as lm-eval logs those of chat models."""
    if len(turn.prompt) == 1:
        return turn.prompt[0][1]
    return as_json([{"role": role, "content": content} for role, content in turn.prompt])


def _replies(turn: RecordedTurn) -> list[str]:
    assert turn.move is not None
    replies = [call.shown for call in turn.move.calls]
    return replies[-1:] if replies else [_text(turn.move.action)]


def _answer(transcript: Transcript) -> str:
    if transcript.outcome is None:
        return ""
    answers = list(transcript.outcome.answers.values())
    group = transcript.outcome.group
    return _text(group if group is not None else answers[0] if answers else None)


def _value(transcript: Transcript, score: EpisodeScore, name: str) -> Any:
    if (record := score.record(name)) is not None:
        return record.value
    return score.number(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


def _hash(value: str) -> str:
    """As lm-eval's `hash_string`."""
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def _write_form(run: Run, folder: Path) -> str:
    tasks, samples = write_results(run, folder)
    return f"{tasks:,} {'task' if tasks == 1 else 'tasks'}, {samples:,} samples"


FORM: Final = ExportForm(files_of, _write_form)
