"""What the games of a plan can tell tables of games, before any is played.

What only drawn cases decide is not seen here; the tables say about it how many games are left out.
"""

from __future__ import annotations

from harness.api.errors import UserError, near
from harness.config.plan import Plan
from harness.tables import TableSpec
from harness.tables.axis import meets

from .tournament import contestants_of


def sides_of(table: TableSpec, plan: Plan) -> dict[str, set[str]]:
    """Condition → the contestants of its example, for the conditions that the table shows."""
    sides: dict[str, set[str]] = {}
    for condition in plan.conditions:
        if meets({**condition.labels, "model": plan.model}, table.where):
            try:
                example = condition.task.example()
                agents = condition.protocol.possible_agents(example)
                roles = condition.assign_groups(example, plan.seed).roles
            except UserError:  # an example that cannot be played is another mistake
                continue
            sides[condition.id] = {roles.get(agent, "default") for agent in agents}
    return sides


def crowded(table: TableSpec, plan: Plan) -> tuple[str, int] | None:
    """The first condition with more than two contestants, and how many it has."""
    return next(((name, len(sides)) for name, sides in sides_of(table, plan).items() if len(sides) > 2), None)


def unknown_anchor(anchor: str, table: TableSpec, plan: Plan) -> tuple[str, str] | None:
    """Why no contestant is the anchor, with a hint; None if there is an anchor."""
    names = set().union(*sides_of(table, plan).values())
    known = names | contestants_of(plan.spec)  # also those that sit out while the first round is drawn
    if not names or anchor in known:
        return None
    return f"anchor: no contestant is called {anchor!r}", near(anchor, known)
