"""A run as an Inspect log (`.eval`): one sample per episode, one span per agent, a second timeline by rounds.

An Inspect log is a ZIP file of JSON documents; this is version 2 of their layout. It is written here, and not by
`inspect_ai`, because the package's own writer needs all samples in memory. Tests read the logs with the package.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness.api import CorpusMetric, RatioMetric
from harness.api.printable import clean_name
from harness.evaluation.run import Run
from harness.report.provenance import ended_early, who_answered
from harness.tables import EpisodeScore
from harness.tables.scores import measured
from harness.transcripts.view_api import Finding, Transcript

from ._headline import headline_cell, metrics_of
from ._inspect_events import Events, Json, added, completed, output_of, timestamp
from ._inspect_inner import config_of
from .form import ExportForm
from .texts import as_json, plain

VERSION: Final = 2
_MAX_CONDITIONS: Final = 32
_HEADLINE: Final = "headline"
_SHORT: Final = 1_000  # characters of an input in the list of samples


def log_name(run: Run) -> str:
    """The log's file name, as Inspect composes it: time, task, id. The same run always gives the same."""
    start = datetime.fromisoformat(str(run.meta["start"])).astimezone(UTC)
    task = re.sub(r"[^A-Za-z0-9.-]+", "-", run.spec.name).strip("-") or "task"
    return f"{start:%Y-%m-%dT%H-%M-%S+00-00}_{task}_{_id(run, 'task')}.eval"


