"""Measure what random play and a strong player get in OpenSpiel's games, against random players in all other seats.

python results/skill.py                      # all games of `GAMES`, about twenty minutes
python results/skill.py connect_four pig     # these
python results/skill.py --check kuhn_poker   # measure again and compare; exit code 1 if they differ

Writes registry/tasks/_openspiel/skill.json, from which the grade `skill` of the task openspiel takes its scale, and
what the errors of its ends do to a skill into docs/reference/openspiel_games.md.

How strong the strong player is depends on the game:
- exact: the best response to random play, and the expected return of random play, computed over the whole tree;
- search: OpenSpiel's Monte Carlo tree search, in sequential games that hide nothing;
- beliefs: OpenSpiel's information set search (Cowling et al., 2012), where it can draw states that a seat cannot tell
  from the real one;
- rollouts: the action with the best mean over random games, from the state where nothing is hidden, and otherwise from
  states drawn by playing at random until the seat has seen the same.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyspiel
import yaml

FILE = Path(__file__).resolve().parent.parent / "registry" / "tasks" / "_openspiel" / "skill.json"
PAGE = FILE.parents[3] / "docs" / "reference" / "openspiel_games.md"
SUITES = ("game_suite", "game_suite_hidden")
EXACT = (
    *("blotto", "first_sealed_auction", "kuhn_poker", "leduc_poker", "lewis_signaling", "liars_dice", "tic_tac_toe"),
    *("tiny_bridge_2p", "tiny_hanabi"),
)
SEARCH = (
    *("breakthrough", "clobber", "connect_four", "dots_and_boxes", "mancala", "nim", "pig"),
    "ultimate_tic_tac_toe",
)
BELIEFS = ("bargaining",)
ROLLOUTS = ("dark_hex", "latent_ttt", "phantom_ttt")
GAMES = {
    **dict.fromkeys(EXACT, "exact"),
    **dict.fromkeys(SEARCH, "search"),
    **dict.fromkeys(BELIEFS, "beliefs"),
    **dict.fromkeys(ROLLOUTS, "rollouts"),
}
SIMULATIONS = {"search": 200, "beliefs": 1000, "rollouts": 300}
PLAYED = dict.fromkeys((*SEARCH, *BELIEFS, *ROLLOUTS), 400)
"""Games of each seat with the strong player."""
FLOORS = 10_000
"""Games of random play."""
MOST = 400
"""Moves after which a game counts as it stands, as in the specs."""
DRAWS = 20_000
"""Random games that are begun for one decision."""
Player = Callable[[Any, int, random.Random], int]


def measured(game: str) -> dict[str, Any]:
    """The entry of a game: floor and ceiling of each seat, with their standard errors."""
    how = GAMES[game]
    settings = {"how": how, "simulations": SIMULATIONS.get(how), "games": PLAYED.get(game), "floors": FLOORS}
    ends = exact(game) if how == "exact" else sampled(game, how)
    kept = {"game": game, **settings}
    digest = blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=8).hexdigest()
    return {**settings, **ends, "digest": digest}


def exact(game: str) -> dict[str, list[float]]:
    """The expected return of random play, and that of the best response to it, of each seat."""
    loaded = pyspiel.load_game(game)
    if loaded.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        loaded = pyspiel.convert_to_turn_based(loaded)
    state, uniform = loaded.new_initial_state(), pyspiel.UniformRandomPolicy(loaded)
    floors = pyspiel.expected_returns(state, uniform, -1, True)
    seats = range(loaded.num_players())
    ceilings = [pyspiel.TabularBestResponse(loaded, seat, uniform).value_from_state(state) for seat in seats]
    nothing = [0.0 for _ in seats]
    return {"floor": rounded(floors), "floor_error": nothing, "ceiling": rounded(ceilings), "ceiling_error": nothing}


def sampled(game: str, how: str) -> dict[str, list[float]]:
    """The same by playing."""
    loaded = pyspiel.load_game(game)
    floors, ceilings = [], []
    for seat in range(loaded.num_players()):
        dull = [played(loaded, seat, None, random.Random(f"{game} floor {seat} {k}")) for k in range(FLOORS)]
        strong = [
            played(loaded, seat, player(loaded, how, f"{game} {seat} {k}"), random.Random(f"{game} {seat} {k}"))
            for k in range(PLAYED[game])
        ]
        floors.append(dull)
        ceilings.append(strong)
    return {
        "floor": rounded(map(statistics.fmean, floors)),
        "floor_error": rounded(error(values, loaded) for values in floors),
        "ceiling": rounded(map(statistics.fmean, ceilings)),
        "ceiling_error": rounded(error(values, loaded) for values in ceilings),
    }


def played(loaded: Any, seat: int, strong: Player | None, rng: random.Random) -> float:
    """A seat's return of one game; all others play at random, and without a strong player the seat does too."""
    state, moves = loaded.new_initial_state(), 0
    while not state.is_terminal() and moves < MOST:
        if state.is_chance_node():
            state.apply_action(drawn(state, rng))
            continue
        moves += 1
        if state.is_simultaneous_node():
            joint = [rng.choice(state.legal_actions(other) or [0]) for other in range(loaded.num_players())]
            if strong is not None and state.legal_actions(seat):
                joint[seat] = strong(state, seat, rng)
            state.apply_actions(joint)
        elif strong is not None and state.current_player() == seat:
            state.apply_action(strong(state, seat, rng))
        else:
            state.apply_action(rng.choice(state.legal_actions()))
    return float(state.returns()[seat])


