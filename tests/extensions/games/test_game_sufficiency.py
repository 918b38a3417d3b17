"""What a seat reads over a game is one-to-one with what the game lets it know: nothing leaks, and nothing is lost.

Games are played twice and more, each time with another deal or another move somewhere. Where OpenSpiel shows a seat
the same all the way, the seat must have read the same; where it shows something else, something else.
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from harness.api import Case
from tests.extensions.games.test_openspiel import GRIDS, KINDS, ONE_PLAYER, SLOW_TO_LOAD, WRAPPED, task_of

PUBLIC = ("crazy_eights", "dou_dizhu", "gin_rummy", "hanabi", "negotiation", "skat", "spades")
"""Games without information states, in which players see each other's moves though observations may not show them."""
ASIDE = ("skat",)
"""Of these, those in which a soloist lays cards aside unseen."""
FORGETFUL = ("dark_hex_ir", "liars_dice_ir", "phantom_ttt_ir")
"""Games whose players shall forget: they are shown what they may remember, and a conversation remembers more."""
GAMES = sorted({*KINDS, *WRAPPED, *GRIDS.values()} - {*ONE_PLAYER, *SLOW_TO_LOAD})
STEPS = 60
Events = list[tuple[int, ...]]


def script(task: Any, case: Case, wanted: Events, rng: random.Random) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """States of a game and what is done in each: what is wanted where it is possible, and anything else elsewhere."""
    loaded = task.loaded
    choices = sys.modules[type(task.world(case, random.Random(0))).__module__].choices
    game = loaded.with_seed(case.target)
    state, steps = game.new_initial_state(), 0
    for number in range(STEPS * 3):
        if state.is_terminal() or steps > STEPS:
            return
        if state.is_simultaneous_node():
            options = [state.legal_actions(seat) or [0] for seat in range(game.num_players())]
            steps += 1
        elif state.is_chance_node():
            options = [[action for action, chance in state.chance_outcomes() if chance > 0]]
        else:
            options, steps = [choices(loaded, state, state.current_player())[0]], steps + 1
        given = wanted[number] if number < len(wanted) else ()
        chosen = tuple(
            given[i] if i < len(given) and given[i] in legal else rng.choice(legal) for i, legal in enumerate(options)
        )
        yield state, chosen
        state = state.clone()
        if state.is_simultaneous_node():
            state.apply_actions(list(chosen))
        else:
            state.apply_action(chosen[0])


def twin(events: Events, rng: random.Random) -> Events:
    """Almost the same game: two events have changed places, or one is another."""
    changed, where = list(events), rng.randrange(len(events))
    if rng.random() < 0.5:
        other = rng.randrange(len(events))
        changed[where], changed[other] = changed[other], changed[where]
    else:
        changed[where] = ()
    return changed


def uniforms(played: list[tuple[Any, tuple[int, ...]]]) -> list[float]:
    """The draws that give the chance events of a game."""
    found = []
    for state, (outcome, *_) in played:
        if state.is_chance_node():
            below = 0.0
            for action, chance in state.chance_outcomes():
                if action == outcome:
                    found.append(below + chance / 2)
                    break
                below += chance
    return found


def shown(loaded: Any, state: Any, seat: int) -> tuple[str, ...]:
    """All that OpenSpiel tells a seat."""
    texts = []
    if "information" in loaded.observes:
        texts.append(state.information_state_string(seat))
    if "observation" in loaded.observes:
        texts.append(state.observation_string(seat))
    return tuple(texts)


def readings(task: Any, case: Case, played: list[tuple[Any, tuple[int, ...]]]) -> Iterator[tuple[int, Any, Any]]:
    """(seat, what it may know, what it has read) at each turn of each seat."""
    loaded = task.loaded
    rules = task.world(case, random.Random(0)).rules
    draws = uniforms(played)
    rules.uniform = lambda number: draws[number] if number < len(draws) else 0.5
    world = rules.first()
    known: list[tuple[Any, ...]] = [() for _ in case.agents]
    read: list[tuple[Any, ...]] = [() for _ in case.agents]
    for state, chosen in played:
        if state.is_chance_node():
            if loaded.public:
                known = [(*one, chosen) for one in known]
            continue
        acting = {agent: seat for seat, agent in enumerate(case.agents) if world.acts(agent)}
        for seat in range(len(case.agents)):
            now = shown(loaded, state, seat)
            if now not in known[seat][-1:]:
                known[seat] = (*known[seat], now)
        for agent, seat in acting.items():
            seen = world.observation(agent)
            if loaded.name in FORGETFUL:
                yield seat, known[seat][-1], seen["state"]
                continue
            read[seat] = (*read[seat], (seen["state"], tuple(seen["recent"]), tuple(seen["legal"])))
            yield seat, known[seat], read[seat]
        moves = {agent: world.legal(seat)[1][world.legal(seat)[0].index(chosen[seat if len(chosen) > 1 else 0])]
                 for agent, seat in acting.items()}  # fmt: skip
        for agent, seat in acting.items():  # a conversation has one's own replies
            read[seat] = (*read[seat], moves[agent])
        aside = loaded.name in ASIDE and "Phase:discarding" in state.observation_string(0)
        for seat in range(len(case.agents)):
            mine = seat in acting.values()
            if mine or loaded.public or (loaded.name in PUBLIC and not aside):
                told = moves if loaded.public or loaded.name in PUBLIC else moves[case.agents[seat]]
                known[seat] = (*known[seat], str(told))
        world = world.step(moves, random.Random(0))


def one_to_one(text: str, games: int, twins: int) -> int:
    """Play and compare; how many times a seat stood where it had stood in another game, with the same knowledge."""
    task = task_of(text, recent=0)
    loaded: Any = task.loaded  # type: ignore[attr-defined]
    cases = list(task.cases(2 if loaded.seeded else 1, 0))
    text_of: dict[Any, Any] = {}
    known_of: dict[Any, Any] = {}
    met = 0
    for number in range(games):
        rng = random.Random(number)
        events: Events = [chosen for _, chosen in script(task, cases[0], [], rng)]
        for again, wanted in enumerate([events, *(twin(events, rng) for _ in range(twins))]):
            case = cases[again % len(cases)]
            played = list(script(task, case, wanted, rng))
            for seat, known, read in readings(task, case, played):
                one, other = (seat, hash(known)), (seat, hash(read))
                met += one in text_of
                assert text_of.setdefault(one, read) == read, f"leak: {known}"
                assert known_of.setdefault(other, known) == known, f"not enough: {read}"
    return met


@pytest.mark.sampled(12)
@pytest.mark.parametrize("text", GAMES)
def test_a_seat_reads_what_it_may_know(text: str) -> None:
    assert one_to_one(text, 1, 4)


@pytest.mark.slow
@pytest.mark.parametrize("text", GAMES)
def test_a_seat_reads_what_it_may_know_over_many_games(text: str) -> None:
    assert one_to_one(text, 10, 40)
