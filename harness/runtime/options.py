"""How to run, as opposed to what: every option once. `harness.evaluate(**options)` and the flags of `harness eval` and
`harness calibrate` come from these fields. Imports next to nothing, because `harness --help` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

if TYPE_CHECKING:
    from harness.engines.rate import Rate
    from harness.engines.usage import Budget


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run. No option changes a result: two runs of one plan with different options are comparable.

    These lines are also the help of the command line.

    Attributes:
        output_path: the run's folder (default: results/<spec>-<model>, with a digest if taken).
        resume: insist on continuing an earlier run, or refuse to (default: continue if there is one).
        overwrite: replace a run of another configuration or code; where resuming is refused, any run.
        max_concurrency: model requests in flight at once, per engine (default: 256, and fewer where a server
            is no faster with more).
        max_calls: stop after N model calls.
        max_tokens_total: stop after N tokens, input and output.
        max_cost: stop after so many USD, by the spec's prices or those of prices.yaml in your configuration.
        rpm: send at most N requests a minute to each engine.
        tpm: use at most N tokens a minute, input and output, of each engine.
        max_time: send no new request after this time: 90 (seconds), 30m, 8h, 2d; in Python seconds.
        stop_unless: stop unless at least this share of a model's first turns is parsed, answered or complete (not cut
            off at max_tokens): parsed=20%,complete=50%; in Python {"parsed": 0.2}.
        use_cache: keep model responses in this file and use them again.
        reuse: take what the runs in this folder have asked already, in the same words, of the same model with the same
            sampling and seed, from their journals: only the rest is asked.
        log_samples: also write whole conversations to samples.jsonl.
        log_requests: also write every raw exchange with a model to requests.jsonl.
        sequential_engines: start one engine at a time, if they do not all fit.
        max_error_rate: stop when more than this share of an engine's last 100 requests failed (0.25).
        executor: where episodes run (default: the spec's executor, else local). In Python also a mapping with its
            arguments: {"use": NAME, "workers": 4}.
        allow_code_execution: allow unapproved code (`harness trust`), and programs that models wrote, which run
            confined.
        sandbox: what confines programs of models: the kernel (process), bubblewrap (bwrap), or whatever is available
            (weaker).

    Raises:
        SetupError: a budget or a share that is not a valid number.
    """

    output_path: Path | None = None
    resume: bool | None = None
    overwrite: bool = False
    max_concurrency: int | None = None
    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    rpm: int | None = None
    tpm: int | None = None
    max_time: float | None = None
    stop_unless: Mapping[str, float] | None = None
    use_cache: Path | None = None
    reuse: Path | None = None
    log_samples: bool = False
    log_requests: bool = False
    sequential_engines: bool = False
    max_error_rate: float = 0.25
    executor: str | Mapping[str, Any] | None = None
    allow_code_execution: bool = False
    sandbox: Literal["process", "bwrap", "weaker"] = "process"

    def __post_init__(self) -> None:
        for name in ("output_path", "use_cache", "reuse"):
            value = getattr(self, name)
            object.__setattr__(self, name, Path(value) if value else None)
        for name in ("rpm", "tpm", "max_concurrency"):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and value >= 1):
                _refuse(name, "a whole number, at least 1", value)
        if not (type(self.max_error_rate) in (int, float) and 0 <= self.max_error_rate <= 1):
            _refuse("max_error_rate", "a share from 0 to 1", self.max_error_rate)
        for field in fields(self):
            if field.type.startswith("Literal["):
                *words, last = (word.strip(" '\"") for word in field.type[8:-1].split(","))
                if getattr(self, field.name) not in (*words, last):
                    _refuse(field.name, f"{', '.join(words)} or {last}", getattr(self, field.name))
        if self.stop_unless is not None:
            from harness.runtime.turn_shares import check_shares

            check_shares(self.stop_unless)
        _ = self.budget  # raises where it is none

    @property
    def most_open(self) -> int:
        """How many episodes may be open at once, and requests to an engine in flight."""
        return 256 if self.max_concurrency is None else self.max_concurrency

    @property
    def pace(self) -> Rate | None:
        """A new bound of one engine's requests a minute; None: there is none."""
        if self.rpm is None and self.tpm is None:
            return None
        from harness.engines.rate import Rate

        return Rate(self.rpm, self.tpm)

    @property
    def budget(self) -> Budget:
        """The run's budget."""
        from harness.engines.usage import Budget

        return Budget(self.max_calls, self.max_tokens_total, self.max_time, self.max_cost)


def _refuse(name: str, kind: str, found: object) -> NoReturn:
    from harness.api.errors import SetupError

    raise SetupError(f"{name} must be {kind}, found {found!r:.40}")


NAMES = tuple(field.name for field in fields(Options))