def write_log(run: Run, path: Path) -> tuple[int, int]:
    """Write the log of a finished run, one episode in memory at a time.

    Returns:
        how many episodes there are in it, and how many calls of models.

    Raises:
        DataError: the journal is damaged.
        OSError: the file cannot be written.
    """
    scores = {score.id: score for score in run.scores}
    usage: dict[str, Json] = {}
    calls = samples = 0
    start = datetime.fromisoformat(str(run.meta["start"])).astimezone(UTC)
    specification = _specification(run)
    with (
        zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive,
        tempfile.TemporaryFile("w+b", dir=path.parent) as summaries,
    ):

        def add(name: str, document: Any) -> None:
            archive.writestr(_member(name, start), as_json(document), zipfile.ZIP_DEFLATED)

        add("_journal/start.json", {"version": VERSION, "eval": specification, "plan": _PLAN})
        for transcript in run.transcripts():
            if (score := scores.get(transcript.id)) is None:
                continue
            sample = sample_of(run, transcript, score, start)
            add(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.write((",\n" if samples else "[").encode() + as_json(_summary(sample)).encode())
            for model, own in sample["model_usage"].items():
                usage[model] = added(usage.get(model, {}), own)
            calls += sum(event["event"] == "model" for event in sample["events"])
            samples += 1
        summaries.write(b"]" if samples else b"[]")
        summaries.seek(0)
        with archive.open(_member("summaries.json", start), "w", force_zip64=True) as member:
            shutil.copyfileobj(summaries, member)
        results = {"total_samples": len(run.scores), "completed_samples": samples, "scores": _results(run)}
        stats: Json = {"started_at": timestamp(start), "completed_at": str(run.meta.get("end") or timestamp(start))}
        stats |= {"model_usage": usage, "role_usage": {}}
        header = {"version": VERSION, "status": "success", "eval": specification, "plan": _PLAN}
        add("header.json", {**header, "results": results, "stats": stats})
    return samples, calls


def sample_of(run: Run, transcript: Transcript, score: EpisodeScore, start: datetime) -> Json:
    """An episode as a sample.

    The journal has no times of day but how long each call took. So the sample begins at `start`, a round lasts as long
    as its slowest agent, and the next round begins when all are done. Where no call has a latency (policies), a turn
    takes one second and the sample has no `total_time`.
    """
    name = _id(run, transcript.id)
    events = Events(transcript, name, start)
    events.add_all(score.error)
    sample: Json = {
        "id": clean_name(transcript.id.rpartition("/")[0]),
        "epoch": transcript.repeat + 1,
        "input": _input(transcript),
        "target": "",
        "messages": _messages(transcript),
        "output": output_of(str(run.meta["model"]), _answer(transcript)),
        "scores": _scores(run, transcript, score),
        "metadata": _metadata(transcript, score) | _findings(transcript.findings),
        "store": {},
        "events": events.events,
        "timelines": events.timelines(),
        "model_usage": events.usage_of_models,
        "role_usage": events.usage_of_agents,
        "started_at": timestamp(start),
        "completed_at": timestamp(completed(start, events.clock)),
        "uuid": name,
        "attachments": {},
        "events_data": {"messages": events.messages, "calls": []},
    }
    if events.is_timed:
        sample |= {"total_time": events.clock, "working_time": events.clock}
    if score.error is not None:
        sample["error"] = {"message": score.error, "traceback": "", "traceback_ansi": ""}
    return sample


def _specification(run: Run) -> Json:
    """The log's `eval`. `trust_content: false` makes the viewer show what models wrote as plain text."""
    meta = run.meta
    about = {key: meta[key] for key in ("run", "spec_digest", "command", "versions", "hardware", "git") if key in meta}
    about |= {key: meta[key] for key in ("policies_only", "uses_ground_truth") if meta.get(key)}
    about |= {} if (why := run.headline_missing) is None else {"headline_missing": why}
    about |= {"who_answered": who} if (who := [*who_answered(meta)]) else {}
    about |= {} if (enough := ended_early(meta)) is None else {"ended_early": enough}
    cases = {score.id.rpartition("/")[0] for score in run.scores}
    return {
        "eval_id": _id(run, "eval"),
        "run_id": _id(run, "run"),
        "task_id": _id(run, "task"),
        "created": str(meta["start"]),
        "task": run.spec.name,
        "task_version": 0,
        "task_args": {},
        "dataset": {"name": run.spec.name, "samples": len(cases)},
        "model": str(meta["model"]),
        "model_generate_config": config_of(meta.get("generation_kwargs") or {}),
        "model_args": {},
        "config": {"epochs": int(run.spec.get("repeats", 1))},
        "packages": {"mas-eval-harness": str((meta.get("versions") or {}).get("harness", ""))},
        "metadata": plain(about),
        "viewer": {"trust_content": False},
    } | ({} if headline_cell(run) is None else {"headline_metric": {"score": run.headline.metric, "metric": _HEADLINE}})


_PLAN: Final[Json] = {"name": "plan", "steps": [], "config": {}}


def _results(run: Run) -> list[Json]:
    """Every metric over all episodes and, where there are few, in each condition; the headline is first."""
    rows = run.rows
    conditions = {row["condition"] for row in rows}
    results = []
    for name in metrics_of(run):
        metric = run.metrics[name]
        statistic = measured(metric, run.scores, name, run.cluster)
        if statistic.value is None:
            continue
        kind = "ratio" if isinstance(metric, RatioMetric) else "corpus" if isinstance(metric, CorpusMetric) else "mean"
        values: Json = {kind: {"name": kind, "value": statistic.value}}
        if name == run.headline.metric and (cell := headline_cell(run)) is not None:
            values = {_HEADLINE: {"name": _HEADLINE, "value": cell.value, "params": {"n": cell.n}}, **values}
        if statistic.stderr is not None:
            values["stderr"] = {"name": "stderr", "value": statistic.stderr}
        if 1 < len(conditions) <= _MAX_CONDITIONS:
            for row in rows:
                if row["metric"] == name and row["value"] is not None:
                    group = {"name": row["condition"], "group": kind, "value": row["value"]}
                    values[row["condition"]] = {**group, "params": {"n": row["n"]}}
        counts = {"scored_samples": statistic.n, "unscored_samples": len(run.scores) - statistic.n}
        results.append({"name": name, "scorer": name, **counts, "params": {}, "metrics": values})
    return results


def _scores(run: Run, transcript: Transcript, score: EpisodeScore) -> Json:
    """Metric → its score; none where the episode has no number."""
    result: Json = {}
    for metric in metrics_of(run):
        if (value := score.number(metric)) is not None:
            result[metric] = {"value": value}
            if (parts := score.parts(metric)) is not None:
                result[metric]["metadata"] = {"numerator": parts[0], "denominator": parts[1]}
            if len(result) == 1:
                result[metric]["answer"] = _answer(transcript)
    return result


def _metadata(transcript: Transcript, score: EpisodeScore) -> Json:
    facts: Json = {**score.labels, "condition": transcript.condition, "case": transcript.case_id}
    facts |= {"agents": len(transcript.agents), "rounds": len(transcript.rounds)}
    facts |= {key: getattr(score, key) for key in ("limited", "uses_ground_truth") if getattr(score, key)}
    if transcript.problem:
        facts["prompt_problem"] = transcript.problem
    facts |= {"players": {agent: _player(transcript, agent) for agent in transcript.agents}}
    if transcript.outcome is not None:
        facts["facts"] = dict(transcript.outcome.facts)
    return {key: plain(value) for key, value in facts.items()}


def _findings(found: Iterable[Finding]) -> Json:
    """Name → what was found out about the episode: a list, since there may be several references."""
    facts: Json = {}
    for one in found:
        facts.setdefault(f"found: {one.name}", []).append(plain(one.facts))
    return facts


def _player(transcript: Transcript, agent: str) -> str:
    return transcript.models.get(agent) or f"policy {transcript.policies.get(agent, '?')}"


def _input(transcript: Transcript) -> str:
    """What the first agent was asked first."""
    texts = [text for turn in transcript.turns[:1] for role, text in turn.prompt if role == "user"]
    return texts[0] if texts else transcript.case_id


def _answer(transcript: Transcript) -> str:
    outcome = transcript.outcome
    if outcome is None:
        return ""
    answer: Any = outcome.group
    if answer is None:
        answers = dict(outcome.answers)
        answer = answers if len(answers) > 1 else next(iter(answers.values()), "")
    return answer if isinstance(answer, str) else as_json(answer)


def _messages(transcript: Transcript) -> list[Json]:
    """The conversation of a single model; of several agents what each of them said, in order."""
    if len(transcript.agents) == 1 and transcript.models:
        return [{"role": role, "content": text} for role, text in transcript.conversation(transcript.agents[0])]
    return [{"role": "user", "content": _input(transcript)}] + [
        {
            "role": "assistant",
            "content": f"[{turn.agent}, round {turn.round}]\n{_words(turn.move.text, turn.move.action)}",
        }
        for turn in transcript.turns
        if turn.move is not None
    ]


def _words(reply: str | None, action: Any) -> str:
    return reply if reply is not None else action if isinstance(action, str) else as_json(action)


def _summary(sample: Mapping[str, Any]) -> Json:
    kept = ("id", "epoch", "target", "scores", "model_usage", "role_usage", "started_at", "completed_at")
    summary = {key: sample[key] for key in (*kept, "total_time", "working_time", "uuid") if key in sample}
    simple = {k: v for k, v in sample["metadata"].items() if isinstance(v, str | int | float | bool)}
    summary |= {"input": sample["input"][:_SHORT], "metadata": simple, "message_count": len(sample["messages"])}
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    return {**summary, "completed": True}


def _member(name: str, start: datetime) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, (max(start.year, 1980), *start.timetuple()[1:6]))
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _id(run: Run, *parts: str) -> str:
    """22 letters and digits, the same for the same run and parts."""
    facts: Iterable[str] = (str(run.meta["run"]), str(run.meta["start"]), str(run.meta["spec_digest"]), *parts)
    return hashlib.sha256("\0".join(facts).encode("utf-8", "backslashreplace")).hexdigest()[:22]


def _write_form(run: Run, folder: Path) -> str:
    episodes, calls = write_log(run, folder / log_name(run))
    return f"{episodes:,} samples, {calls:,} calls of models"


FORM: Final = ExportForm(lambda run: (log_name(run),), _write_form)
