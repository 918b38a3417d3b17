"""Where numbers come from: what was run, when, and with which code, by a run's own record (run.json)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.storage.files import short_name
from harness.tables import text

_NAMES: Final = 5  # names of models that a note lists
_NOT_GROWN: Final = ("prompts_not_grown", "prompts_cut")  # the second in runs of versions up to 0.7


def in_one_line(meta: Mapping[str, Any]) -> str:
    """What was run, in the manner of lm-eval: spec, model (its arguments), sampling, limit, seed, repeats.

    Args:
        meta: the content of run.json, which holds no secrets.
    """
    spec = spec_of(meta)
    return (
        f"{text(meta.get('spec'))}: {players_of(meta)}, generation_kwargs: ({sampling_of(meta)}), "
        f"limit: {limit_of(spec)}, seed: {spec.get('seed', 0)}, repeats: {spec.get('repeats', 1)}"
    )


def players_of(meta: Mapping[str, Any]) -> str:
    """Who played, with arguments: the model or policy that was given, then the spec's other models by their names."""
    engines = mapping(meta, "engine_args")
    others = [f"{name}: {_named(mapping(engines, name))}" for name in engines if name != "model"]
    given = {**(baseline_of(meta) or mapping(engines, "model")), "model": meta.get("model")}
    return "; ".join([_named(given), *others])


def _named(arguments: Mapping[str, Any]) -> str:
    model = text(arguments.get("model"))
    others = _settings(arguments, but={"model": arguments.get("model")})
    return f"{model} ({others})" if others else model


def baseline_of(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of the policy that played because the run was given no model; empty where it was given one."""
    if "model" in mapping(meta, "engine_args") or not (meta.get("policies_only") or mapping(meta, "engine_args")):
        return {}
    own = mapping(spec_of(meta), "baseline")
    labelled = own.get("label") is not None
    return {name: value for name, value in own.items() if name != ("label" if labelled else "use")}


def who_answered(meta: Mapping[str, Any]) -> Iterator[str]:
    """What servers state of the models that answered, where it is not what was asked for; that their counts of tokens
    did not grow with prompts; and which replies other runs have heard (`--reuse`).

    Args:
        meta: the content of run.json, with the reports of all its processes.
    """
    for engine, reports in _reports(meta).items():
        named, runs, stood = Counter[str](), Counter[str](), 0
        for report in reports:
            named.update(_counts(report, "answered_as"))
            runs.update(_counts(report, "calls_reused"))
            stood += sum(n for n in map(report.get, _NOT_GROWN) if type(n) is int)
        asked = _asked(meta, engine)
        if len(named) > 1 or (named and asked and next(iter(named)).partition(" (")[0] != asked):
            listed = ", ".join(f"{name} in {count:,}" for name, count in named.most_common(_NAMES))
            yield f"Asked for {asked or engine}, the server says who answered: {listed} replies{_more(named, 'names')}."
        if stood:
            what = f"The server of {asked or engine} counted no more tokens for {stood:,} prompts that had grown"
            yield f"{what}: it cut them, or does not count all tokens, and then tokens and costs are too low."
        if runs:
            listed = ", ".join(run for run, _ in runs.most_common(_NAMES))
            listed += _more(runs, "runs")
            yield f"{runs.total():,} replies of {asked or engine} are those of earlier runs: {listed}."


def of_run(meta: Mapping[str, Any], name: str | None = None) -> Iterator[str]:
    """What stands below every table of a run: `who_answered`, and that a rule ended it (`harness.runtime.stopping`).

    Args:
        meta: as there.
        name: what the run is called there; None: as its model.
    """
    yield from who_answered(meta)
    if (enough := ended_early(meta)) is not None:
        own = f"{text(meta.get('model'))}: "
        yield enough if name is None else f"{name}: {enough.removeprefix(own)}"


def ended_early(meta: Mapping[str, Any]) -> str | None:
    """Why a run's episodes were enough before its plan was played; None for all other runs."""
    enough = mapping(meta, "stopped").get("enough")
    return enough if isinstance(enough, str) else None


def unpaid(meta: Mapping[str, Any]) -> Iterator[str]:
    """Which replies were in the cache (`--use_cache`), so that what they cost was paid before.

    Args:
        meta: as in `who_answered`.
    """
    for engine, reports in _reports(meta).items():
        if hits := sum(n for report in reports if type(n := report.get("cache_hits")) is int):
            who = _asked(meta, engine) or engine
            yield f"{hits:,} replies of {who} are from the cache (--use_cache): costs are what they once were."


def _reports(meta: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Engine → what it reported of itself, in each process of the run."""
    reports = [mapping(record, "engines") for record in (*_list(meta, "earlier"), meta)]
    names = dict.fromkeys(name for report in reports for name in report)
    return {name: [of for one in reports for of in _by_process(mapping(one, name))] for name in names}


def _asked(meta: Mapping[str, Any], engine: str) -> str:
    """The model that an engine was to ask, cut if it is long; "" if that is not known."""
    return short_name(text(mapping(mapping(meta, "engine_args"), engine).get("model") or ""))


def models_of(meta: Mapping[str, Any]) -> dict[str, str]:
    """Name of an engine in the run → its model, as readers know it.

    Args:
        meta: the content of run.json.
    """
    engines = mapping(meta, "engine_args")
    models = {name: text(mapping(engines, name).get("model") or name) for name in engines}
    shown = {name: model if model == name else f"{name} ({model})" for name, model in models.items()}
    return {**shown, "model": text(meta.get("model"))}


def _by_process(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """An engine's report, or those of the workers in it."""
    workers = [one for name, one in report.items() if name.startswith("worker ") and isinstance(one, Mapping)]
    yield from workers or (report,)


def _counts(report: Mapping[str, Any], key: str) -> dict[str, int]:
    return {text(name): n for name, n in mapping(report, key).items() if type(n) is int}


def _more(named: Counter[str], what: str) -> str:
    return f", and {len(named) - _NAMES} more {what}" if len(named) > _NAMES else ""


def _list(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def spec_of(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec that was run."""
    return mapping(mapping(meta, "identity"), "spec")


def mapping(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A value of run.json that ought to be a mapping; an empty one where something else stands (people edit it)."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def sampling_of(meta: Mapping[str, Any]) -> str:
    """Its `generation_kwargs`, in words."""
    if meta.get("policies_only"):
        return "none: policies play"
    if meta.get("sampled_by_agents"):
        return "the agents' own"
    return _settings(meta.get("generation_kwargs"), but={}) or "none"


def _settings(settings: Any, but: Mapping[str, Any]) -> str:
    """`name=value, …` of what is set, but for what is said already."""
    known = settings if isinstance(settings, Mapping) else {}
    return ", ".join(
        f"{name}={text(value)}"
        for name, value in known.items()
        if value not in (None, "", [], {}) and but.get(name) != value
    )


def limit_of(spec: Mapping[str, Any]) -> str:
    """The spec's limit of cases as text; "none" where there is none."""
    limit = spec.get("limit")
    return "none" if limit is None else text(limit)
