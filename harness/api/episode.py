"""What happens in an episode: cases, turns, completions, moves and outcomes.

Read `Turn` and `Move` first: a protocol yields batches of turns and receives their moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .reply import Action, Facts, Reply

if TYPE_CHECKING:
    from .inner_calls import InnerUsage


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
    user's own agent reports it. A value is None if the engine does not report it.

    `reasoning` enters the conversation again only in `provider_fields`: the engine's `model`, which gets them back with
    this reply, and fields of the `message` and of each of the `tool_calls`; there null stands for `reasoning`.

    A call that scored texts has no text; its `likelihoods` are one `[log-likelihood, whether greedy decoding gives this
    text]` for each of them.

    `tool_calls` are the model's calls of `Reply.tools`, each with the texts "id", "name" and "arguments" (JSON, if the
    model wrote valid JSON); None if it made none.

    `began` is when the engine got the request, or began to work on it where `latency` leaves out a wait, in seconds
    since 1970 by this machine's clock: no part of what the call is, so that two completions are equal whenever they
    were made.

    `request_digest` is what the call is known by (`harness.engines.call_keys`), in hexadecimal; `reused_from` is the
    run in which it was asked, if that is another one (`--reuse`).

    Engines that were asked for tokens give three more. `prompt_token_ids` is the prompt as the model read it, whole.
    `token_ids` is what the model generated, with the token that ended its turn if it generated one. `logprobs` has the
    natural logarithm of the probability of each of `token_ids`, in the model's distribution at temperature 1 unless
    the engine says otherwise.
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
    request_digest: str | None = None
    reused_from: str | None = None
    provider_fields: Mapping[str, Any] | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    began: float | None = field(default=None, compare=False)

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
    "limit" if the spec's `limits:` allowed no further call, and otherwise the kind of an `EngineError`. Its `error` is
    then for people: protocols see "the request failed".
    `dropped_fields` are fields that the last reply states and that are not part of the action. `inner_calls` is what
    an agent program asked its model meanwhile; None for all others.
    """

    agent: str
    turn: str
    action: Action = None
    error: str | None = None
    error_kind: str | None = None
    calls: tuple[Completion, ...] = ()
    dropped_fields: tuple[str, ...] = ()
    inner_calls: InnerUsage | None = None

    @property
    def text(self) -> str | None:
        """The last reply, as the model wrote it, with its calls of tools."""
        return self.calls[-1].shown if self.calls else None

    @property
    def asked_no_more(self) -> bool:
        """Whether a limit of the spec (`limits:`) allowed no request (any more). A limit of the model behind an agent's
        program (`inner_limits`) is none: the agent was asked, and did not reply."""
        return self.error_kind == "limit" and not (self.inner_calls is not None and self.inner_calls.limited)

    @property
    def was_asked(self) -> bool:
        """Whether a model, or an agent's program, was asked: no policy chose, and limits of the spec left a request."""
        return bool(self.calls) or (self.error_kind is not None and not self.asked_no_more)

    def used(self, *kinds: str) -> int | None:
        """Tokens of these kinds together ("input_tokens", …), by the rule of `tokens_used`."""
        counts = ([getattr(call, kind) for kind in kinds] for call in self.calls)
        reported = (None if None in each else sum(each) for each in counts)
        inner = self.inner_calls
        return tokens_used(reported, None if inner is None else sum(getattr(inner, kind) for kind in kinds))


def tokens_used(reported: Iterable[int | None], inner: int | None = None) -> int | None:
    """The tokens that a turn used; None if nothing is known of them.

    Args:
        reported: those of each reply; None of one that does not say it.
        inner: those of all calls that an agent program made of a model in the turn; None where it had no model. They
            stand for the replies', which are sums of the same calls, and are also known where a reply never came.
    """
    known = [count for count in reported if count is not None]
    return inner or (sum(known) if known else None)


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
