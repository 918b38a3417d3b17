"""The values and interfaces that plugins use.

This module imports the standard library only. Read `Turn`, `Move` and `Protocol` first: a protocol yields batches of
turns and receives their moves.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from harness.engine_api import Ability, Request

Action = Any  # what an agent does in a turn: any JSON value
Facts = Mapping[str, Any]  # named JSON values

Grading = Literal["quick", "slow", "executes"]

T = TypeVar("T")


@dataclass_transform(kw_only_default=True)
def plugin(cls: type[T]) -> type[T]:
    """Tag the one class of a plugin file. The class becomes a dataclass, and its fields are its YAML parameters."""
    made = dataclass(kw_only=True)(cls)
    made.__harness_plugin__ = True  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number parameter: `size: Annotated[int, Range(ge=2)]`. One that is `endless` may be infinite."""

    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None
    endless: bool = False


def derive_seed(*parts: object) -> int:
    """Return a 63-bit seed that depends on every part and on nothing else, so never on the order of completion."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True)
class Case:
    """One problem of a task.

    Attributes:
        id: unique within its condition, and the same in every run.
        agents: the names of the agents, in order of play.
        public: facts that every agent may know.
        private: agent → facts that only this agent may know.
        topology: agent → its neighbors in order. None: all agents reach one another.
        target: the right answer; only `Task.grade` may read it.
        labels: facts to group tables by, added to those of the condition.
        roles: agent → name of its group in the spec's `agents:`. Agents without an entry are in "default".
        unscored: agents whose answers do not count (byzantine ones); grading leaves them out.
        sampling: generation settings of this case, such as stop words; the spec's own settings override them.
    """

    id: str
    agents: tuple[str, ...]
    public: Facts = field(default_factory=dict)
    private: Mapping[str, Facts] = field(default_factory=dict)
    topology: Mapping[str, tuple[str, ...]] | None = None
    target: Any = None
    labels: Facts = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    unscored: frozenset[str] = frozenset()
    sampling: Facts = field(default_factory=dict)


def as_text(value: Any) -> str:
    """A text unchanged; any other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing a reply: an action, or the reason why there is none.

    Attributes:
        action: the action.
        error: what is wrong with the text; None if it is readable.
        fallback_action: with an error, the action that counts if the agent is not asked again, such as the message
            beside an unreadable action.
    """

    action: Action = None
    error: str | None = None
    fallback_action: Action = None


@dataclass(frozen=True, slots=True)
class ReplyField:
    """A field of a reply, as its form declares it. Format lines, JSON schemas, tools and example replies derive from
    it.

    Attributes:
        name: the key of a JSON object, the name of an element, the argument of a tool, such as "action".
        lead: the label that announces it on its line, such as "ACTION:"; "" if nothing does.
        schema: the JSON Schema of its value.
        required: whether a reply without it is unreadable.
        words: what it is, for a model that gives it as an argument of a tool.
    """

    name: str
    lead: str = ""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = True
    words: str = ""


class Reply(ABC):
    """The form of a reply: it parses text into an action, in linear time and without raising on any text.

    A form declares its fields (`fields`) and what each says for an action (`says`), so that code can write replies
    without a model. A form that only another package defines, such as the filters of lm-eval, declares no fields.
    """

    __slots__ = ()
    takes_text: ClassVar[bool] = False  # of a form with tools: whether the text of a model that calls none is read

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The fields, in the order in which a reply has them."""
        return ()

    def says(self, action: Action) -> Facts:
        """The fields of a reply with this action: field → a text or another JSON value, None for an empty field."""
        return {self.fields[0].name: action} if self.fields else {}

    def written(self, action: Action) -> str:
        """A reply with this action, as the prompt asks for it: each field on its line. "" without fields."""
        said = self.says(action)
        lines = ((one.lead, said.get(one.name)) for one in self.fields)
        return "\n".join(f"{lead} {as_text(value)}".lstrip() for lead, value in lines if value is not None)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply that is one object with the fields."""
        properties = {one.name: dict(one.schema) for one in self.fields}
        required = [one.name for one in self.fields if one.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    @property
    def examples(self) -> tuple[Action, ...]:
        """Some legal actions: its options, or a few of many."""
        return (self.options or ())[:50]

    @property
    def options(self) -> tuple[Action, ...] | None:
        """All legal actions if they are finitely many (without messages beside them), else None."""
        return None

    @property
    def noop(self) -> Action:
        """The action of an agent that does nothing; it must be legal. None if the turn requires an answer."""
        return None

    def allows(self, action: Action) -> bool:
        """Whether `action` is legal. A form without `options` allows everything by default."""
        return self.options is None or action in self.options

    @abstractmethod
    def parse(self, text: str) -> Parsed:
        """Parse `text`. `Parsed.error` says what is wrong in words that help the model to correct it."""

    def well_formed(self, text: str) -> bool:
        """Whether a readable text is also well-formed, as the prompt asks for."""
        return True

    def constraint(self) -> Mapping[str, Any] | None:
        """One of {"json": schema}, {"choice": [text]}, {"regex": …}, {"grammar": …} for constrained decoding."""
        return None

    @property
    def tools(self) -> tuple[Facts, ...]:
        """Functions that a model calls instead of writing a text, each {"name", "parameters"}; none by default.

        `parameters` is the JSON schema of the arguments. The template `tool` describes one without a `description`.
        """
        return ()

    @property
    def without_tools(self) -> Reply:
        """The form for policies: without what only offers it as a tool."""
        return self

    def calls_of(self, action: Action) -> tuple[Facts, ...]:
        """The calls of `tools` with which a model gives this action: each {"name", "arguments"} (a JSON text)."""
        return ()

    def parse_calls(self, calls: Sequence[Facts]) -> Parsed:
        """Parse calls of `tools`, each {"id", "name", "arguments"} (a JSON text). Returns as `parse`."""
        return Parsed(error="this form takes no calls of tools")

    @property
    def ability(self) -> type[Ability] | None:
        """The ability with which an engine answers, if the model writes no text; None: it writes one.

        A turn with such a form is asked once, by its `request_for`; `parse_completion` reads the answer.
        """
        return None

    @property
    def extras(self) -> tuple[tuple[str, str], ...]:
        """What a request says besides the conversation, for readers: (heading, text)."""
        return ()

    def request_for(self, asked: Request) -> Request:
        """How an engine is asked: `asked`, or with an `ability` a request of its kind in its place."""
        return asked

    def parse_completion(self, completion: Completion) -> Parsed:
        """Parse the answer of an engine with the `ability`. Returns as `parse`."""
        return self.parse(completion.text)

    def message_of(self, completion: Completion) -> str:
        """What the model says in its conversation by this answer."""
        return completion.text


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for one action of one agent.

    Attributes:
        agent: the agent.
        name: the template: `<name>.j2` of the agent's prompt set.
        observation: what the agent sees now. Together with `context`, these are the template's variables.
        reply: the form of the reply.
        context: what the agent knows from the start. `system.j2` renders it when the conversation starts.
        parse_retries: how often an unreadable reply is asked for again.
        fresh: whether to start a new conversation.
        peer_texts: texts of other agents that appear here for the first time; their tokens are counted.
        call_results: what the agent's last calls of `Reply.tools` have returned, in their order. A model reads each as
            the answer to its call; the observation may hold them too, for policies.
    """

    agent: str
    name: str
    observation: Facts
    reply: Reply
    context: Facts = field(default_factory=dict)
    parse_retries: int = 0
    fresh: bool = False
    peer_texts: tuple[str, ...] = ()
    call_results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished model call.

    `…_tokens` are counts, `peer_tokens` those of `Turn.peer_texts`; `latency` is in seconds; `cost` is in USD, as a
    user's own agent reports it. A value is None if the engine does not report it. `reasoning` never enters the
    conversation again.

    A call that scored texts has no text; its `likelihoods` are one `[log-likelihood, whether greedy decoding gives this
    text]` for each of them.

    `tool_calls` are the model's calls of `Reply.tools`, each with the texts "id", "name" and "arguments" (JSON, if the
    model wrote valid JSON); None if it made none.
    """

    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    peer_tokens: int | None = None
    latency: float | None = None
    cost: float | None = None
    likelihoods: Sequence[Sequence[float | bool]] | None = None
    tool_calls: Sequence[Mapping[str, str]] | None = None

    @property
    def shown(self) -> str:
        """The text, and below it a line `name(arguments)` for each call of a tool: what readers see of the reply."""
        if not self.tool_calls:
            return self.text
        calls = (f"{call.get('name', '')}({call.get('arguments', '')})" for call in self.tool_calls)
        return "\n".join([*filter(None, [self.text]), *calls])


@dataclass(frozen=True, slots=True)
class Move:
    """The result of a turn: an action, or the reason why there is none, and the model calls (none for a policy).

    `error_kind` is "parse" if no call gave a readable reply (the action is then the last `Parsed.fallback_action`),
    "limit" if the spec's `limits:` allowed no further call, and otherwise the kind of an `EngineError`.
    `dropped_fields` are fields that the last reply states and that are not part of the action.
    """

    agent: str
    turn: str
    action: Action = None
    error: str | None = None
    error_kind: str | None = None
    calls: tuple[Completion, ...] = ()
    dropped_fields: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """The last reply, as the model wrote it, with its calls of tools."""
        return self.calls[-1].shown if self.calls else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an episode: one answer per agent, or one of the group, and facts for metrics.

    `last`, never recorded, gives what an agent would see (context and observation) if it had one more turn."""

    answers: Mapping[str, Action] = field(default_factory=dict)
    group: Action = None
    facts: Facts = field(default_factory=dict)
    last: Callable[[str], Facts] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Episode:
    """One case, played once. Metrics read this and nothing else.

    Attributes:
        id: `condition/case/repeat`, unique in its run.
        batches: the moves in the order in which the protocol received them.
        grade: the result of `Task.grade`, as JSON keeps it; empty if the episode failed.
        error: why the episode failed. Such an episode is counted and shown, and never scored as wrong.
    """

    id: str
    condition: str
    case: str
    repeat: int
    labels: Facts
    roles: Mapping[str, str]
    batches: Sequence[Sequence[Move]]
    outcome: Outcome | None = None
    grade: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    def moves(self) -> Iterable[Move]:
        """All moves, batch by batch."""
        return (move for batch in self.batches for move in batch)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number, its standard error (None below two observations) and the number of observations."""

    value: float | None
    stderr: float | None
    n: int


class Task(ABC):
    """A family of cases and their grading. Fields are YAML parameters.

    The base class decides which protocols can play it: a `QuestionTask`, a `NetworkTask`, a `SteppedTask`
    (`harness.extensions`), or this one for protocols that need nothing more.

    `grades` and `grading` are constants of the class (`grades = ("solved",)`), or properties if they depend on
    parameters.
    """

    wanted: tuple[str, ...] = ()  # those of `optional_grades` that metrics of the spec need: `grades` has them too

    @property
    def grades(self) -> tuple[str, ...]:
        """The names that `grade` returns; metrics need them."""
        return ()

    @property
    def optional_grades(self) -> tuple[str, ...]:
        """Names that `grade` returns only if a metric needs them (`wanted`), such as texts beside right answers."""
        return ()

    @property
    def grading(self) -> Grading:
        """How `grade` runs.

        "slow" runs in a thread of its own. "executes" does so too and runs programs that models wrote, which needs
        `--allow_code_execution`.
        """
        return "quick"

    def stands_in(self, folder: Path) -> None:
        """Receive the folder of the spec, to which paths in it are relative; by default a task ignores it."""

    @abstractmethod
    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the first `limit` cases (all if None), always the same ones for a seed."""

    def example(self) -> Case:
        """Return a small case that needs no data and no heavy package. `validate` renders prompts with it."""
        return next(iter(self.cases(1, 0)))

    def inputs(self, seed: int) -> Sequence[str]:
        """Lines about the content of the user's own files. A run prints them first, so that misread files show."""
        return ()

    @abstractmethod
    def context(self, case: Case, agent: str) -> Facts:
        """The agent's context: the only facts that it starts with. Never the target."""

    def secrets(self, case: Case) -> Facts:
        """Values that no agent may find in its context, by name: by default the right answer."""
        return {} if case.target is None else {"target": case.target}

    @abstractmethod
    def reply(self, case: Case, agent: str) -> Reply:
        """The form of the agent's final answer."""

    @abstractmethod
    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return a value for every name in `grades`. It must be total: defined for every outcome.

        A value is a number, None, or the JSON value that a `CorpusMetric` keeps of the episode.
        """

    def canonical(self, case: Case, action: Action) -> str:
        """One text for all equal answers; votes count by it. By default the answer as JSON."""
        return json.dumps(action, sort_keys=True)

    def question_text(self, case: Case) -> str:
        """The question of a case, if it is a text. The draws of a policy that uses the ground truth depend on it."""
        return ""

    def ordinary(self) -> Callable[[Turn], Action] | None:
        """A player whose episodes have ordinary length, for estimates; None if idle agents play the longest
        episodes."""
        return None

    def misfit(self, needed: type[Task]) -> str | None:
        """Why a protocol that needs `needed` cannot play these cases, for the spec's author; None if it can."""
        return None if isinstance(self, needed) else f"{type(self).__name__} is not a {needed.__name__}"


