"""The prompts of an agent as its model gets them, with what it did already known: nothing is asked."""

from __future__ import annotations

from harness.api import Move, Turn
from harness.config.prompts import PromptSet
from harness.engines.mock import Mock
from harness.replies import likelihoods_of
from harness.runtime.players import ModelPlayer
from harness.view_api import RecordedTurn

_UNANSWERED = "unanswered"


class PromptReader(ModelPlayer):
    """A player that only rebuilds its agent's conversation, even if a policy plays: what it shows is what any model
    would be sent."""

    def __init__(self, prompts: PromptSet, agent: str) -> None:
        super().__init__(Mock(), prompts, {}, False, agent, 0)
        self._chose = False  # whether a policy made the last move

    def read(self, turn: Turn, move: Move | None, round_number: int, number: int = 0) -> RecordedTurn:
        """The agent's next turn with its prompt. Raises `PromptError`.

        Args:
            turn: what the protocol asks.
            move: what the agent did; None if it has not answered yet.
            round_number: that of its batch.
            number: the turn's place in the episode, over all agents.
        """
        index = self.turns
        before = 0 if turn.fresh else len(self.thread.messages)
        offered = () if turn.fresh else self.tools
        if self._chose and offered and not turn.fresh:  # a policy's actions have no calls; a model's would have
            self._unanswered = [str(i) for i in range(len(turn.call_results))]
        self._chose = move is not None and not move.calls and move.error_kind is None
        self.recall(turn, move or Move(turn.agent, turn.name, None, "", _UNANSWERED))
        messages = [(m["role"], m["content"]) for m in self.thread.messages[before:]]
        first = self.asked - before
        begun = [("assistant", self.prefill)] if self.prefill else []
        scored = likelihoods_of(turn.reply)
        return RecordedTurn(
            number=number,
            round=round_number,
            agent=turn.agent,
            index=index,
            name=turn.name,
            context=turn.context,
            observation=turn.observation,
            prompt=(*messages[:first], *begun),
            retries=tuple(text for role, text in messages[first:] if role == "user"),
            fresh=turn.fresh or index == 0,
            move=move,
            scored=tuple(text.text for text in scored.continuations) if scored is not None else (),
            tools=self.tools if self.tools != offered else (),
        )
