"""The inner engines of a plan: those that answer the model calls of agent programs (`harness.api.CallsModels`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from harness.api import CallsModels, Engine, Metric
from harness.api.errors import SetupError, SpecError, near
from harness.config.building import engine
from harness.config.project import Project
from harness.config.spec import Spec

SUFFIX = ".inner"
"""What follows an engine's name in the name of an inner engine that has no entry of its own under `models:`."""


METRICS = ("inner_calls", "inner_input_tokens", "inner_output_tokens", "inner_cost")
"""Metrics that a run with inner calls has, whatever its spec names; they make no other benchmark of it."""


def with_inner(metrics: Mapping[str, Metric], project: Project) -> dict[str, Metric]:
    """The metrics, and behind them those of inner calls that are not among them. Raises `PluginError`."""
    there = [name for name in METRICS if name not in metrics and project.file("metrics", name) is not None]
    return {**metrics, **{name: project.load("metrics", name)() for name in there}}


def add_inner(engines: dict[str, Engine], spec: Spec, project: Project) -> dict[str, str]:
    """Add the inner engines of these, and let each of these know its own. Returns name → name of the inner engine.

    Raises:
        SpecError, PluginError: there is no such model or engine, or it takes no part of a run as an inner engine.
        SetupError: it collects its requests.
    """
    return {name: _add(name, outer, engines, spec, project) for name, outer in [*engines.items()] if has_inner(outer)}


def has_inner(engine: Engine) -> bool:
    """Whether the programs of an engine call a model of the run."""
    return isinstance(engine, CallsModels) and engine.inner_engine is not None


def _add(name: str, outer: Engine, engines: dict[str, Engine], spec: Spec, project: Project) -> str:
    assert isinstance(outer, CallsModels)
    reference, models = outer.inner_engine, spec.get("models", {})
    place = functools.partial(spec.place, "models", name) if name in models else None
    at = place("inner") if place is not None else None
    bare = reference if isinstance(reference, str) else None
    if bare is not None and (bare in models or bare == "model"):
        inner = bare
        if inner == name or (inner == "model" and "model" not in engines):
            message = "it cannot be its own" if inner == name else "no model was given"
            raise SpecError(f"inner: {inner}: {message}", place=at, hint=near("", {"model", *models} - {name}))
        if inner not in engines:
            engines[inner] = engine(models[inner], project, functools.partial(spec.place, "models", inner))
    else:
        inner = f"{name}{SUFFIX}"
        if inner in models:
            raise SpecError(f"the name {inner!r} stands for the inner engine of {name!r}", place=spec.place("models"))
        if bare is not None and project.file("engines", bare) is None and models:
            hint = near(bare, [*(one for one in models if one != name), *(e.name for e in project.listing("engines"))])
            raise SpecError(f"inner: there is no model and no engine {bare!r}", place=at, hint=hint)
        if isinstance(reference, Engine):
            engines[inner] = reference
        elif inner not in engines:
            own = {"use": bare} if bare is not None else reference
            assert isinstance(own, Mapping)
            engines[inner] = engine(own, project, place)
    answers = engines[inner]
    if has_inner(answers):
        message = f"{answers.model} has an inner engine itself: it cannot be the inner engine of {name!r}"
        raise SpecError(message, place=at, hint="Name an engine that answers by itself.")
    if answers.collects:
        message = f"{answers.model} answers in batches, and an agent would wait for hours for each of its calls"
        raise SetupError(message, place=at, hint="Leave batch of the inner engine out.")
    outer.put_before(answers)
    return inner
