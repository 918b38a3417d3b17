"""What a plan will ask for, before anything is asked: episodes, an upper bound of calls, a guess at tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.api import Case, Turn
from harness.check import Drive, drive
from harness.errors import PluginError
from harness.limits import LARGEST, Limits
from harness.plan import Condition, Plan

CHARS_PER_TOKEN = 4
REPLY_TOKENS = 256


@dataclass(frozen=True)
class Estimate:
    """Figures for a whole plan.

    Attributes:
        conditions, episodes: exact.
        turns: model turns if every episode lasts as long as it, and the spec's limits of calls, allow.
        calls: `turns` with every repair used: an upper bound.
        input_tokens, output_tokens: a guess, with whole conversations sent at every turn, no repairs,
            `REPLY_TOKENS` (or max_tokens) a reply and four characters a token.
    """

    conditions: int
    episodes: int
    turns: int
    calls: int
    input_tokens: int
    output_tokens: int


def estimate(plan: Plan) -> Estimate:
    """Play every case once with idle seats and count what a model in every seat would be asked."""
    limit = plan.sampling.get("max_tokens")
    reply = min(REPLY_TOKENS, limit) if isinstance(limit, int) else REPLY_TOKENS
    episodes = turns = calls = tokens = 0
    for condition in plan.conditions:
        per_turn: float | None = None
        for case in condition.task.cases(plan.limit, plan.seed):
            seated = condition.seated(case, plan.seed)
            asked = list(_driven(condition, seated).turns())
            policies = {group.name for group in condition.groups if group.policy is not None and plan.engines}
            asked = [turn for turn in asked if seated.roles.get(turn.seat, "default") not in policies]
            asked, most = _within(condition.limits, asked)
            if per_turn is None:  # one case stands for its condition: rendering all would take as long as a run
                per_turn = _input_tokens(condition, seated, asked, reply)
            episodes += plan.repeats
            turns += plan.repeats * len(asked)
            calls += plan.repeats * most
            tokens += int(plan.repeats * len(asked) * per_turn)
    return Estimate(len(plan.conditions), episodes, turns, calls, tokens, turns * reply)


def _within(limits: Limits, asked: Sequence[Turn]) -> tuple[list[Turn], int]:
    """The turns that limits of calls leave where nobody is asked again, and the most calls that they allow."""
    seat, episode = limits.calls_per_seat or LARGEST, limits.calls_per_episode or LARGEST
    wanted: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    left: list[Turn] = []
    for turn in asked:
        wanted[turn.seat] += 1 + turn.repairs
        if taken[turn.seat] < seat and len(left) < episode:
            taken[turn.seat] += 1
            left.append(turn)
    return left, min(episode, sum(min(seat, calls) for calls in wanted.values()))


def _driven(condition: Condition, case: Case) -> Drive:
    try:
        return drive(condition.protocol, condition.task, case)
    except (RuntimeError, TypeError) as error:
        raise PluginError(f"{condition.id}: the plan cannot be counted: {error}") from error


def _input_tokens(condition: Condition, case: Case, asked: Sequence[Turn], reply: int) -> float:
    """Mean input tokens a turn over up to four seats of one case."""
    groups = {group.name: group for group in condition.groups}
    total = count = 0
    for seat in dict.fromkeys(turn.seat for turn in asked[:4]):
        prompts = groups[case.roles.get(seat, "default")].prompts
        thread = 0
        for i, turn in enumerate(turn for turn in asked if turn.seat == seat):
            if turn.fresh:
                thread = 0
            if (i == 0 or turn.fresh) and "system" in prompts.files:
                thread += len(prompts.render("system", turn.brief)) // CHARS_PER_TOKEN
            thread += len(prompts.render(turn.name, {**turn.brief, **turn.view})) // CHARS_PER_TOKEN
            # Idle seats send nothing; a model's seat reads about as much as it writes.
            thread += reply if i and not turn.fresh else 0
            total, count = total + thread, count + 1
            thread += reply
    return total / count if count else 0.0
