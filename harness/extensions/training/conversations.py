"""What a learning agent was asked and what its model replied: messages, or token ids with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Completion, Facts


@dataclass(frozen=True, slots=True)
class ReplyStep:
    """One reply of the model in a conversation.

    Attributes:
        message: index of the reply in `AgentConversation.messages`.
        completion: the reply, with its token ids and log-probabilities where the trainer gave them.
        turn: index of the turn among all turns of the agent.
        batch: index of the batch of turns in the episode.
        attempt: 0; 1, 2, … where an unreadable reply was asked for again.
        reward: of this turn alone; at the last attempt.
    """

    message: int
    completion: Completion
    turn: int
    batch: int
    attempt: int
    reward: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenSample:
    """A sequence of tokens to train on. All lists have one entry a token.

    Attributes:
        token_ids: prompts and replies, exactly as the model saw and wrote them.
        mask: whether the model generated the token.
        logprobs: natural log-probabilities of the generated tokens, 0.0 elsewhere; None where a reply has none.
        rewards: a turn's own reward at the last token of its reply, else 0.0.
        reward: of the agent, for the whole episode.
    """

    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float] | None
    rewards: list[float]
    reward: float | None


@dataclass(frozen=True, slots=True)
class AgentConversation:
    """One conversation of a learning agent; an agent whose turns begin anew has several.

    Attributes:
        agent: whose it is.
        group: its group under `agents:`.
        index: which of the agent's conversations it is, from 0.
        messages: those of OpenAI's chat API, up to the last reply.
        tools: the functions that were offered.
        replies: what the model wrote.
        reward: of the agent, for the whole episode; None if the episode failed or has no number.
    """

    agent: str
    group: str
    index: int
    messages: Sequence[dict[str, Any]]
    tools: tuple[Facts, ...]
    replies: tuple[ReplyStep, ...]
    reward: float | None = None

    def samples(self) -> list[TokenSample]:
        """The conversation in token ids: one sample, as long as each prompt begins with what came before it.

        Where it does not, as with chat templates that drop earlier thoughts, a new sample begins with that prompt.
        Empty if a reply has no token ids.
        """
        if any(s.completion.token_ids is None or s.completion.prompt_token_ids is None for s in self.replies):
            return []
        scored = all(step.completion.logprobs is not None for step in self.replies)
        samples: list[TokenSample] = []
        ids: list[int] | None = None
        for step in self.replies:
            prompt, own = step.completion.prompt_token_ids or (), step.completion.token_ids or ()
            if ids is None or list(prompt[: len(ids)]) != ids:
                ids = []
                samples.append(TokenSample(ids, [], [] if scored else None, [], self.reward))
            now, new = samples[-1], len(prompt) - len(ids)
            ids += prompt[len(ids) :]
            ids += own
            now.mask.extend([False] * new + [True] * len(own))
            now.rewards.extend([0.0] * (new + len(own)))
            if now.logprobs is not None:
                now.logprobs.extend([0.0] * new + [*(step.completion.logprobs or ())])
            if now.rewards:
                now.rewards[-1] += step.reward
        return samples
