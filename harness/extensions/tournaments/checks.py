"""Whether ratings can come of a plan's games."""

from __future__ import annotations

from typing import Final

from harness.config.plan import Plan
from harness.errors import SpecError, UserError, near
from harness.extensions.tournaments.tournament import contestants_of
from harness.tables import TableSpec
from harness.tables.axis import meets

_TWO: Final = ("bradley_terry", "elo")


def unrated(plan: Plan) -> list[SpecError]:
    """Tables of ratings and cross-play whose games have one contestant, or more than their model takes; and those
    with an anchor that plays in none of them.

    What only drawn cases decide is not seen here; the table says of it how many games are left out.
    """
    problems = []
    pool = contestants_of(plan.spec)  # also those that sit out while the first round is drawn
    sides: dict[str, set[str]] = {}
    for i, entry in enumerate(plan.spec.tables):
        if entry.get("kind") not in ("rating", "cross_play"):
            continue
        table = TableSpec.parse(entry)
        assert table.games is not None
        counts: dict[str, int] = {}
        names: set[str] = set()
        for condition in plan.conditions:
            if meets({**condition.labels, "model": plan.model}, table.where):
                if condition.id not in sides:
                    try:
                        example = condition.task.example()
                        agents = condition.protocol.possible_agents(example)
                        roles = condition.assign_groups(example, plan.seed).roles
                    except UserError:  # an example that cannot be played is another mistake
                        continue
                    sides[condition.id] = {roles.get(agent, "default") for agent in agents}
                counts[condition.id] = len(sides[condition.id])
                names |= sides[condition.id]
        place = plan.spec.place("tables", i)
        anchor = table.games.anchor
        if isinstance(anchor, str) and names and anchor not in (known := names | pool):
            message = f"anchor: no contestant is called {anchor!r}"
            problems.append(SpecError(message, place=place, hint=near(anchor, known)))
        crowded = next((name for name, count in counts.items() if count > 2), None)
        if table.games.kind == "rating" and table.games.model in _TWO and crowded is not None:
            message = f"{table.games.model} rates games of two contestants; condition {crowded} has {counts[crowded]}"
            hint = "Say `model: plackett_luce` or `openskill`, which take games of several."
            problems.append(SpecError(message, place=place, hint=hint))
        elif counts and max(counts.values()) < 2:
            message = f"kind: {table.games.kind}: no game has two contestants: a contestant is a group of agents"
            problems.append(SpecError(message, place=place, hint="Put the agents of a game into several groups."))
    return problems