class OpenChannel(ABC):
    """A channel within one episode. `observation` is pure; only `commit` changes its state."""

    @abstractmethod
    def observation(self, agent: str) -> Facts:
        """What the agent sees now. Calling it twice gives the same result."""

    @abstractmethod
    def commit(self, moves: Sequence[Move]) -> None:
        """Deliver everything that was sent in a batch."""


class Channel(ABC):
    """Carries what agents send to the agents that observe it."""

    @property
    def opens(self) -> type[OpenChannel]:
        """The class that `open` returns. A protocol plays on channels of one kind (`Protocol.needs_channel`)."""
        return OpenChannel

    @abstractmethod
    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        """Return a fresh channel for one episode. `rng` is its only source of randomness."""


# A protocol's game: yields a batch of turns, receives one move per turn in the same order, returns the outcome.
Play = Generator[list[Turn], list[Move], Outcome]


class Protocol(ABC):
    """Decides who acts when and what each agent observes.

    It does no I/O and holds no engine; its state lives in local variables of `play`.
    """

    needs: ClassVar[type[Task]] = Task  # the kind of task that it can play
    needs_channel: ClassVar[type[OpenChannel]] = OpenChannel  # the class that its channels must open
    facts: ClassVar[tuple[str, ...]] = ()  # the names it puts into `Outcome.facts`; metrics may need them
    longer_in_dispute: ClassVar[bool] = False  # whether episodes last longest if all answers differ

    def facts_with(self, task: Task) -> tuple[str, ...]:
        """`facts`, and those of the task if the class that the protocol needs has some (`SteppedTask`)."""
        added: tuple[str, ...] = getattr(task, "facts", ()) if hasattr(self.needs, "facts") else ()
        return (*self.facts, *added)

    @classmethod
    def prepare(cls, plan: Any) -> Mapping[str, str]:
        """Read what protocols of this class need for a `harness.config.plan.Plan`, such as calibrated parameters.

        Returns:
            name of a file → SHA-256 of its content; the run records them.

        Raises:
            UserError: something is missing, or does not fit the plan.
        """
        return {}

    @property
    def agent_groups(self) -> tuple[str, ...]:
        """The groups of the spec's `agents:` that its parameters name. A spec without one of them is refused."""
        return ()

    def possible_agents(self, case: Case) -> tuple[str, ...]:
        """The agents: those of the case, unless the protocol has its own (a panel, a coordinator)."""
        return case.agents

    @abstractmethod
    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Drive one episode. If every agent plays `reply.noop`, the episode must last as long as it ever can."""

    def misfit(self, task: Task) -> str | None:
        """Why it cannot play a task of the kind that it needs, for the spec's author; None if it can."""
        return None

    def shape(self, task: Task, case: Case) -> Hashable | None:
        """The value that alone determines the course of an episode in which every agent plays `reply.noop`.

        `harness plan` plays one episode for all cases of the same shape: the same agents get the same turns, apart from
        their contexts and the first observations. None, the default: it plays every case.
        """
        return None


