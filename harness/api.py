"""The whole vocabulary: the values that travel and the interfaces that plugins implement.

Standard library only. Read `Turn`, `Move`, `Protocol` first: a protocol yields batches of turns, receives their moves.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import statistics
from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

Action = Any  # what a seat does in a turn: any JSON value
Facts = Mapping[str, Any]  # named JSON values

Grading = Literal["quick", "slow", "executes"]

T = TypeVar("T")


@dataclass_transform(kw_only_default=True)
def plugin(cls: type[T]) -> type[T]:
    """Tag the one class of a plugin file. It becomes a dataclass; its fields are its YAML parameters."""
    made = dataclass(kw_only=True)(cls)
    made.__harness_plugin__ = True  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number parameter: `size: Annotated[int, Range(ge=2)]`."""

    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None


def derive_seed(*parts: object) -> int:
    """A 63-bit seed that depends on every part and on nothing else (never on order of completion)."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True)
class Case:
    """One problem instance.

    Attributes:
        id: unique within its condition and stable across runs.
        seats: the names of the chairs, in play order.
        public: facts that anyone may know.
        private: seat → facts only that seat may know.
        topology: seat → its neighbors in order, or None where everybody reaches everybody.
        target: the hidden truth; only `Task.grade` may look.
        labels: facts to group result tables by (added to the condition's own).
        roles: seat → name of its group in the spec's seat map; seats not named are "default".
        unscored: seats whose answers do not count (byzantine ones); grading leaves them out.
    """

    id: str
    seats: tuple[str, ...]
    public: Facts = field(default_factory=dict)
    private: Mapping[str, Facts] = field(default_factory=dict)
    topology: Mapping[str, tuple[str, ...]] | None = None
    target: Any = None
    labels: Facts = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    unscored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply form made of a text: an action, or the reason why there is none.

    `partial`, with an error: what counts all the same if the seat is not asked again (the message beside an action)."""

    action: Action = None
    error: str | None = None
    partial: Action = None


class Reply(ABC):
    """How text becomes an action. Parsing takes linear time and never raises, whatever the text."""

    __slots__ = ()

    @property
    def options(self) -> tuple[Action, ...] | None:
        """All legal actions if they are finitely many (those with nothing said beside them), else None."""
        return None

    @property
    def idle(self) -> Action:
        """The action of a seat that does nothing; must be legal. None where an answer is due."""
        return None

    def allows(self, action: Action) -> bool:
        """Whether `action` is legal; what is not finite allows everything unless it says otherwise."""
        return self.options is None or action in self.options

    @abstractmethod
    def parse(self, text: str) -> Parsed:
        """Read `text`; `Parsed.error` says what is wrong in words that help the writer mend it."""

    def exact(self, text: str) -> bool:
        """Whether a text that can be read also keeps to the form that was asked for."""
        return True

    def constraint(self) -> Mapping[str, Any] | None:
        """One of {"json": schema}, {"choice": [text]}, {"regex": …}, {"grammar": …} for constrained decoding."""
        return None


@dataclass(frozen=True, slots=True)
class Turn:
    """One seat is asked for one action.

    Attributes:
        seat: who is asked.
        name: which template asks: `<name>.j2` of the seat's prompt set.
        view: everything the seat newly sees; template variables, together with `brief`.
        reply: the form its answer must take.
        brief: what the seat knows from the start; rendered once by `system.j2` when its thread opens.
        repairs: how often an unparsable reply is asked for again.
        fresh: open a new thread instead of continuing the seat's conversation.
        crossing: the texts of other seats that are shown here for the first time; their tokens are counted.
    """

    seat: str
    name: str
    view: Facts
    reply: Reply
    brief: Facts = field(default_factory=dict)
    repairs: int = 0
    fresh: bool = False
    crossing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished model call. Tokens are counts (`crossing_tokens` those of `Turn.crossing`), latency is in seconds;
    None where the engine does not say. `reasoning` never enters the conversation again."""

    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    crossing_tokens: int | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """What came of a turn: an action or none, with the reason and the model calls it took (none for a policy).

    `error_kind` is "parse" when no call gave a readable reply (the action is then the last one's `Parsed.partial`),
    "limit" when the spec's `limits:` allowed no further call, else the kind of an `EngineError`."""

    seat: str
    turn: str
    action: Action = None
    error: str | None = None
    error_kind: str | None = None
    calls: tuple[Completion, ...] = ()

    @property
    def text(self) -> str | None:
        """The last reply as the model wrote it."""
        return self.calls[-1].text if self.calls else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an episode came to: an answer per seat, or one of the group, and facts for metrics."""

    answers: Mapping[str, Action] = field(default_factory=dict)
    group: Action = None
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """One case played once, whole. Metrics read this and nothing else.

    Attributes:
        id: `condition/case/repeat`, unique in its run.
        batches: the moves in the order in which the protocol received them.
        grade: what `Task.grade` said; empty if the episode failed.
        error: why the episode failed; such an episode is shown and counted, never scored as wrong.
    """

    id: str
    condition: str
    case: str
    repeat: int
    labels: Facts
    roles: Mapping[str, str]
    batches: Sequence[Sequence[Move]]
    outcome: Outcome | None = None
    grade: Mapping[str, float | None] = field(default_factory=dict)
    error: str | None = None

    def moves(self) -> Iterable[Move]:
        """All moves, batch by batch."""
        return (move for batch in self.batches for move in batch)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number with its standard error (None below two observations) and the count behind it."""

    value: float | None
    stderr: float | None
    n: int


class Task(ABC):
    """A family of cases with a question and a grade. Fields are YAML parameters.

    The base class says which protocols can play it: a `QuestionTask`, a `NetworkTask`, a `SteppedTask`
    (`harness.authoring`), or this one for those that need nothing more.

    `grades` and `grading` are constants of the class (`grades = ("solved",)`), or properties where parameters decide.
    """

    @property
    def grades(self) -> tuple[str, ...]:
        """The names that `grade` returns; metrics need them."""
        return ()

    @property
    def grading(self) -> Grading:
        """How `grade` runs: "slow" in a thread of its own; "executes" too, and runs programs that models wrote, only
        where that is allowed."""
        return "quick"

    @abstractmethod
    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """The first `limit` cases (all if None), always the same ones for a seed."""

    def example(self) -> Case:
        """A small case that needs no data and no heavy package: what `validate` renders prompts on."""
        return next(iter(self.cases(1, 0)))

    def inputs(self, seed: int) -> Sequence[str]:
        """What was read from the user's own files, a line each: shown before a run, so that a misread file is seen."""
        return ()

    @abstractmethod
    def brief(self, case: Case, seat: str) -> Facts:
        """The only facts a seat starts with. Never the target."""

    @abstractmethod
    def reply(self, case: Case, seat: str) -> Reply:
        """The form of the seat's final answer."""

    @abstractmethod
    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Name → number for every name in `grades`. Total: defined for every outcome."""

    def canonical(self, case: Case, action: Action) -> str:
        """One text for all answers that are the same: what votes are counted by. By default the answer as JSON."""
        return json.dumps(action, sort_keys=True)

    def misfit(self, needed: type[Task]) -> str | None:
        """Why a protocol that needs `needed` cannot play these cases, for the spec's author; None if it can."""
        return None if isinstance(self, needed) else f"{type(self).__name__} is no {needed.__name__}"


class OpenChannel(ABC):
    """One episode's channel: `view` is pure, `commit` the only mutation."""

    @abstractmethod
    def view(self, seat: str) -> Facts:
        """What the seat sees now. Calling it twice gives the same."""

    @abstractmethod
    def commit(self, moves: Sequence[Move]) -> None:
        """Take in what was sent, all at once."""


class Channel(ABC):
    """How what one seat sends becomes what others see."""

    @property
    def opens(self) -> type[OpenChannel]:
        """The class of what `open` gives: a protocol plays on channels of one kind (`Protocol.needs_channel`)."""
        return OpenChannel

    @abstractmethod
    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """A fresh channel for one episode; `rng` is its only chance."""


# A protocol's game: yields a batch of turns, receives one move per turn in the same order, returns the outcome.
Play = Generator[list[Turn], list[Move], Outcome]


class Protocol(ABC):
    """Who acts when and who sees what. No I/O, no engine; state lives in local variables of `play`."""

    needs: ClassVar[type[Task]] = Task  # the kind of task that it can play
    needs_channel: ClassVar[type[OpenChannel]] = OpenChannel  # the kind that its channels must open
    facts: ClassVar[tuple[str, ...]] = ()  # the names it puts into `Outcome.facts`; metrics may need them

    def seats(self, case: Case) -> tuple[str, ...]:
        """Who plays: the case's seats, unless the protocol brings its own: a panel, a coordinator."""
        return case.seats

    @abstractmethod
    def play(self, task: Task, case: Case, seats: Sequence[str], rng: random.Random) -> Play:
        """One episode. If every seat plays `reply.idle`, it must last as long as it ever can."""

    def shape(self, task: Task, case: Case) -> Hashable | None:
        """What alone decides how an episode goes in which every seat plays `reply.idle`, so that `harness plan` plays
        one for all cases of the same shape: the same seats get the same turns, but for their briefs and what the first
        turns show. None, the default: every case is played to be counted."""
        return None


class Policy(ABC):
    """A non-LLM player: sits where a model sits. One fresh instance per seat and episode,
    so it may remember things in attributes (`field(init=False)`)."""

    @abstractmethod
    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """A legal action, from `turn.brief`, `turn.view` and `turn.reply` alone; `rng` is its only chance."""


UNBOUNDED = (-math.inf, math.inf)


class Metric(ABC):
    """One number per episode, and how numbers become a statistic. What is one share of all episodes together, not a
    mean of their shares, is a `RatioMetric`."""

    bounds: ClassVar[tuple[float, float]] = UNBOUNDED  # no number lies beyond: (0, 1) of a share; bounds its intervals
    needs: tuple[str, ...] = ()  # names among the task's grades, the protocol's facts, or the world's

    @abstractmethod
    def measure(self, episode: Episode) -> Any:
        """The episode's number (a float; of a `RatioMetric` its parts), or None where it has none."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Mean and standard error of the mean with ddof = 1 (AgentsNet, Appendix C, eq. 1 and 2)."""
        n = len(numbers)
        stderr = statistics.stdev(numbers) / n**0.5 if n > 1 else None
        return Statistic(statistics.fmean(numbers) if n else None, stderr, n)


Parts = tuple[float, float]
"""Numerator and denominator of one episode: 3 of 7 decisions."""


class RatioMetric(Metric):
    """One ratio of all that happened in all episodes: the sum of numerators over the sum of denominators.

    An episode in which more happened weighs more. Its standard error takes episodes, not what happens in them, as
    the independent observations (`linearised`).
    """

    @abstractmethod
    def parts(self, episode: Episode) -> Parts | None:
        """The episode's (numerator, denominator); None, or a denominator of 0, where there is nothing to count."""

    def measure(self, episode: Episode) -> Parts | None:
        """The parts; None where there is nothing to count. Raises `ValueError` for a negative denominator."""
        found = self.parts(episode)
        if found is not None and found[1] < 0:
            raise ValueError(f"the denominator is {found[1]!r}, below 0")
        return found if found is not None and found[1] else None

    def aggregate(self, numbers: Sequence[Parts]) -> Statistic:
        """Σ numerators / Σ denominators with the standard error of the linearised ratio; `n` counts episodes."""
        return super().aggregate(linearised(numbers))


def linearised(parts: Sequence[Parts]) -> list[float]:
    """Values zᵢ = r + (aᵢ − r·bᵢ)/b̄, whose mean is r = Σa/Σb and whose standard error of the mean is that of r.

    So everything made for means (intervals, t tests) serves ratios, with each episode as one observation (Cochran,
    Sampling Techniques, 3rd ed. 1977, Section 2.11: variance Σ(aᵢ − r·bᵢ)²/(n − 1)/n/b̄²). Empty where Σb is 0.
    """
    below = math.fsum(b for _, b in parts)
    if not below:
        return []
    ratio, mean = math.fsum(a for a, _ in parts) / below, below / len(parts)
    return [ratio + (a - ratio * b) / mean for a, b in parts]


class Thread:
    """One seat's conversation, append-only. `memo` is room for an engine to keep what it derived from
    the messages so far (token ids, a running hash), so that no call costs work proportional to history.
    Threads of a lower `age` were opened earlier; where not all can be answered at once they come first."""

    __slots__ = ("age", "memo", "messages")
    _opened = itertools.count()

    def __init__(self, age: int | None = None) -> None:
        self.messages: list[dict[str, str]] = []
        self.memo: dict[str, Any] = {}
        self.age = next(self._opened) if age is None else age

    def add(self, role: str, content: str) -> None:
        """Append one message; `role` is system, user or assistant."""
        self.messages.append({"role": role, "content": content})


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    Attributes:
        id: episode, seat, turn and attempt; unique in a run and the same in every run of it.
        thread: the conversation; the engine answers its last message and leaves the messages as they are.
        sampling: `generation_kwargs` of the spec: temperature, top_p, top_k, min_p, max_tokens, stop, … .
        seed: derived for this very call.
        constraint: as `Reply.constraint` gives it, or None for free text.
    """

    id: str
    thread: Thread
    sampling: Facts
    seed: int
    constraint: Mapping[str, Any] | None = None


class Engine(ABC):
    """Turns requests into completions. Owns its client, retries and rate limits; knows nothing of agents.

    Raises `ContextLengthError`, `RefusedError` and `RequestError` for one request, `EngineFatalError` when it is of no
    more use, `SetupError` from `start` when it cannot begin."""

    incidental: ClassVar[frozenset[str]] = frozenset()  # fields that never change an answer: timeouts, pool sizes
    location: ClassVar[frozenset[str]] = frozenset()  # where it is: a run may go on elsewhere, a response cache not

    @property
    @abstractmethod
    def model(self) -> str:
        """The name shown in tables."""

    def log_to(self, path: Path) -> None:
        """Append to this file what this engine and its processes print. Called before `start`, where a run has a folder
        for it; never in a script that uses an engine by itself."""

    async def start(self) -> None:
        """Load or connect. Called once, before the first request."""

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Answer one request. Called many times at once."""

    def count_tokens(self, text: str) -> int | None:
        """How many tokens a text is to the model; None where the engine cannot say."""
        return None

    def halt(self, reason: Exception) -> None:
        """The run is about to end: raise `reason` rather than try a failed request again. What is in flight goes on."""

    async def rest(self) -> bool:
        """Let go of accelerator memory until the next `start`, which is quick then; False: cannot, close instead."""
        return False

    async def close(self) -> None:
        """Let everything go. Called once, also after a failure."""

    def report(self) -> Facts:
        """What the engine measured of itself (cache hits, retries, …), kept with the run."""
        return {}

    def describe(self) -> Facts:
        """What this engine is, for the run record and for cache keys: its fields but for secrets (`repr=False`)."""
        own = {"model": self.model}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init and f.repr} if is_dataclass(self) else own
