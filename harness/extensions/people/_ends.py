"""How a game has ended, in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any

from harness.api import Facts, Outcome
from harness.runtime.players import ModelPlayer

_LISTED = 20
"""Players whose returns are listed, besides those of people."""
_REASON = 300
"""Characters of an environment's reason."""
_ENDS = {"limit": "The time is up.", "deadlock": "Nobody can go on."}


def seen(agent: str, player: ModelPlayer, outcome: Outcome) -> str:
    """What an agent would read now: the template `state` of its prompt set, or the text `state` of its observation;
    "" where neither is there."""
    if outcome.last is None:
        return ""
    try:
        known = outcome.last(agent)
        text = player.prompts.render("state", known) if "state" in player.prompts.files else known.get("state")
    except Exception as error:  # a plugin's bug in what counts for nothing
        return f"The end cannot be shown: {type(error).__name__}: {error}"
    return text.strip("\n") if isinstance(text, str) else ""


def ended(facts: Facts, people: Collection[str]) -> str:
    """Why a game is over, who has won, and all returns; "" where the facts of the outcome say nothing of that.

    Args:
        facts: of the outcome. Those of games have `returns`, agent → number; some have `reason`, a text.
        people: agents that people have played.
    """
    lines = [_ENDS[facts["end"]]] if facts.get("end") in _ENDS else []
    if isinstance(reason := facts.get("reason"), str) and reason.strip():
        lines.append(reason.strip()[:_REASON])
    returns = facts.get("returns")
    if isinstance(returns, Mapping) and returns and all(map(_is_number, returns.values())):
        shown = [agent for i, agent in enumerate(returns) if i < _LISTED or agent in people]
        you = " (you)" if len(people) == 1 else ""
        listed = ", ".join(f"{agent}{you if agent in people else ''} {returns[agent]:g}" for agent in shown)
        lines += [] if reason else [_winners(returns)]
        lines += [f"Returns: {listed}{', …' * (len(shown) < len(returns))}"]
    return "\n".join(filter(None, lines))


def _winners(returns: Mapping[str, Any]) -> str:
    """Who has got most. Where all returns add up to nothing, that is who has won."""
    most = max(returns.values())
    best = [agent for agent, value in returns.items() if value == most]
    if len(returns) == 1:
        return ""
    if len(best) == len(returns):
        return "All have got the same."
    won = math.isclose(math.fsum(returns.values()), 0, abs_tol=1e-6)
    return f"{_listed(best)} {'has' if len(best) == 1 else 'have'} {'won' if won else 'got most'}."


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
