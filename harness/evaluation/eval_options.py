"""The options of `harness.evaluate` by name and type, for editors and type checkers.

`harness.runtime.options.Options` says what each means and what it is by default; a test compares the two.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypedDict

from harness.api import Engine
from harness.runtime.options import Options


class EvalOptions(TypedDict, total=False):
    """Options of `harness.evaluate`.

    Attributes:
        limit: at most so many cases per condition; wins over the spec, as do the next two.
        seed: of all random draws.
        repeats: how often each case is played.
        model_args: the fields of an engine that is given by name.
        until: stop once a number is known well enough: "headline ±2%".
        adaptive: play only what says most about the size solved by half; a number above 1: until the upper end of its
            interval is at most so many times the lower one.
        trace: send OpenTelemetry spans to this collector while the run plays: "otlp=http://127.0.0.1:4318".
        trace_content: with what models read and wrote.
        judge: an engine, or the name of one, that rates answers in place of those that the spec names.
        judge_args: the fields of such an engine that is given by name.
    """

    limit: int | None
    seed: int | None
    repeats: int | None
    model_args: Mapping[str, Any] | None

    output_path: str | Path | None
    resume: bool | None
    overwrite: bool
    max_concurrency: int | None
    max_calls: int | None
    max_tokens_total: int | None
    max_time: float | None
    max_cost: float | None
    rpm: int | None
    tpm: int | None
    stop_unless: Mapping[str, float] | None
    use_cache: str | Path | None
    reuse: str | Path | None
    log_samples: bool
    log_requests: bool
    sequential_engines: bool
    max_error_rate: float
    executor: str | Mapping[str, Any] | None
    allow_code_execution: bool
    sandbox: Literal["process", "bwrap", "weaker"]

    # What extensions that ship add, by `[stopping]`, `[listeners]` and `[post_run]` of their manifests.
    until: str | None
    adaptive: bool | float | None
    trace: str | None
    trace_content: bool
    judge: Engine | str | None
    judge_args: Mapping[str, Any] | None


def signature_with_options(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function that takes `**options: Unpack[EvalOptions]`, with each option as a parameter of its
    own: what `help` prints and notebooks complete. `**options` stays last, for what other extensions add."""
    known = inspect.signature(function)
    *named, rest = known.parameters.values()
    defaults = {field.name: field.default for field in fields(Options)}
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=_text(kind))
        for name, kind in EvalOptions.__annotations__.items()
    ]
    return known.replace(parameters=[*named, *options, rest.replace(annotation="Any")])


def document_options(text: str | None) -> str | None:
    """A docstring with every option among its arguments, as `EvalOptions` and `Options` describe it."""
    if text is None:  # Python leaves docstrings out
        return None
    known = {**described(Options.__doc__), **described(EvalOptions.__doc__)}
    lines = [f"        {name}: {known[name]}" for name in EvalOptions.__annotations__ if name in known]
    before, arguments, after = text.partition("\n\n    Raises:")
    return "\n".join([before, *lines]) + arguments + after


def described(text: str | None) -> dict[str, str]:
    """Attribute → what a class's docstring says of it, its lines as they are."""
    found = re.finditer(r"^        (\w+): (.*(?:\n            .*)*)", text or "", re.MULTILINE)
    return {match[1]: match[2] for match in found}


def _text(annotation: Any) -> str:
    """As it is written in this file."""
    return str(getattr(annotation, "__forward_arg__", annotation))