def player(loaded: Any, how: str, seed: str) -> Player:
    """The strong player of a kind."""
    number = random.Random(seed).getrandbits(31)
    evaluator = pyspiel.RandomRolloutEvaluator(1, number)
    if how == "search":
        bot = pyspiel.MCTSBot(loaded, evaluator, 2.0, SIMULATIONS[how], 256, True, number, False)
        return lambda state, seat, rng: bot.step(state)
    if how == "beliefs":
        searcher = pyspiel.ISMCTSBot(number, evaluator, 2.0 * loaded.max_utility(), SIMULATIONS[how], -1)
        return lambda state, seat, rng: searcher.step(state)
    return rollouts


def rollouts(state: Any, seat: int, rng: random.Random) -> int:
    """The action with the best mean return over random games."""
    legal = state.legal_actions(seat)
    if len(legal) == 1:
        return int(legal[0])
    totals = dict.fromkeys(legal, 0.0)
    each = max(1, SIMULATIONS["rollouts"] // len(legal))
    for possible in beliefs(state, seat, rng, each):
        for action in legal:
            after = possible.clone()
            if after.is_simultaneous_node():
                others = [rng.choice(after.legal_actions(other) or [0]) for other in range(after.num_players())]
                after.apply_actions([action if other == seat else one for other, one in enumerate(others)])
            else:
                after.apply_action(action)
            totals[action] += finished(after, rng)[seat]
    return int(max(legal, key=lambda action: (totals[action], -action)))


def beliefs(state: Any, seat: int, rng: random.Random, many: int) -> Iterator[Any]:
    """States that a seat cannot tell from this one; none if it is so rare that no draw finds it."""
    if state.get_game().get_type().information != pyspiel.GameType.Information.IMPERFECT_INFORMATION:
        yield from [state] * many
        return
    found, own = 0, [entry.action for entry in state.full_history() if entry.player == seat]
    seen = state.information_state_string(seat)
    for _ in range(DRAWS):
        guess, mine = state.get_game().new_initial_state(), iter(own)
        while not guess.is_terminal() and guess.move_number() < state.move_number():
            if guess.is_chance_node():
                action = drawn(guess, rng)
            elif guess.current_player() == seat:
                action = next(mine, -1)
            else:
                action = rng.choice(guess.legal_actions())
            if action not in guess.legal_actions():
                break
            guess.apply_action(action)
        else:
            same = not guess.is_terminal() and guess.current_player() == seat
            if same and guess.information_state_string(seat) == seen:
                found += 1
                yield guess
                if found == many:
                    return


def finished(state: Any, rng: random.Random) -> list[float]:
    """The returns of a random game from here on."""
    for _ in range(MOST):
        if state.is_terminal():
            break
        if state.is_chance_node():
            state.apply_action(drawn(state, rng))
        elif state.is_simultaneous_node():
            state.apply_actions([rng.choice(state.legal_actions(seat) or [0]) for seat in range(state.num_players())])
        else:
            state.apply_action(rng.choice(state.legal_actions()))
    return list(state.returns())


def drawn(state: Any, rng: random.Random) -> int:
    """A chance outcome."""
    actions, weights = zip(*state.chance_outcomes(), strict=True)
    return int(rng.choices(actions, weights)[0])


def error(values: list[float], loaded: Any) -> float:
    """The standard error of a mean; where all values are the same, that with the game's least and greatest return
    beside them: a strong player that has won all its games may still lose one."""
    if len(set(values)) == 1:
        values = [*values, loaded.min_utility(), loaded.max_utility()]
    return statistics.stdev(values) / math.sqrt(len(values))


def unsure(entry: dict[str, Any]) -> tuple[float, float]:
    """The standard errors that the ends of a game's scale give to a skill of 0 and to one of 1, as means over seats."""
    errors = []
    for end in ("floor_error", "ceiling_error"):
        parts = zip(entry[end], entry["floor"], entry["ceiling"], strict=True)
        shares = [error / (high - low) for error, low, high in parts]
        errors.append(math.sqrt(sum(share**2 for share in shares)) / len(shares))
    return errors[0], errors[1]


def section(kept: dict[str, Any]) -> str:
    """What the page says of the errors: a row for each game whose ends were sampled, and what suites make of them."""
    lines = ["| game | games | floor | ceiling | error of skill 0 | error of skill 1 |", "|---|---|---|---|---|---|"]
    errors = {game: unsure(entry) for game, entry in kept.items() if any(entry["floor_error"])}
    for game, (low, high) in errors.items():
        ends = [f"{statistics.fmean(kept[game][end]):z.2f}" for end in ("floor", "ceiling")]
        lines.append(f"| `{game}` | {kept[game]['games']} | {' | '.join(ends)} | {low:.3f} | {high:.3f} |")
    for suite in SUITES:
        games = yaml.safe_load((FILE.parents[3] / "specs" / f"{suite}.yaml").read_text("utf-8"))["matrix"]["game"]
        whole = [math.sqrt(sum(errors.get(game, (0, 0))[end] ** 2 for game in games)) / len(games) for end in (0, 1)]
        lines.append(f"| mean of `{suite}` | | | | {whole[0]:.3f} | {whole[1]:.3f} |")
    return "\n".join(lines) + "\n"


def rounded(values: Any) -> list[float]:
    """Four digits, which is more than samples give."""
    return [round(value, 4) for value in values]


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file; exit code 1 if they differ")
    parser.add_argument("games", nargs="*", metavar="GAME", help="these (default: all)")
    options = parser.parse_args(arguments)
    if unknown := set(options.games) - set(GAMES):
        parser.error(f"no scale is kept of {', '.join(sorted(unknown))}; add it to GAMES")
    kept = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    same = True
    for game in options.games or GAMES:
        entry = measured(game)
        print(game, entry["how"], entry["floor"], entry["ceiling"], flush=True)
        same = same and kept.get(game) == entry
        if not options.check:
            kept = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
            kept[game] = entry
            lines = ",\n".join(f' "{name}": {json.dumps(kept[name])}' for name in sorted(kept))
            FILE.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    if not options.check:
        text, found, _ = PAGE.read_text("utf-8").partition("| game | games | floor | ceiling |")
        assert found, f"{PAGE} has no table of errors"
        PAGE.write_text(text + section(kept), "utf-8")
    return 0 if same or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