class Policy(ABC):
    """A scripted agent.

    Every agent of every episode gets a new instance, so a policy may keep state in attributes
    (`field(init=False)`).

    A policy that simulates agents of a given skill has to know the right answer. It sets `uses_ground_truth`; then
    the harness calls `inform` with the case, target included, right after it creates the policy, and marks every score,
    table and run record. No other player ever sees a case's `target`.
    """

    uses_ground_truth: ClassVar[bool] = False

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Receive the case, before the first `choose`. Called only if `uses_ground_truth`, and not by checks of
        plugins.

        Args:
            agent: the agent that this policy plays.
            case: the question, with its right answer.
            seed: the same for all agents and all conditions that play this case in this repeat.
        """

    def check(self, agents: Collection[str]) -> None:
        """Check parameters that name agents, before any episode; called only if `uses_ground_truth`.

        `agents`: the agents that such a policy plays, in all conditions. Raises `PluginError` for a parameter that
        names no agent.
        """

    @abstractmethod
    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return a legal action, from `turn.context`, `turn.observation`, `turn.reply` and `rng` alone."""

    def misfit(self, task: Task) -> str | None:
        """Why it cannot play this task, for the spec's author; None if it can."""
        return None


class InformedPolicy(Policy):
    """Knows the right answer, to simulate agents of a declared skill; scores, tables and run records are marked.

    `label` describes the simulation in a few words, for tables; "" adds nothing. Where `inform` was not called, as in
    checks of plugins, it must do nothing.
    """

    uses_ground_truth: ClassVar[bool] = True
    label: str = ""

    @abstractmethod
    def inform(self, agent: str, case: Case, seed: int) -> None:
        """As `Policy.inform`; called again when a second run of the case begins."""


