"""Teams of a tournament: the agents of a game that one contestant plays together, such as partners at bridge."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

from harness.api import Case, Task
from harness.api.errors import Place, SpecError, near
from harness.config.building import PlaceOf
from harness.extensions.games.game_task import GameTask

Team = tuple[str, ...] | Callable[[Case], Sequence[str]]
"""The agents of a team, or what gives them for a case."""
TeamsEntry = Literal["game"] | Sequence[Sequence[str | int]] | None
"""What `teams:` says."""


def teams_of(entry: TeamsEntry, task: Task, seats: Sequence[str], place: PlaceOf) -> list[Team]:
    """The teams of a game with these seats; without an entry each agent is one of its own.

    Raises `SpecError` where `game` has no teams, and for lists that do not name every agent once.
    """
    if entry is None:
        return [(agent,) for agent in seats]
    if entry == "game":
        count = len(task.teams(task.example())) if isinstance(task, GameTask) else 0
        if not count:
            hint = f"List them: teams: [[{', '.join(seats[::2])}], [{', '.join(seats[1::2])}]]"
            raise SpecError("teams: this game says nothing of teams", place=place("teams"), hint=hint)
        return [_of_game(task, number) for number in range(count)]
    found: list[str] = []
    teams: list[Team] = []
    for i, team in enumerate(entry):
        agents = tuple(_agent(one, seats, place("teams", i, j)) for j, one in enumerate(team))
        found += agents
        teams.append(agents)
    twice = next((agent for agent in found if found.count(agent) > 1), None)
    missing = [agent for agent in seats if agent not in found]
    if twice or missing:
        what = f"{twice} is in two places" if twice else f"{', '.join(missing[:5])} is in no team"
        raise SpecError(f"teams: {what}", place=place("teams"), hint="Every agent of the game is in one team.")
    return teams


def together(teams: Sequence[Team]) -> Team:
    """The agents of several teams."""
    fixed = [team for team in teams if not callable(team)]
    if len(fixed) == len(teams):
        return tuple(itertools.chain.from_iterable(fixed))
    return lambda case: tuple(agent for team in teams for agent in (team(case) if callable(team) else team))


def _agent(one: str | int, seats: Sequence[str], place: Place) -> str:
    if isinstance(one, int) and 0 <= one < len(seats):
        return seats[one]
    if one in seats:
        return str(one)
    hint = f"{near(str(one), seats)} Or a number from 0 to {len(seats) - 1}."
    raise SpecError(f"teams: no agent {one!r:.60}", place=place, hint=hint)


def _of_game(task: Task, number: int) -> Team:
    assert isinstance(task, GameTask)
    return lambda case: task.teams(case)[number]
