"""The players: a model (engine, prompts and its conversation) or a policy (`policy_players`), which turn a Turn into a
Move.

A player can also take a recorded move instead of being asked (`recall`): that is how resume and replay work.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from harness.api import Completion, Engine, Facts, Move, Reply, Request, Thread, Turn, derive_seed
from harness.api.errors import EngineError, EngineFatalError
from harness.config.prompts import PromptSet
from harness.replies.dropped_fields import dropped_fields
from harness.replies.parse_guard import read_completion
from harness.storage import UNFINISHED

if TYPE_CHECKING:
    from harness.api import InnerUsage
    from harness.config.limits import TurnQuota
    from harness.runtime.policy_players import PolicyPlayer

LIMITED: Final = "limit"
"""The `Move.error_kind` of a turn in which a limit allowed no further call."""
NOT_CARRIED_OUT = "not carried out"
"""The answer to a call of a tool without a result."""


class ModelPlayer:
    """A model that plays an agent: render → complete → parse → at most `turn.parse_retries` retries.

    A turn whose reply the model does not write (`Reply.ability`) is asked once.

    Args:
        engine: answers requests; shared by many players.
        prompts: the agent's prompt set.
        sampling: generation_kwargs.
        structured_output: decode within the reply's form.
        name: the ids of its requests begin with it: the episode's id, "/" and the agent.
        seed: every call's seed derives from it, the turn and the attempt.
    """

    def __init__(
        self, engine: Engine, prompts: PromptSet, sampling: Facts, structured_output: bool, name: str, seed: int
    ) -> None:
        self.engine, self.prompts, self.sampling, self.structured_output = engine, prompts, sampling, structured_output
        self.id, self.seed = name, seed
        self.turns = 0
        self.thread = Thread(chat=prompts.chat, verbatim=prompts.verbatim)
        self.prefill = ""  # of the present turn
        self.tools: tuple[Facts, ...] = ()  # what the present turn offers
        self._offered: tuple[Facts, ...] = ()  # the form's tools of which `tools` were made
        self._unanswered: list[str] = []  # ids of the last reply's calls
        self._context: Facts | None = None  # that of `_opening`: new conversations of one agent begin alike
        self._opening: Sequence[dict[str, Any]] = ()
        self.asked = 0  # how many messages stood before its first reply
        self.on_ask: Callable[[], None] = lambda: None  # called when a turn begins in which it is asked
        self.inner_usage: Callable[[int], InnerUsage | None] | None = None  # of a turn, where an agent program plays

    async def act(
        self,
        turn: Turn,
        quota: TurnQuota | None = None,
        previous_calls: Sequence[Completion] = (),
        on_move: Callable[[Move], None] = lambda move: None,
    ) -> Move:
        """Ask the model, unless a limit forbids it.

        Args:
            turn: what is asked.
            quota: how many calls and tokens it may take; None: as many as it needs.
            previous_calls: answers to this turn from before the run stopped: not asked for again.
            on_move: called with the move, and with an `UNFINISHED` one before each retry.

        Raises:
            EngineFatalError, BudgetSpentError: nothing more can or may be asked now; any other engine error becomes
                the move's error.
        """
        self.on_ask()
        index, variables = self.turns, self._open(turn)
        calls: list[Completion] = []
        action = error = kind = None
        dropped: tuple[str, ...] = ()
        for attempt in range(turn.parse_retries + 1 if turn.reply.ability is None else 1):
            is_new = attempt >= len(previous_calls)
            limit = quota.reached(calls) if quota is not None and is_new else None
            if limit is not None:
                await asyncio.sleep(0)  # a player that is asked no more never waits; let others, and Ctrl-C, in
                if not calls:
                    self.thread.add("assistant", "")
                error = f"{limit} is reached" if error is None else f"{error}; not asked again: {limit} is reached"
                kind = LIMITED
                break
            if attempt:
                self._ask_again(variables, error)
                if attempt > len(previous_calls):
                    inner = self.inner_usage(index) if self.inner_usage is not None else None
                    on_move(Move(turn.agent, turn.name, None, None, UNFINISHED, tuple(calls), (), inner))
            try:
                if not is_new:
                    completion = previous_calls[attempt]
                else:
                    completion = await self.engine.complete(self._request(turn, index, attempt))
            except EngineFatalError:
                raise
            except EngineError as failure:
                self.thread.add("assistant", "")  # templates want user and assistant in turn
                action, error, kind = None, str(failure), failure.kind
                break
            except SystemExit as failure:  # would leave the event loop at once, and every other episode with it
                raise RuntimeError(f"SystemExit: {failure}") from failure
            if turn.peer_texts and not attempt and is_new and completion.peer_tokens is None:
                completion = replace(completion, peer_tokens=self._peer_tokens(turn))
            calls.append(completion)
            self._reply(turn.reply, completion, attempt)
            parsed = read_completion(turn.reply, completion)
            dropped = dropped_fields(turn.reply, completion, parsed)
            if parsed.error is None:
                action, error, kind = parsed.action, None, None
                break
            action, error, kind = parsed.fallback_action, parsed.error, "parse"
        inner = self.inner_usage(index) if self.inner_usage is not None else None
        move = Move(turn.agent, turn.name, action, error, kind, tuple(calls), dropped, inner)
        on_move(move)
        return move

    def _request(self, turn: Turn, index: int, attempt: int) -> Request:
        constraint = turn.reply.constraint() if self.structured_output else None
        seed = derive_seed(self.seed, index, attempt)
        name = f"{self.id}/{index}/{attempt}"
        asked = Request(name, self.thread, self.sampling, seed, constraint, self.prefill, self.tools, turn.reply)
        return turn.reply.request_for(asked)

    def _reply(self, form: Reply, call: Completion, attempt: int) -> None:
        """Put the model's message at the end of the thread."""
        if self.inner_usage is not None:  # an agent that plays its turns again has to know which they were
            self.thread.memo.setdefault("turns", {})[len(self.thread.messages)] = self.turns - 1, attempt
        message: dict[str, Any] = {"content": self.prefill + form.message_of(call)}
        if call.provider_fields or call.tool_calls:
            from harness.runtime.call_messages import extended  # what only such a reply needs

            message = extended(message, call, len(self.thread.messages) if self.tools else None, self.engine.model)
            self._unanswered = [one["id"] for one in message.get("tool_calls", ())]
        self.thread.add("assistant", **message)

    def _answer_calls(self, results: Sequence[str] = ()) -> bool:
        """Answer each call of the last reply, as chat templates and servers want it; whether there was one."""
        calls, self._unanswered = self._unanswered, []
        for name, result in itertools.zip_longest(calls, results[: len(calls)], fillvalue=NOT_CARRIED_OUT):
            self.thread.add("tool", result, tool_call_id=name)
        return bool(calls)

    def _ask_again(self, variables: Mapping[str, Any], error: str | None) -> None:
        self._answer_calls()
        self.thread.add("user", self.prompts.render("retry", {**variables, "error": error}))

    def preview(self, turn: Turn) -> Request:
        """The first request of the turn, as `act` sends it. Raises `PromptError`."""
        index = self.turns
        self._open(turn)
        return self._request(turn, index, 0)

    def recall(self, turn: Turn, move: Move) -> None:
        """Rebuild the conversation as if `move` had just been made."""
        variables, calls = self._open(turn), move.calls
        # A failed request, and a turn in which nothing could be asked, left an empty answer.
        failed = move.error_kind not in (None, "parse") and not (calls and move.asked_no_more)
        for attempt in range(len(calls) + failed):
            if attempt:
                self._ask_again(variables, read_completion(turn.reply, calls[attempt - 1]).error)
            if attempt < len(calls):
                self._reply(turn.reply, calls[attempt], attempt)
            else:
                self.thread.add("assistant", "")

    def _peer_tokens(self, turn: Turn) -> int | None:
        """Tokens of what the turn shows of other agents (DarkForest, Section 3.5: T_cross)."""
        counts = [self.engine.count_tokens(text) for text in turn.peer_texts]
        return None if None in counts else sum(count or 0 for count in counts)

    def _open(self, turn: Turn) -> Mapping[str, Any]:
        """Count the turn and put its question at the end of the thread; returns the template variables."""
        self.turns += 1
        if turn.fresh:
            # in its episode's place among those that wait
            self.thread = Thread(self.thread.age, self.prompts.chat, self.prompts.verbatim, self.thread.questions)
            self.tools, self._offered, self._unanswered = (), (), []
        if not self.thread.messages:
            if self._context is not turn.context:
                self._context, self._opening = turn.context, self.prompts.opening(turn.context)
            self.thread.messages += self._opening
        if (tools := turn.reply.tools) != self._offered:
            self._offered, self.tools = tools, self.prompts.tools(tools, turn.context)
        answered = self._answer_calls(turn.call_results) if self._unanswered else False
        variables = {**turn.context, **turn.observation}
        text = self.prompts.render(turn.name, variables)
        if text or not answered:  # the results can say all
            self.thread.add("user", text)
        self.prefill = self.prompts.beginning(variables)
        self.asked = len(self.thread.messages)
        if self.engine.keeps_questions:
            from harness.api.asked_turn import AskedTurn  # what only a program that acts by itself needs

            own = self.turns - 1, derive_seed(self.seed, self.turns - 1, 0), turn.reply, self.tools
            self.thread.questions.append(AskedTurn(self.thread.messages, self.asked, *own))
        return variables


Player: TypeAlias = "ModelPlayer | PolicyPlayer"
