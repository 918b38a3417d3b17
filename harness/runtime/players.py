"""The players: a model (engine, prompts and its conversation) or a policy. Both turn a Turn into a Move.

A player can also take a recorded move instead of being asked (`recall`): that is how resume and replay work.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Completion, Facts, Move, Policy, Turn, derive_seed
from harness.config.limits import LIMITED, TurnQuota
from harness.config.prompts import PromptSet
from harness.engine_api import CountsTokens, Engine, Request, Thread
from harness.errors import EngineError, EngineFatalError
from harness.replies.reading import read
from harness.storage import UNFINISHED


class ModelPlayer:
    """A model that plays an agent: render → complete → parse → at most `turn.parse_retries` retries.

    Args:
        engine: answers requests; shared by many players.
        prompts: the agent's prompt set.
        sampling: generation_kwargs.
        constrained: decode within the reply's form.
        episode: id of the episode, first part of request ids.
        agent: the agent that plays.
        seed: every call's seed derives from it, the turn and the attempt.
    """

    def __init__(
        self,
        engine: Engine,
        prompts: PromptSet,
        sampling: Facts,
        constrained: bool,
        episode: str,
        agent: str,
        seed: int,
    ) -> None:
        self.engine, self.prompts, self.sampling, self.constrained = engine, prompts, sampling, constrained
        self.id, self.seed = f"{episode}/{agent}", seed
        self.turns = 0
        self.thread = Thread()

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
        index, variables = self.turns, self._open(turn)
        calls: list[Completion] = []
        action = error = kind = None
        for attempt in range(turn.parse_retries + 1):
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
                self.thread.add("user", self.prompts.render("retry", {**variables, "error": error}))
                if attempt > len(previous_calls):
                    on_move(Move(turn.agent, turn.name, None, None, UNFINISHED, tuple(calls)))
            try:
                completion = (
                    await self.engine.complete(self._request(turn, index, attempt))
                    if is_new
                    else previous_calls[attempt]
                )
            except EngineFatalError:
                raise
            except EngineError as failure:
                self.thread.add("assistant", "")  # templates want user and assistant in turn
                action, error, kind = None, str(failure), failure.kind
                break
            except SystemExit as failure:  # would leave the event loop at once, and every other episode with it
                raise RuntimeError(f"SystemExit: {failure}") from failure
            if turn.peer_texts and not attempt and is_new:
                completion = replace(completion, peer_tokens=self._peer_tokens(turn))
            calls.append(completion)
            self.thread.add("assistant", completion.text)
            parsed = read(turn.reply, completion.text)
            if parsed.error is None:
                action, error, kind = parsed.action, None, None
                break
            action, error, kind = parsed.fallback_action, parsed.error, "parse"
        move = Move(turn.agent, turn.name, action, error, kind, tuple(calls))
        on_move(move)
        return move

    def _request(self, turn: Turn, index: int, attempt: int) -> Request:
        constraint = turn.reply.constraint() if self.constrained else None
        seed = derive_seed(self.seed, index, attempt)
        return Request(f"{self.id}/{index}/{attempt}", self.thread, self.sampling, seed, constraint)

    def recall(self, turn: Turn, move: Move) -> None:
        """Rebuild the conversation as if `move` had just been made."""
        variables, calls = self._open(turn), move.calls
        # A failed request, and a turn in which nothing could be asked, left an empty answer.
        failed = move.error_kind not in (None, "parse") and not (move.error_kind == LIMITED and calls)
        for attempt in range(len(calls) + failed):
            if attempt:
                error = read(turn.reply, calls[attempt - 1].text).error
                self.thread.add("user", self.prompts.render("retry", {**variables, "error": error}))
            self.thread.add("assistant", calls[attempt].text if attempt < len(calls) else "")

    def _peer_tokens(self, turn: Turn) -> int | None:
        """Tokens of what the turn shows of other agents (DarkForest, Section 3.5: T_cross)."""
        if not isinstance(self.engine, CountsTokens):
            return None
        counts = [self.engine.count_tokens(text) for text in turn.peer_texts]
        return None if None in counts else sum(count or 0 for count in counts)

    def _open(self, turn: Turn) -> Mapping[str, Any]:
        """Count the turn and put its question at the end of the thread; returns the template variables."""
        self.turns += 1
        if turn.fresh:
            self.thread = Thread(self.thread.age)  # in its episode's place among those that wait
        if not self.thread.messages and "system" in self.prompts.files:
            opening = self.prompts.render("system", turn.context)
            if opening:  # some chat templates know no system message: a set can have one for some turns only
                self.thread.add("system", opening)
        variables = {**turn.context, **turn.observation}
        self.thread.add("user", self.prompts.render(turn.name, variables))
        return variables


def starts_over(turn: Turn, context: Facts | None) -> bool:
    """Whether the turn starts another run for an agent whose last turn had `context` (None: it had none yet)."""
    return turn.fresh and context is not None and turn.context != context


class PolicyPlayer:
    """A policy that plays an agent. Its seed determines all that it does, so recalling is choosing again.

    A turn that opens a new thread with another context is a new start: the policy then remembers nothing either.

    Args:
        make_policy: gives the policy as it is at the start.
        seed: every turn's chance derives from it.
    """

    def __init__(self, make_policy: Callable[[], Policy], seed: int) -> None:
        self.make_policy, self.seed, self.turns = make_policy, seed, 0
        self.policy = make_policy()
        self.context: Facts | None = None

    def decide(self, turn: Turn) -> Move:
        """The policy's move. Raises `ValueError` if the reply's form does not allow it."""
        if starts_over(turn, self.context):
            self.policy = self.make_policy()
        self.context = turn.context
        rng = random.Random(derive_seed(self.seed, self.turns))
        self.turns += 1
        action = self.policy.choose(turn, rng)
        if action != turn.reply.noop and not turn.reply.allows(action):
            options = turn.reply.options
            why = f"turn {turn.name!r} does not allow" if options is None else f"is none of {options!r:.2000}"
            raise ValueError(f"{type(self.policy).__name__} chose {action!r:.200}, which {why}")
        return Move(turn.agent, turn.name, action)

    def recall(self, turn: Turn, move: Move) -> None:
        """Bring the policy's memory to where it was after `move`."""
        self.decide(turn)


Player = ModelPlayer | PolicyPlayer