UNBOUNDED = (-math.inf, math.inf)
Bounds = tuple[Annotated[float, Range(endless=True)], Annotated[float, Range(endless=True)]]
"""Between which numbers something lies; each may be infinite (`.inf` in YAML)."""


class Metric(ABC):
    """One number per episode, and how the numbers become a statistic.

    A share of the events of all episodes together is a `RatioMetric`; any other number of all episodes together (F1,
    BLEU, perplexity) is a `CorpusMetric`.
    """

    bounds: ClassVar[Bounds] = UNBOUNDED  # of its numbers, such as (0, 1) of a share; intervals stay within
    results_of_contestants: ClassVar[bool] = False  # whether its records name the players and their results
    measured_by: ClassVar[str | None] = None  # the extension that computes its numbers after all episodes
    needs: tuple[str, ...] = ()  # names among the task's grades, the protocol's facts, or the world's
    note: str = ""  # printed below tables that show its numbers

    @abstractmethod
    def measure(self, episode: Episode) -> Any:
        """Return the episode's number (a float; for a `RatioMetric` its parts, for a `CorpusMetric` its record), or
        None if it has none."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return mean and standard error of the mean with ddof = 1 (AgentsNet, Appendix C, eq. 1 and 2)."""
        n = len(numbers)
        stderr = statistics.stdev(numbers) / n**0.5 if n > 1 else None
        return Statistic(statistics.fmean(numbers) if n else None, stderr, n)

    def recall(self, name: str, meta: Facts) -> None:
        """Read from the run.json of a finished run what it records about this metric, which the spec calls `name`."""


