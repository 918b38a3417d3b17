"""How a game has ended, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from harness.api import Facts, Outcome
from harness.extensions.games.game_result import is_number, winners
from harness.runtime.players import ModelPlayer

_MAX_LISTED_PLAYERS = 20
"""Players whose returns are listed, besides those of people."""
_REASON = 300
"""Characters of an environment's reason."""
_ENDS = {"limit": "The time is up.", "deadlock": "Nobody can go on."}


def end_state(agent: str, player: ModelPlayer, outcome: Outcome) -> str:
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
    end = facts.get("end")
    lines = [_ENDS[end]] if isinstance(end, str) and end in _ENDS else []
    if isinstance(reason := facts.get("reason"), str) and reason.strip():
        lines.append(reason.strip()[:_REASON])
    returns = facts.get("returns")
    if isinstance(returns, Mapping) and returns and all(map(is_number, returns.values())):
        shown = [agent for i, agent in enumerate(returns) if i < _MAX_LISTED_PLAYERS or agent in people]
        you = " (you)" if len(people) == 1 else ""
        listed = ", ".join(f"{agent}{you if agent in people else ''} {float(returns[agent]):g}" for agent in shown)
        lines += [] if reason else [winners(returns)]
        lines += [f"Returns: {listed}{', …' * (len(shown) < len(returns))}"]
    return "\n".join(filter(None, lines))
