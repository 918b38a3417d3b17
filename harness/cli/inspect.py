"""`harness validate | plan`: everything one can know about a spec before running it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.errors import CombinedSpecError, Place, UserError
from harness.cli.evaluate import load
from harness.config import resolve, spec
from harness.config.permissions import lacking
from harness.config.plan import Plan
from harness.config.project import Project, find
from harness.evaluation import post_run
from harness.evaluation.stages import STAGES, wrong_tables
from harness.plugins.manifests import offers
from harness.plugins.missing_extensions import bringer

if TYPE_CHECKING:
    from harness.checks.estimate import Estimate


def validate(options: argparse.Namespace) -> int:
    """Check specs; print every problem with its place."""
    project = find()
    given = [*options.specs, *options.more]
    names = [name for one in given for name in _specs_below(one, project) or [one]]
    names = names or _specs_below(str(project.root), project)
    failures = 0
    for name in names:
        problems, inputs = problems_of(name, options.overrides, project)
        failures += bool(problems)
        verdict = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        print(f"{name}: {verdict if problems else 'ok'}")
        for line in inputs:
            print(f"  {line}")
        for problem in problems:
            print(f"  {problem}".replace("\n", "\n  "), file=sys.stderr)
    return 2 if failures else 0


def _specs_below(name: str, project: Project) -> list[str]:
    """The names of the project's specs in a folder of it; none if it is no such folder, or has none."""
    if not os.path.isdir(name) or project.file("specs", name) is not None:  # noqa: PTH112 — of any text
        return []
    folder = Path(name).resolve()
    if not folder.is_relative_to(project.root):
        return []
    return [name for name, file in sorted(project.files("specs").items()) if file.resolve().is_relative_to(folder)]


def problems_of(name: str, overrides: list[str], project: Project) -> tuple[list[str], list[str]]:
    """(what is wrong with a spec, with the places; lines about what its tasks have read from the user's own files)."""
    try:
        loaded = spec.load(name, project, overrides)
        from harness.engines.mock import Mock

        # A stand-in model, so that a spec without a baseline can be checked; baselines are checked beside it.
        plans = [resolve.plan(loaded, project, Mock())]
        post_run.needed(plans[0].metrics)  # a run refuses metrics that nothing here gives their numbers
        played = [(plans[0], loaded.place("agents"))]  # policies that some agents have beside the model
        if loaded.get("baseline") is not None:
            plans.append(resolve.plan(loaded, project))
            played.append((plans[-1], loaded.place("baseline")))
        headline = loaded.get("headline", {})
        for key in ("floor", "ceiling"):
            if key in headline:
                plan = resolve.plan(resolve.with_baseline(loaded, headline[key], "headline", key), project)
                played.append((plan, loaded.place("headline", key)))
        inputs = [*plans[0].inputs(), *(line for key in plans[0].keys for line in key.summary(plans[0]))]
        if (missing := lacking(plans[0])) is not None:
            return [str(missing)], []
        problems, lines = _checks(played)
    except CombinedSpecError as errors:
        return list(errors.each), []
    except UserError as error:
        return [str(error)], []
    if not problems:  # where an example fails there are no labels to check against
        problems = [str(problem) for problem in wrong_tables(plans[0], _labels(plans[0]))]
    return problems, [*inputs, *lines, *_too_few_repeats(plans[0])]


def _too_few_repeats(plan: Plan) -> Iterator[str]:
    """Metrics that will have no number."""
    for name, metric in plan.metrics.items():
        if metric.min_repeats > plan.repeats:
            has = "1 repeat" if plan.repeats == 1 else f"{plan.repeats} repeats"
            what = f"{name} has no number with {has} of a case"
            yield f"warning: {what}; give repeats: {metric.min_repeats} or more (--repeats {metric.min_repeats})"


def _checks(plays: Sequence[tuple[Plan, Place]]) -> tuple[list[str], list[str]]:
    """What the checks say, up to the first that finds something wrong: (problems, lines for the reader)."""
    from harness.checks.consistency import check_plans

    plan, checks, lines = plays[0][0], offers("checks"), list[str]()
    later = [one for follows in post_run.following(plan.metrics, {}) for one, *_ in follows.plans(plan)]
    if wrong := check_plans(plan, later):  # where an example cannot be played, the others have nothing to look at
        return list(dict.fromkeys(map(str, wrong))), []
    if "published" not in checks and any(entry.get("published") for entry in plan.spec.tables):
        lines.append(f"the names of published tables were not checked: {bringer('published', 'checks')}")
    for offer in checks.values():
        found = list(offer.load_function()(plays))
        lines += [one for one in found if isinstance(one, str)]
        if problems := list(dict.fromkeys(str(one) for one in found if isinstance(one, UserError))):
            return problems, lines
    return [], lines


def _labels(plan: Plan) -> dict[str, list[Any]]:
    """The labels that scores will have: swept ones with their values, those of cases without."""
    tasks = {id(condition.task): condition.task for condition in plan.conditions}
    labels: dict[str, list[Any]] = {label: [] for task in tasks.values() for label in task.example().labels}
    for condition in plan.conditions:
        for label, value in condition.labels.items():
            labels.setdefault(label, []).append(value)
    return labels


def plan(options: argparse.Namespace) -> int:
    """Print what a run would take, or the stages that it goes through."""
    from harness.checks.estimate import estimate
    from harness.engines.mock import Mock

    resolved = resolve.plan(load(options), find(), Mock())
    figures = estimate(resolved)
    if options.explain:
        _explain(resolved, figures)
        return 0
    for line in resolved.inputs():
        print(f"input           {line}")
    for key in resolved.keys:
        for line in key.summary(resolved):
            print(f"{key.name:<15} {line}")
    print(f"conditions      {figures.conditions:,}")
    print(f"episodes        {figures.episodes:,}")
    for line in figures.calls_in_words(resolved):
        print(line)
    for follows in post_run.following(resolved.metrics, {}):
        for _, calls, what in follows.plans(resolved):
            print(f"later           {figures.episodes * calls:,} calls {what}, without retries")
    for line in figures.tokens_in_words(resolved):
        print(line)
    print(f"spec digest     {resolved.digest}")
    for offer in offers("plans").values():
        if any(getattr(options, name, None) for name in offer.value["parameters"]):
            for line in offer.load_function()(options, resolved, figures):
                print(line)
    return 0


def _explain(plan: Plan, figures: Estimate) -> None:
    """Print the stages of a run, with what flows from each to the next."""
    models = ", ".join(sorted({group.model or "policies" for c in plan.conditions for group in c.groups}))
    later = [what for follows in post_run.following(plan.metrics, {}) for _, _, what in follows.plans(plan)]
    flows = {
        "load": f"the spec {plan.spec.name}, of {len(plan.spec.data)} keys",
        "resolve": f"a plan of {figures.conditions:,} conditions; who plays: {models}",
        "approve": f"the plan, and the executor {plan.executor}",
        "look_at_cases": f"{figures.episodes:,} episodes",
        "check": "the same, checked",
        "open_folder": "an open folder with run.json, spec.yaml and a journal",
        "play": f"{figures.episodes:,} scores{figures.effort}",
        "follow": "; ".join(later) or "the same: no metric is measured later",
        "write_results": f"scores.jsonl, results.json and {len(plan.spec.tables)} tables",
    }
    stages = {"load": spec.load, "resolve": resolve.plan, **{stage.__name__: stage for stage in STAGES}}
    for name, function in stages.items():
        print(f"{name:<15} {(function.__doc__ or '').strip().splitlines()[0]}")
        print(f"{'':<15} → {flows[name]}")
