"""Measure what agents read of OpenSpiel's games: how long, how well, and whether it is exactly what they may know.

python results/games_table.py                    # the table of all games, about twenty minutes on one core
python results/games_table.py chess hanabi       # the rows of these
python results/games_table.py --write            # all, into docs/reference/openspiel_games.md
python results/games_table.py --check nim pig    # measure these again and compare with the page; exit code 1

Everything comes from random play with seeds of its own, so the same command gives the same table.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.api import Case, Turn
from harness.config import resolve, spec
from harness.config.plan import Condition
from harness.config.project import builtin
from harness.runtime.steps import drive

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "openspiel_games.md"
HEAD = (
    *("game", "players", "sees", "floor", "ceiling", "turns", "system", "a turn", "a game"),
    *("states", "met"),
)
LINE = f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}"
MOST = 400
"""Turns after which they are cut off, as in the suites."""
PLAYED = 3
"""Games of random play whose prompts are counted."""
GAMES, TWINS, STEPS = 4, 24, 60
"""Games whose texts are compared, games that are almost the same for each of them, and moves of each."""
CHARACTERS = 4
"""Of a token, as `harness plan` guesses."""
PUBLIC = ("crazy_eights", "dou_dizhu", "gin_rummy", "hanabi", "negotiation", "skat", "spades")
"""Games without information states, in which players see each other's moves though observations may not show them."""
ASIDE = ("skat",)
"""Of these, those in which a soloist lays cards aside unseen."""
FORGETFUL = ("dark_hex_ir", "liars_dice_ir", "phantom_ttt_ir")
"""Games whose players shall forget: they are shown what they may remember, and a conversation remembers more."""
OTHERS = ("bridge(use_double_dummy_result=False)", "hanabi(players=5)", "tarok(players=4)")
"""Rows beside those of games as they are without parameters."""
SOLVED = {"bridge": (1, 8), "bridge_uncontested_bidding": (1, 2)}
"""Games whose ends take seconds, since OpenSpiel solves deals for them: fewer of them are compared."""
Events = list[tuple[int, ...]]


def condition(game: str, **parameters: Any) -> Condition:
    """A game in the protocol `steps`, with what the task proposes."""
    project = builtin()
    source = {
        "name": "x",
        "task": {"use": "openspiel", "game": game, **parameters},
        "protocol": {"use": "steps", "max_timesteps": MOST},
    }
    return resolve.plan(spec.parse(source, project), project).conditions[0]


def games() -> list[str]:
    """All rows."""
    module: Any = sys.modules[type(condition("nim").task).__module__.rpartition(".")[0] + "._openspiel.listing"]
    return sorted([*module.playable(), *OTHERS])


# ------------------------------------------------------------------------------------------ what a seat reads


@dataclass
class Compared:
    """What came of comparing texts with knowledge.

    Attributes:
        states: turns of seats that were read.
        met: how many of them a seat had come to in another game, knowing the same.
        answered: of how many the text alone, without the list of legal actions, says what is legal.
        leaks: (what a seat knew, two different texts of it).
        losses: (a text, two different things that a seat knew when it had read it).
    """

    states: int = 0
    met: int = 0
    answered: int = 0
    leaks: list[tuple[Any, Any, Any]] = field(default_factory=list)
    losses: list[tuple[Any, Any, Any]] = field(default_factory=list)


def compared(text: str, many: int = GAMES, twins: int = TWINS) -> Compared:
    """Play a game `many` times, each time again with another deal or another move somewhere in `twins` games.

    Where OpenSpiel shows a seat the same all the way, the seat must have read the same; where it shows something else,
    something else.
    """
    task: Any = condition(text, recent=0).task
    cases = list(task.cases(2 if task.loaded.seeded else 1, 0))
    text_of: dict[Any, Any] = {}
    known_of: dict[Any, Any] = {}
    legal_of: dict[Any, set[Any]] = {}
    asked: list[Any] = []
    result = Compared()
    for number in range(many):
        rng = random.Random(number)
        events: Events = [chosen for _, chosen in script(task, cases[0], [], rng)]
        for again, wanted in enumerate([events, *(twin(events, rng) for _ in range(twins))]):
            case = cases[again % len(cases)]
            played = list(script(task, case, wanted, rng))
            for seat, known, read, told, legal in readings(task, case, played):
                one, other, question = (seat, hash(known)), (seat, hash(read)), (seat, hash(told))
                result.states += 1
                result.met += one in text_of
                asked.append(question)
                legal_of.setdefault(question, set()).add(legal)
                if text_of.setdefault(one, read) != read:
                    result.leaks.append((known, text_of[one], read))
                if known_of.setdefault(other, known) != known:
                    result.losses.append((read, known_of[other], known))
    result.answered = sum(len(legal_of[question]) == 1 for question in asked)
    return result


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


