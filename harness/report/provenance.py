"""Where numbers come from: what was run, when, and with which code, by a run's own record (run.json)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harness.storage.files import short_name
from harness.tables import Row, Table, text

TITLE: Final = "Where these numbers come from"
_DIGEST: Final = 12  # characters of a digest
_NAMES: Final = 5  # names of models that a note lists


def in_one_line(meta: Mapping[str, Any]) -> str:
    """What was run, in the manner of lm-eval: spec, model (its arguments), sampling, limit, seed, repeats.

    Args:
        meta: the content of run.json, which holds no secrets.
    """
    model, spec = text(meta.get("model")), _spec(meta)
    arguments = _settings(_mapping(meta, "engine_args").get("model"), but={"model": model})
    shown = f"{model} ({arguments})" if arguments else model
    return (
        f"{text(meta.get('spec'))}: {shown}, generation_kwargs: ({_sampling(meta)}), limit: {_or_none(spec, 'limit')}, "
        f"seed: {spec.get('seed', 0)}, repeats: {spec.get('repeats', 1)}"
    )


def facts(meta: Mapping[str, Any], folder: Path | str, cost: str, author: str | None) -> dict[str, str]:
    """What must be known of a run to cite it or to run it again, by name.

    Args:
        meta: the content of run.json.
        folder: where the run is.
        cost: what it cost, in words.
        author: who publishes the numbers, if that is known.
    """
    spec, git = _spec(meta), _mapping(meta, "git")
    prompts = _mapping(_mapping(meta, "identity"), "prompts")
    commit = text(git.get("commit")) + (" (with changes)" if git.get("dirty") else "")
    found = {
        "author": author or "–",
        "date": f"{_time(meta.get('start'))} to {_time(meta.get('end'))}",
        "model": in_one_line(meta).partition(": ")[2].partition(", generation_kwargs")[0],
        "harness": text(_mapping(meta, "versions").get("harness")),
        "commit": commit,
        "spec": f"{text(meta.get('spec'))}, digest {text(meta.get('spec_digest'))[:_DIGEST]}",
        "prompts": ", ".join(f"{name} {text(digest)[:_DIGEST]}" for name, digest in prompts.items()) or "–",
        "sampling": _sampling(meta),
        "seed": text(spec.get("seed", 0)),
        "limit": _or_none(spec, "limit"),
        "repeats": text(spec.get("repeats", 1)),
        "cost": cost,
        "run": str(folder),
    }
    return {name: value.replace("\n", " ") for name, value in found.items()}


def as_table(runs: Sequence[tuple[str, Mapping[str, str]]]) -> Table:
    """A table of texts: of each run, by its name, what `facts` says; a row a fact."""
    rows = [
        Row({"run": name, "what": what, "value": value}, (name, what, value), ())
        for name, known in runs
        for what, value in known.items()
    ]
    return Table(TITLE, ("run", "what", "value"), (), (), tuple(rows), row_names=("Run", "", ""))


def who_answered(meta: Mapping[str, Any]) -> Iterator[str]:
    """What servers state of the models that answered, where it is not what was asked for; of prompts they cut; and of
    replies that other runs have heard (`--reuse`).

    Args:
        meta: the content of run.json, with the reports of all its processes.
    """
    reports = [_mapping(record, "engines") for record in (*_list(meta, "earlier"), meta)]
    for engine in dict.fromkeys(name for report in reports for name in report):
        named, runs, cut = Counter[str](), Counter[str](), 0
        for report in (of for one in reports for of in _by_process(_mapping(one, engine))):
            named.update(_counts(report, "answered_as"))
            runs.update(_counts(report, "calls_reused"))
            cut += report["prompts_cut"] if type(report.get("prompts_cut")) is int else 0
        asked = short_name(text(_mapping(_mapping(meta, "engine_args"), engine).get("model") or ""))
        if len(named) > 1 or (named and asked and next(iter(named)).partition(" (")[0] != asked):
            listed = ", ".join(f"{name} in {count:,}" for name, count in named.most_common(_NAMES))
            yield f"Asked for {asked or engine}, the server says who answered: {listed} replies{_more(named, 'names')}."
        if cut:
            yield f"The server of {asked or engine} cut {cut:,} long prompts: their tokens grew no more."
        if runs:
            listed = ", ".join(run for run, _ in runs.most_common(_NAMES))
            listed += _more(runs, "runs")
            yield f"{runs.total():,} replies of {asked or engine} are those of earlier runs: {listed}."


def of_run(meta: Mapping[str, Any]) -> Iterator[str]:
    """What stands below every table of a run: `who_answered`, and that a rule ended it (`harness.runtime.stopping`).

    Args:
        meta: as there.
    """
    yield from who_answered(meta)
    if (enough := ended_early(meta)) is not None:
        yield enough


def ended_early(meta: Mapping[str, Any]) -> str | None:
    """Why a run's episodes were enough before its plan was played; None for all other runs."""
    enough = _mapping(meta, "stopped").get("enough")
    return enough if isinstance(enough, str) else None


def _by_process(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """An engine's report, or those of the workers in it."""
    workers = [one for name, one in report.items() if name.startswith("worker ") and isinstance(one, Mapping)]
    yield from workers or (report,)


def _counts(report: Mapping[str, Any], key: str) -> dict[str, int]:
    return {text(name): n for name, n in _mapping(report, key).items() if type(n) is int}


def _more(named: Counter[str], what: str) -> str:
    return f", and {len(named) - _NAMES} more {what}" if len(named) > _NAMES else ""


def _list(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _time(when: Any) -> str:
    """A time of run.json without the parts of a second; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(when).isoformat(" ", "seconds")
    except (TypeError, ValueError):
        return text(when)


def _spec(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(meta, "identity"), "spec")


def _mapping(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A value of run.json that ought to be a mapping; an empty one where something else stands (people edit it)."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def _sampling(meta: Mapping[str, Any]) -> str:
    if meta.get("policies_only"):
        return "none: policies play"
    return _settings(meta.get("generation_kwargs"), but={}) or "none"


def _settings(settings: Any, but: Mapping[str, Any]) -> str:
    """`name=value, …` of what is set, but for what is said already."""
    known = settings if isinstance(settings, Mapping) else {}
    return ", ".join(
        f"{name}={text(value)}"
        for name, value in known.items()
        if value not in (None, "", [], {}) and but.get(name) != value
    )


def _or_none(spec: Mapping[str, Any], key: str) -> str:
    value = spec.get(key)
    return "none" if value is None else text(value)
