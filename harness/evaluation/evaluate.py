"""`harness.evaluate(spec, model=…) -> Run`: the whole road from Python; the command line is a thin layer over it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Unpack

from harness.api import Engine
from harness.api.errors import SpecError, UserError, near
from harness.config import resolve
from harness.config.project import Project, find
from harness.config.spec import Spec, load, parse
from harness.evaluation import post_run
from harness.evaluation.eval_options import EvalOptions, document_options, signature_with_options
from harness.evaluation.run import Run
from harness.evaluation.stages import OnScore, execute
from harness.plugins import approvals
from harness.runtime.options import NAMES, Options


def evaluate(
    spec: str | Path | Mapping[str, Any] | Spec,
    model: Engine | str | None = None,
    *,
    overrides: Iterable[str] = (),
    on_score: OnScore | None = None,
    project: Project | None = None,
    **options: Unpack[EvalOptions],
) -> Run:
    """Run a spec, or resume an interrupted run, and return its results.

    Args:
        spec: a spec's file or name, its content as a mapping, or a loaded `Spec`.
        model: an engine, the name of one (with `model_args`), or None for the spec's baseline policy.
        overrides: `path=value` changes to the spec.
        on_score: called with (score, number of episodes in the plan) as episodes finish, first with (None, number).
        project: where names are looked up; default: the project around the working directory.
        options: `EvalOptions` and `harness.runtime.options.Options` say what each does; extensions add others.

    Raises:
        UserError: or one of its subclasses, for every mistake that you can correct.
        RunStoppedError: an engine is unavailable, or the run reached a budget (`BudgetReachedError`).
        TypeError: an option that does not exist.
    """
    given: dict[str, Any] = {**options}
    keys = {name: given.pop(name, None) for name in ("limit", "seed", "repeats")}
    model_args = given.pop("model_args", None)
    added = {name: given.pop(name, None) for name in post_run.parameters()}
    unknown = next((name for name in given if name not in NAMES), None)
    if unknown is not None:
        from harness.evaluation.parameter_names import in_python
        from harness.plugins.habits import of_option
        from harness.plugins.missing_extensions import bringer

        habit, known = of_option(unknown), inspect.signature(evaluate).parameters
        advice = in_python(habit, known) if habit else bringer(unknown, "options") or near(unknown, [*known, *added])
        raise TypeError(f"evaluate() has no option {unknown!r}. {advice}")
    with _named_by_parameters():
        how = Options(**given)
        project = project or find()
        with approvals.allowing(how.allow_code_execution):
            model = resolve.given_engine("model", model, model_args, project)
            asked = post_run.asked_for(project, added)
            loaded = _loaded(spec, project, overrides, **keys)
            return execute(resolve.plan(loaded, project, model), how, on_score, asked_for=asked)


evaluate.__dict__["__signature__"] = signature_with_options(evaluate)
evaluate.__doc__ = document_options(evaluate.__doc__)
_FLAGS: Final = ("bool", "bool | None")


@contextlib.contextmanager
def _named_by_parameters() -> Iterator[None]:
    """Within it mistakes name parameters of `evaluate`, where they would name options of the command line."""
    try:
        yield
    except UserError as error:
        from harness.evaluation.parameter_names import use_parameter_names  # what only a mistake needs

        known = inspect.signature(evaluate).parameters
        use_parameter_names(error, known, [name for name, one in known.items() if one.annotation in _FLAGS])
        raise


def _loaded(
    spec: str | Path | Mapping[str, Any] | Spec, project: Project, overrides: Iterable[str], **keys: Any
) -> Spec:
    """The spec that `evaluate` is given. Raises `SpecError`."""
    if isinstance(spec, Spec):
        if overrides or any(value is not None for value in keys.values()):
            hint = "Give overrides, limit, seed and repeats to harness.config.spec.load."
            raise SpecError("a loaded Spec is taken as it is", hint=hint)
        return spec
    if isinstance(spec, str | Path):
        return load(str(spec), project, overrides, **keys)
    return parse(spec, project, overrides, **keys)