def readings(
    task: Any, case: Case, played: list[tuple[Any, tuple[int, ...]]]
) -> Iterator[tuple[int, Any, Any, Any, tuple[str, ...]]]:
    """(seat, what it may know, what it has read, the same without what is legal now, what is legal now) at each turn
    of each seat.
    """
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
            legal = tuple(seen["legal"])
            if loaded.name in FORGETFUL:
                yield seat, known[seat][-1], seen["state"], seen["state"], legal
                continue
            told = (*read[seat], (seen["state"], tuple(seen["recent"])))
            read[seat] = (*told, legal)
            yield seat, known[seat], read[seat], told, legal
        moves = {agent: world.legal(seat)[1][world.legal(seat)[0].index(chosen[seat if len(chosen) > 1 else 0])]
                 for agent, seat in acting.items()}  # fmt: skip
        for agent, seat in acting.items():  # a conversation has one's own replies
            read[seat] = (*read[seat], moves[agent])
        aside = loaded.name in ASIDE and "Phase:discarding" in state.observation_string(0)
        for seat in range(len(case.agents)):
            mine = seat in acting.values()
            if mine or loaded.public or (loaded.name in PUBLIC and not aside):
                all_of_them = loaded.public or loaded.name in PUBLIC
                known[seat] = (*known[seat], str(moves if all_of_them else moves[case.agents[seat]]))
        world = world.step(moves, random.Random(0))


# ------------------------------------------------------------------------------------------ how long it is


@dataclass(frozen=True)
class Size:
    """Means over games of random play, in tokens of four characters.

    Attributes:
        turns: of all seats.
        cut: whether a game was cut off.
        system: the message with the rules.
        turn: the longest message of a turn.
        game: all that the seat with most to read reads in a game; of a conversation each message once.
    """

    turns: float
    cut: bool
    system: int
    turn: int
    game: int


def size(text: str) -> Size:
    """How many turns a game has, and how long its prompts are."""
    whole = condition(text, instances=PLAYED)
    task: Any = whole.task
    counts, games, system, longest = [], [], 0, 0
    for number, case in enumerate(task.cases(PLAYED, 0)):
        ordinary = random_player(number)
        turns = [*drive(whole.protocol, task, case, ordinary).turns()]
        read: dict[str, int] = {}
        for turn in turns:
            prompts = whole.group_of(case, turn.agent).prompts
            message = tokens(prompts.render(turn.name, {**turn.context, **turn.observation}))
            longest = max(longest, message)
            if turn.fresh or turn.agent not in read:
                opening = sum(tokens(part["content"]) for part in prompts.opening(turn.context))
                system, message = max(system, opening), message + opening
            read[turn.agent] = read.get(turn.agent, 0) + message
        counts.append(len(turns))
        games.append(max(read.values()))
    return Size(statistics.fmean(counts), max(counts) >= MOST, system, longest, round(statistics.fmean(games)))


def random_player(seed: int) -> Callable[[Turn], Any]:
    """Chooses among legal actions."""
    rng = random.Random(seed)
    return lambda turn: rng.choice(turn.reply.options or (None,))


def tokens(text: str) -> int:
    """About how many."""
    return -(-len(text) // CHARACTERS)


# ------------------------------------------------------------------------------------------ the table


def row(text: str) -> str:
    """The line of a game."""
    task: Any = condition(text).task
    module: Any = sys.modules[type(task).__module__.rpartition(".")[0] + "._openspiel.listing"]
    scale = module.scales().get(text)
    listed = {line[0]: line for line in module.games(task.name)}[task.name]
    long, found = size(text), compared(text, *SOLVED.get(text, ()))
    ends = [f"{statistics.fmean(values):z.2f}" for values in (scale.floor, scale.ceiling)] if scale else ["–", "–"]
    flaws = ["leaks"] * bool(found.leaks) + ["not enough"] * bool(found.losses)
    if found.answered < found.states:
        flaws.append(f"questions {100 * found.answered / found.states:.4g} %")
    cells = [
        f"`{text}` ({', '.join(flaws)})" if flaws else f"`{text}`",
        *(listed[1] if text == task.name else f"{task.loaded.players}", listed[2], *ends),
        f"{'over ' * long.cut}{long.turns:.0f}",
        *(f"{number:,}" for number in (long.system, long.turn, long.game)),
        *(f"{found.states:,}", f"{found.met:,}"),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the page; exit code 1 if they differ")
    parser.add_argument("--write", action="store_true", help="put the rows into the page")
    parser.add_argument("games", nargs="*", metavar="GAME", help="these (default: all)")
    options = parser.parse_args(arguments)
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(LINE + "\n")
    kept = {line.split("`")[1]: line for line in rest.split("\n\n")[0].split("\n") if "`" in line}
    after, same = rest.partition("\n\n")[2], True
    for game in options.games or games():
        found = row(game)
        print(found, flush=True)
        same = same and kept.get(game) == found
        kept[game] = found
        if options.write:
            rows = "\n".join(kept[name] for name in sorted(kept))
            PAGE.write_text(f"{before}{LINE}\n{rows}\n" + (f"\n{after}" if after else ""), "utf-8")
    return 0 if same or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
