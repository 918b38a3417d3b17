"""What a benchmark promises, tried line by line: `certify`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.api.errors import UserError
from harness.checks.estimate import REPLY_TOKENS, estimate
from harness.cli.inspect import problems_of
from harness.config import spec
from harness.config.plan import Plan, prepare, survey
from harness.config.project import Project
from harness.config.proposals import complete
from harness.config.spec import Spec
from harness.evaluation.run import Run
from harness.runtime import run_json
from harness.runtime.sources import code
from harness.runtime.used_extensions import extensions_of
from harness.storage.plugin_errors import describe
from harness.tables import Cell

from .conformity import broken, counted, leaked
from .killed_run import KilledRun
from .trial import PLAYERS, Confinement, Player, Rehearsal, digests, finished, options_of, plan_of, play

CHECKS: Final = ("valid", "conformant", "no leak", "played", "floor and ceiling", "deterministic", "resumed", "cost")
"""The lines of a certificate, in order."""
ENDS: Final[tuple[Player, ...]] = ("floor", "ceiling")
_NAMED: Final = 3
_NO_PLAYER: Final = "neither a model nor a policy of its headline plays it"


@dataclass(frozen=True)
class CheckLine:
    """One check: its name of `CHECKS`, whether it passed, and why."""

    name: str
    passed: bool
    reason: str


@dataclass
class Certificate:
    """What was tried on one benchmark.

    Attributes:
        spec: its name.
        options: of the command that change what is played: limit, seed, repeats, set.
        lines: one for each of `CHECKS`.
        digest: of the spec with its prompts; the one that runs have.
        digests: of the cases, of the prompts' files and of the plugins' code, as run.json has them.
        headline: the metric, and what floor and ceiling reach.
        cost: episodes, and what a model in every seat takes for one of them: a guess of the calls without retries and
            of `input_tokens`; the most `output_tokens`, None where the spec does not bound a reply by max_tokens.
    """

    spec: str
    options: dict[str, Any] = field(default_factory=dict)
    lines: list[CheckLine] = field(default_factory=list)
    digest: str | None = None
    digests: dict[str, Any] = field(default_factory=dict)
    headline: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, float | None] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every check was made and passed."""
        return [line.name for line in self.lines] == [*CHECKS] and all(line.passed for line in self.lines)

    def as_data(self) -> dict[str, Any]:
        """It as JSON, the verdict first."""
        return {"spec": self.spec, "passed": self.passed, **{k: v for k, v in asdict(self).items() if k != "spec"}}


@dataclass(frozen=True)
class Benchmark:
    """Which benchmark to certify, with the options of `harness.config.spec.load`."""

    name: str
    project: Project
    overrides: Sequence[str] = ()
    limit: int | None = None
    seed: int | None = None
    repeats: int | None = None
    confinement: Confinement = field(default_factory=Confinement)

    def load(self) -> Spec:
        """The spec. Raises `SpecError`."""
        loaded = spec.load(
            self.name,
            self.project,
            self.overrides,
            limit=self.limit,
            seed=self.seed,
            repeats=self.repeats,
        )
        return complete(loaded, self.project)


class _FailedError(Exception):
    """A check that did not pass; its text says why."""


def certify(benchmark: Benchmark, on_line: Callable[[CheckLine], None] = lambda line: None) -> Certificate:
    """Try a benchmark. A check that raises has failed, and the others go on.

    Args:
        benchmark: which.
        on_line: called with each line as it is known.
    """
    done = Certificate(benchmark.name)
    if benchmark.overrides:
        done.options["set"] = list(benchmark.overrides)
    with tempfile.TemporaryDirectory(prefix="harness-certify-") as folder:
        trial = _Trial(benchmark, done, Path(folder))
        for name in CHECKS:
            line = trial.line(name)
            done.lines.append(line)
            on_line(line)
    return done