Parts = tuple[float, float]
"""Numerator and denominator of one episode: 3 of 7 decisions."""


class RatioMetric(Metric):
    """One ratio over all events of all episodes: the sum of numerators over the sum of denominators.

    An episode with more events weighs more. The standard error treats episodes, and not events, as independent
    observations (`linearised`).
    """

    @abstractmethod
    def parts(self, episode: Episode) -> Parts | None:
        """Return (numerator, denominator) of the episode; None, or a denominator of 0, if there is nothing to count."""

    def measure(self, episode: Episode) -> Parts | None:
        """Return the parts; None if there is nothing to count. Raises `ValueError` for a negative denominator."""
        found = self.parts(episode)
        if found is not None and found[1] < 0:
            raise ValueError(f"the denominator is {found[1]!r}, below 0")
        return found if found is not None and found[1] else None

    def aggregate(self, numbers: Sequence[Parts]) -> Statistic:
        """Return Σ numerators / Σ denominators with the standard error of the linearized ratio; `n` counts episodes."""
        return super().aggregate(linearised(numbers))


class CorpusMetric(Metric):
    """A number of all episodes together that is not a mean of theirs: F1, BLEU, a perplexity.

    Each episode gives a record: whatever JSON value `aggregate` needs from it, such as [reference, prediction]. An
    episode has no number of its own, so tests and intervals that need one leave the metric out.
    """

    @abstractmethod
    def measure(self, episode: Episode) -> Any:
        """Return the episode's record, a JSON value; None if it has none."""

    @abstractmethod
    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return the statistic of these records, in the order of the plan; there is at least one."""


def linearised(parts: Sequence[Parts]) -> list[float]:
    """Return values zᵢ = r + (aᵢ − r·bᵢ)/b̄, whose mean is r = Σa/Σb and whose standard error of the mean is that of r.

    So all statistics of means (intervals, t tests) work for ratios, with each episode as one observation (Cochran,
    Sampling Techniques, 3rd ed. 1977, Section 2.11: variance Σ(aᵢ − r·bᵢ)²/(n − 1)/n/b̄²). Empty if Σb is 0.
    """
    below = math.fsum(b for _, b in parts)
    if not below:
        return []
    ratio, mean = math.fsum(a for a, _ in parts) / below, below / len(parts)
    return [ratio + (a - ratio * b) / mean for a, b in parts]
