"""What agents read about a game agrees with how the game is played, and with itself."""

import random
import re
import sys
from typing import Any

import pyspiel
import pytest

from tests.extensions.games.test_openspiel import GRIDS, KINDS, MOST, ONE_PLAYER, SLOW_TO_LOAD, first, task_of
from tests.helpers.commands import invoke

SAME, OWN = "All players get the same return.", "Each player has a return of its own."
AGAINST = "What one player wins, the others lose."
GAMES = sorted({*KINDS, *GRIDS} - {*ONE_PLAYER, *SLOW_TO_LOAD} | {*GRIDS})


def ends(loaded: Any, count: int) -> list[list[float]]:
    """The returns of games of random players that end within `MOST` steps."""
    finished = []
    for seed in range(count):
        rng, state = random.Random(seed), loaded.with_seed(seed).new_initial_state()
        for _ in range(MOST):
            if state.is_terminal():
                finished.append(state.returns())
                break
            if state.is_chance_node():
                actions, weights = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(actions, weights)[0])
            elif state.is_simultaneous_node():
                acting = (state.legal_actions(player) or [0] for player in range(loaded.players))
                state.apply_actions([rng.choice(legal) for legal in acting])
            else:
                state.apply_action(rng.choice(state.legal_actions()))
    return finished


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", GAMES)
def test_what_is_said_of_returns_is_true(name: str) -> None:
    task = task_of(GRIDS.get(name, name))
    context = task.context(first(task), "Player-0")
    loaded = task.loaded  # type: ignore[attr-defined]
    said = [sentence for sentence in context["about"] if sentence in (SAME, OWN, AGAINST)]
    assert len(said) == 1
    assert ("same return" in context["rules"]) <= (said == [SAME])
    returns = ends(loaded, 30 if said == [OWN] else 3)
    if said == [SAME]:
        assert all(max(one) - min(one) < 1e-9 for one in returns)
    elif said == [AGAINST]:
        assert len({round(sum(one), 6) for one in returns}) <= 1
    elif returns:
        assert any(max(one) > min(one) for one in returns), "players' returns are always the same"
    if loaded.bounds is not None:
        low, high = loaded.bounds
        assert all(low - 1e-6 <= value <= high + 1e-6 for one in returns for value in one)


def test_a_finished_hand_of_repeated_leduc_shows_what_the_rules_say() -> None:
    """OpenSpiel shows both cards once a hand is over, that of a player who folded too: so agents are told."""
    task = task_of("repeated_leduc_poker")
    world = task.world(first(task), random.Random(0))
    for act in ("Raise", "Fold"):
        [player] = [agent for agent in ("Player-0", "Player-1") if world.reply(agent) is not None]
        world = world.step({player: act}, random.Random(0))
    seen = world.observation("Player-0")["state"]
    assert "Hand 0 finished" in seen and re.search(r"Cards \(public player_0 player_1\): -10000 \d \d", seen), seen
    rules = task.context(first(task), "Player-0")["rules"]
    assert "its cards are shown, also that of a player who folded" in rules


def test_sections_name_games_that_there_are() -> None:
    rules = sys.modules[type(task_of("tic_tac_toe")).__module__.rpartition(".")[0] + "._openspiel.rules"]
    assert set(rules.described()) <= {*KINDS, *GRIDS}


@pytest.mark.slow
def test_the_list_says_what_can_be_played_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "list", "tasks", "--openspiel")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0 and len(lines) == len(pyspiel.registered_games())
    for name, line in lines.items():
        played = "cannot be played" not in line and "needs parameters" not in line
        assert played == (name in KINDS and name not in ONE_PLAYER), (name, line)
    assert " ".join(lines["connect_four"].split()) == "2 open rules"
    assert " ".join(lines["hanabi"].split()) == "2 to 5 hidden rules"
    assert "needs parameters. For example repeated_game(" in lines["repeated_game"]
    assert "cannot be played: it is for a single player" in lines["blackjack"]
    assert "cannot be played: it is a mean-field game" in lines["mfg_garnet"]
    code, out, _ = invoke(capsys, "list", "tasks", "--openspiel", "POKER")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == sorted(n for n in lines if "poker" in n)
    code, _, err = invoke(capsys, "list", "tasks", "--openspiel", "zzz")
    assert code == 2 and "no game of OpenSpiel has 'zzz' in its name" in err
    assert invoke(capsys, "list", "metrics", "--openspiel")[0] == 2