class _Trial:
    """The checks of one benchmark, and what they have played so far."""

    def __init__(self, benchmark: Benchmark, done: Certificate, folder: Path) -> None:
        self.benchmark, self.done, self.folder = benchmark, done, folder
        self.runs: dict[Player, Run] = {}
        self.calls = 0
        self.unready: str | None = None
        self.checks: Mapping[str, Callable[[], str]] = dict(
            zip(
                CHECKS,
                (self.valid, self.conformant, self.sealed, self.played, self.ends, self.equal, self.resumed, self.cost),
                strict=True,
            )
        )

    def line(self, name: str) -> CheckLine:
        """The result of a check."""
        try:
            return CheckLine(name, True, self.checks[name]())
        except _FailedError as error:
            why = str(error)
        except UserError as error:
            why = str(error.message) if error.place is None else f"{error.place}: {error.message}"
        except Exception as error:  # of a plugin: other checks say more
            why = describe(error)
        return CheckLine(name, False, " ".join(why.split())[:1000])

    def plan(self, player: Player, model: Rehearsal | None = None) -> Plan | None:
        """What a player plays, as `plan_of`; None also for a model where something is to be fitted to it before it can
        play, `self.unready` then says what."""
        plan = plan_of(self.benchmark.load(), self.benchmark.project, player, model)
        if plan is not None and player == "stand-in":
            try:
                prepare(plan)
            except UserError as error:
                self.unready = error.message
                return None
        return plan

    def any_plan(self) -> Plan:
        """What somebody plays, a model if there is a place for one."""
        for player in reversed(PLAYERS):
            if (plan := self.plan(player)) is not None:
                return plan
        raise _FailedError(self.unready or _NO_PLAYER)

    # ------------------------------------------------------------------------------------ checks

    def valid(self) -> str:
        """What `harness validate` finds; it fills in the digests."""
        problems, _ = problems_of(self.benchmark.name, list(self.benchmark.overrides), self.benchmark.project)
        if problems:
            raise _FailedError(_some(problems))
        plan = self.any_plan()
        identity = run_json.identity(plan, prepare(plan))
        self.done.options |= options_of(plan.spec)
        self.done.digest = plan.digest
        self.done.digests = {
            "cases": dict(survey(plan).cases),
            "prompts": identity["prompts"],
            "code": code(plan),
            "packages": {name: one.distribution for name, one in extensions_of(plan).items()},
        }
        return f"as `harness validate` sees it; digest {plan.digest[:12]}"

    def conformant(self) -> str:
        """Contracts of tasks, protocols, channels and metrics."""
        found, looked_at = broken(self.any_plan())
        if found:
            raise _FailedError(_some(found))
        return f"{looked_at} keep their contracts"

    def sealed(self) -> str:
        """No right answer in what agents know before anyone has spoken."""
        found, looked_at = leaked(self.any_plan())
        if found:
            raise _FailedError(_some(found))
        return f"no right answer is where agents begin, in {looked_at}"

    def played(self) -> str:
        """Every player plays every episode to its end."""
        players: list[str] = []
        for player in PLAYERS:
            model = Rehearsal()
            if (plan := self.plan(player, model)) is None:
                continue
            run = self.runs[player] = play(plan, self.folder / "first" / player, self.benchmark.confinement)
            self.calls = model.calls or self.calls
            if failed := run.failed:
                why = f"{len(failed)} of {len(run.scores)} episodes of {run.meta['model']} failed"
                raise _FailedError(f"{why}: {failed[0].error}")
            players.append(f"{run.meta['model']} {counted(len(run.scores), 'episode')}")
        if not self.runs:
            raise _FailedError(self.unready or _NO_PLAYER)
        note = f"; no model: {self.unready}" if self.unready else ""
        return ", ".join(players) + note

    def ends(self) -> str:
        """Floor and ceiling of the headline, in the right order, with intervals that do not touch."""
        ends: dict[Player, Cell] = {}
        entry, missing = self.benchmark.load().get("headline", {}), list[str]()
        for player in ENDS:
            if entry.get(player) is None:
                if (why := entry.get(f"no_{player}")) is None:
                    what = f"the headline names no {player}"
                    raise _FailedError(f"{what}: add `{player}: POLICY`, or `no_{player}: WHY` if there can be none")
                missing.append(f"no {player}: {why}")
            elif player not in self.runs:
                raise _FailedError(f"the {player} was not played")
            else:
                both = [score for other in ENDS if other in self.runs for score in self.runs[other].scores]
                ends[player] = self.runs[player].headline.cell(self.runs[player].scores, both)
        if any(cell.value is None for cell in ends.values()):
            raise _FailedError(f"{_words(ends)}: a number is missing")
        if not ends:
            return "; ".join(missing)
        headline = self.runs[next(iter(ends))].headline
        players: dict[str, Any] = {player: self._end(player, cell) for player, cell in ends.items()}
        self.done.headline = {"metric": headline.metric, "better": headline.better, **players}
        if missing:
            return "; ".join([_words(ends), *missing])
        below, above = (ends["floor"], ends["ceiling"])
        if headline.better == "lower":
            below, above = above, below
        if _or(below.value) >= _or(above.value):
            raise _FailedError(f"{_words(ends)}: the ceiling is not {headline.better}")
        if _or(below.high, below.value) >= _or(above.low, above.value):
            raise _FailedError(f"{_words(ends)}: the intervals touch; play more cases")
        return f"{_words(ends)}: apart"

    def _end(self, player: Player, cell: Cell) -> dict[str, Any]:
        """Of the floor or the ceiling, for the card."""
        numbers = {key: getattr(cell, key) for key in ("value", "low", "high", "n")}
        return {"player": self.runs[player].meta["model"], **numbers}

    def equal(self) -> str:
        """The same twice."""
        if not self.runs:
            raise _FailedError("nothing was played")
        for player, first in self.runs.items():
            plan = self.plan(player)
            assert plan is not None, "it has played"
            again = play(plan, self.folder / "again" / player, self.benchmark.confinement)
            _refuse_other(first, again, f"{first.meta['model']}, played twice, gives")
        return f"{_listed(self.runs)} twice: equal moves, scores and tables"

    def resumed(self) -> str:
        """The same after a kill in the middle."""
        if not self.runs:
            raise _FailedError("nothing was played")
        player: Player = "stand-in" if "stand-in" in self.runs and self.calls > 1 else next(iter(self.runs))
        first = self.runs[player]
        folder = self.folder / "killed" / player
        benchmark = self.benchmark
        calls = (self.calls + 1) // 2 if player == "stand-in" else 0
        KilledRun(
            name=benchmark.name,
            overrides=list(benchmark.overrides),
            limit=benchmark.limit,
            seed=benchmark.seed,
            repeats=benchmark.repeats,
            root=str(benchmark.project.root),
            player=player,
            folder=str(folder),
            calls=calls,
            episodes=(len(first.scores) + 1) // 2,
            confinement=asdict(benchmark.confinement),
        ).run()
        there = finished(folder)
        if there == len(first.scores):
            raise _FailedError("every episode was finished when it was killed: play more cases")
        model = Rehearsal()
        plan = self.plan(player, model)
        assert plan is not None, "it has played"
        again = play(plan, folder, benchmark.confinement)
        _refuse_other(first, again, f"{first.meta['model']}, killed and resumed, gives")
        when = f"at call {calls} of {self.calls}" if calls else "half-way"
        asked = f", {model.calls} calls asked" if calls else ""
        return f"killed {when}, {there} of {len(first.scores)} episodes finished; resumed{asked}: an equal result"

    def cost(self) -> str:
        """What an episode asks of a model in every seat."""
        plan = plan_of(self.benchmark.load(), self.benchmark.project, "stand-in")
        if plan is None:
            run = next(iter(self.runs.values()), None)
            self.done.cost = {"episodes": len(run.scores) if run else 0, "calls": 0.0}
            return "no model is asked"
        figures = estimate(plan)
        episodes, limit = max(figures.episodes, 1), figures.max_tokens
        calls, read, guess = (
            round(number / episodes, 1) for number in (figures.turns, figures.input_tokens, figures.output_tokens)
        )
        written = round(figures.most_output_tokens / episodes, 1) if limit is not None else None
        self.done.cost = {"episodes": figures.episodes, "calls": calls}
        self.done.cost |= {"input_tokens": read, "output_tokens": written}
        what = f"{counted(figures.episodes, 'episode')} of about {counted(calls, 'call')}, {read:,.0f} input tokens"
        if written is None:
            return f"{what}; about {guess:,.0f} output tokens if replies have {REPLY_TOKENS}: some have no max_tokens"
        if limit == 0:
            return f"{what}; no output tokens"
        return f"{what}; at most {written:,.0f} output tokens with retries (max_tokens: {limit})"


def _refuse_other(one: Run, two: Run, gives: str) -> None:
    before, after = digests(one), digests(two)
    if other := [name for name, digest in before.items() if after[name] != digest]:
        raise _FailedError(f"{gives} other {' and '.join(other)}")


def _interval(name: str, cell: Cell) -> str:
    if cell.value is None:
        return f"{name} no number"
    between = "" if cell.low is None or cell.high is None else f" [{cell.low:.3g}, {cell.high:.3g}]"
    return f"{name} {cell.value:.3g}{between}"


def _words(ends: Mapping[Player, Cell]) -> str:
    return ", ".join(_interval(player, cell) for player, cell in ends.items())


def _or(bound: float | None, value: float | None = None) -> float:
    number = value if bound is None else bound
    assert number is not None, "a headline with a number"
    return number


def _listed(runs: Mapping[Player, Run]) -> str:
    return " and ".join(str(run.meta["model"]) for run in runs.values())


def _some(found: Sequence[str]) -> str:
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(" ".join(one.split())[:300] for one in found[:_NAMED]) + more
