"""What agents read about a game agrees with how the game is played, and with itself."""

import random
import re
import sys
from typing import Any

import pyspiel
import pytest

from harness.extensions.games.legal import LegalAction
from tests.extensions.games.test_openspiel import GRIDS, KINDS, MOST, ONE_PLAYER, SLOW_TO_LOAD, first, task_of
from tests.helpers.commands import invoke

SAME, OWN = "All players get the same return.", "Each player has a return of its own."
AGAINST = "What one player wins, the others lose."
GAMES = sorted({*KINDS, *GRIDS} - {*ONE_PLAYER, *SLOW_TO_LOAD} | {*GRIDS})


def ends(loaded: Any, count: int, start: int = 0) -> list[list[float]]:
    """The returns of games of random players that end within `MOST` steps."""
    finished = []
    for seed in range(start, start + count):
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


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", GAMES)
def test_the_end_of_a_game_can_be_read_in_every_seat(name: str) -> None:
    task = task_of(GRIDS.get(name, name))
    case, rng = first(task), random.Random(0)
    world = task.world(case, random.Random(0))
    for _ in range(MOST):
        if world.over:
            break
        replies = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        world = world.step({agent: rng.choice(reply.options) for agent, reply in replies.items()}, rng)
    seen = [world.observation(agent) for agent in case.agents]
    assert all(one["state"] or one["recent"] for one in seen) and not any("Terminal." in one["state"] for one in seen)
    if task.loaded.public and world.over:  # type: ignore[attr-defined]
        assert len({tuple(one["recent"]) for one in seen}) == 1


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
    if loaded.bounds is not None and name != "cribbage":  # where play goes past what OpenSpiel states
        low, high = loaded.bounds
        assert all(low - 1e-6 <= value <= high + 1e-6 for one in returns for value in one)


BEYOND_CHANCE = {
    *(
        "battleship",
        "chinese_checkers",
        "gin_rummy",
        "hanabi",
        "oh_hell",
        "repeated_leduc_poker",
        "tarok",
        "trade_comm",
    ),
}
"""Games whose bounds play can reach, though random play hardly does: all ships sunk, gin against ten high cards."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*GAMES} - {*GRIDS} - BEYOND_CHANCE))
def test_prompts_name_bounds_only_where_play_reaches_them(name: str) -> None:
    task: Any = task_of(name)
    loaded = task.loaded
    [said] = [sentence for sentence in task.context(first(task), "Player-0")["about"] if "large" in sentence]
    if said == "You want a large return.":
        return
    seen: set[float] = set()
    for seed in range(3000):
        seen |= {value for returns in ends(loaded, 1, seed) for value in returns}
        if seen and (min(seen), max(seen)) == pytest.approx(loaded.bounds):
            return
    pytest.fail(f"{said} Seen: {min(seen):g} to {max(seen):g}")


@pytest.mark.parametrize("game", ["negotiation", "skat", "hearts", "zerosum(game=negotiation())"])
def test_prompts_name_no_bounds_that_play_cannot_reach(game: str) -> None:
    task = task_of(game)
    assert task.context(first(task), "Player-0")["about"][-1] == "You want a large return."


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


def test_every_game_that_can_be_played_has_rules() -> None:
    words = sys.modules[type(task_of("tic_tac_toe")).__module__.rpartition(".")[0] + "._openspiel.rules"]
    assert {*KINDS} - {*ONE_PLAYER} <= set(words.described())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", GAMES)
def test_rules_know_the_parameters_that_they_name(name: str) -> None:
    task: Any = task_of(GRIDS.get(name, name))
    words = sys.modules[type(task).__module__.rpartition(".")[0] + "._openspiel.rules"]
    found = words.rules_of(name, task.loaded.parameters)
    assert set(re.findall(r"{(\w+)}", words.described()[name].rules)) <= {*task.loaded.parameters}
    assert "{" not in found and 20 < len(found) < 2000


def test_states_have_coordinates_and_names_that_moves_use() -> None:
    def seen(game: str, moves: int, seat: int = 0) -> tuple[str, list[str]]:
        task = task_of(game)
        case, rng = first(task), random.Random(1)
        world = task.world(case, rng)
        for _ in range(moves):
            acting = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
            world = world.step({agent: rng.choice(reply.options or ()) for agent, reply in acting.items()}, rng)
        [actor] = [agent for agent in case.agents if world.reply(agent) is not None]
        observed = world.observation(actor)
        return observed["state"], list(observed["legal"])

    board, _ = seen("chess", 0)
    assert board.startswith("You are White (capitals).\n8 r n b q k b n r\n") and "\n  a b c d e f g h\nFEN: " in board
    assert seen("kriegspiel", 0)[0].splitlines()[-1] == "The umpire: none"
    assert seen("amazons", 1)[0].splitlines()[-1] == "   1  2  3  4  5  6  7  8  9  10"
    assert seen("hex", 2)[0].startswith("   a b c d e f g h i j k\n 1 . ")
    assert seen("dark_hex_ir", 0)[0] == "You are Player-0.\n1 . . .\n2 . . .\n3 . . .\n  a b c"
    assert seen("phantom_ttt_ir", 0)[0].endswith("2 . . .\n  0 1 2")
    assert seen("xiangqi", 0)[0].splitlines()[-1] == "  0 1 2 3 4 5 6 7 8"
    hand, legal = seen("tarok", 5)
    assert "of Hearts" in hand and legal and not re.search(r"\d,\d", hand)
    hand, legal = seen("skat", 14)
    assert all(card in hand for card in legal), (hand, legal)
    assert "What one item of each kind is worth to you: " in seen("negotiation", 0)[0]
    assert "\x1b" not in seen("twixt", 3)[0]
    assert seen("hive", 2)[0] == (
        "Base+MLP, White[2] to move. You are white.\n   bP\nwA3\n"
        "White has still to place: wQ wA1 wA2 wG1 wG2 wG3 wS1 wS2 wB1 wB2 wM wL wP\n"
        "Black has still to place: bQ bA1 bA2 bA3 bG1 bG2 bG3 bS1 bS2 bB1 bB2 bM bL"
    )
    assert seen("hive", 0)[0].splitlines()[1] == "The board is empty."
    assert seen("oware", 0)[0].splitlines()[1:] == [
        "Player-0's houses: A 4, B 4, C 4, D 4, E 4, F 4",
        "Player-1's houses: a 4, b 4, c 4, d 4, e 4, f 4",
    ]
    assert "pits      1  2  3  4  5  6\nStores: Player-1 0 (on the left)" in seen("mancala", 0)[0]
    assert "\nW is on points: none\nB is on points: none\n" in seen("nine_mens_morris", 0)[0]
    assert "\n111          2 2 2 2\n" in seen("chinese_checkers", 0)[0]
    assert "1 is on places: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n" in seen("chinese_checkers", 0)[0]
    assert seen("dots_and_boxes", 0)[0].startswith("   v0   1   2\nh,0 ┌")
    assert seen("ultimate_tic_tac_toe", 0)[0].startswith("  012 012 012\n0 ... ... ...\n")
    upper, lower = " 111\n 210987 654321\n+------|", "|\n+------|------+\n 111111 122222\n 345678 901234\n"
    assert upper in seen("backgammon", 1)[0] or lower in seen("backgammon", 1)[0]
    hand, legal = seen("gin_rummy", 3)
    assert "Your hand (deadwood " in hand and "'s hand: not shown" in hand
    hand, legal = seen("oh_hell", 6)
    assert {*legal} <= {*hand.partition("Your hand: ")[2].partition("\n")[0].split()} and "Trick 1: Player-" in hand
    hand, _ = seen("hanabi(players=3)", 3)
    assert "Player-0 (you), to move:\n  0: XX, hints: " in hand and "Player-2:\n  0: " in hand


def played(game: str, moves: int, seed: int = 0) -> tuple[Any, list[str], random.Random]:
    """A world after random moves, and its agents."""
    task = task_of(game)
    case, rng = first(task), random.Random(seed)
    world = task.world(case, random.Random(0))
    for _ in range(moves):
        acting = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        world = world.step({agent: rng.choice(reply.options) for agent, reply in acting.items()}, rng)
    return world, list(case.agents), rng


def test_what_a_player_would_have_to_count_is_counted() -> None:
    dilemma = "repeated_game(stage_game=matrix_pd(),num_repetitions=30)"
    assert played(dilemma, 20)[0].observation("Player-0")["state"] == ""  # all rounds are shown
    world, agents, _ = played(dilemma, 21)
    gave = ", ".join(f"{agent} {world.facts()['returns'][agent]:g}" for agent in agents)
    assert world.observation("Player-1")["state"] == f"Round 22 of 30. Returns so far: {gave}."
    assert played("coin_game", 5)[0].observation("Player-1")["state"].endswith("\nTurn 6 of 20.")
    assert played("coop_box_pushing", 5)[0].observation("Player-1")["state"].endswith("\nStep 6 of 100.")
    assert played("markov_soccer", 3)[0].observation("Player-1")["state"].count("Step") == 0
    shots = [played("battleship", 13)[0].observation(f"Player-{i}")["state"].splitlines()[-1] for i in (0, 1)]
    assert shots == ["You have made 2 of 50 shots.", "You have made 1 of 50 shots."]


def test_points_of_skat_are_those_of_its_tricks() -> None:
    worth = {"A": 11, "T": 10, "K": 4, "Q": 3, "J": 2}
    for seed in range(20):
        world, agents, rng = played("skat", 1, seed)
        tricks: dict[tuple[str, ...], int] = {}
        while not world.over:
            text = world.observation(agents[0])["state"]
            if last := re.search(r"^Last trick, led by Player-\d: (\w\w) (\w\w) (\w\w)$", text, re.MULTILINE):
                tricks[last.groups()] = sum(worth.get(card[1], 0) for card in last.groups())
            if said := re.search(r"Points in tricks so far: the soloist (\d+), the others (\d+)\.", text):
                assert int(said[1]) + int(said[2]) == sum(tricks.values())
                assert len({world.observation(agent)["state"].splitlines()[-1] for agent in agents}) == 1
            [(actor, reply)] = [(who, reply) for who in agents if (reply := world.reply(who)) is not None]
            world = world.step({actor: rng.choice(reply.options)}, rng)


def test_null_in_skat_pays_as_the_rules_say_and_player_0_leads() -> None:
    """The soloist gets 0.25 for no trick, else -0.25, the others half with the opposite sign."""
    rules = task_of("skat").context(first(task_of("skat")), "Player-0")["rules"]
    assert "0.25 if it takes no trick, else -0.25, and each of the others half of that" in rules
    assert "Player-0 leads the first" in rules
    seen = set()
    for seed in range(40):
        world, agents, rng = played("skat", 0, seed)
        soloist, leads = agents[seed % 3], None
        while not world.over:
            [(actor, reply)] = [(who, reply) for who in agents if (reply := world.reply(who)) is not None]
            legal = [str(option) for option in reply.options]
            bids = [one for one in legal if one.casefold().startswith("null") and "ouvert" not in one.casefold()]
            wanted = bids if actor == soloist else [one for one in legal if one.casefold() == "pass"]
            if leads is None and "pass" not in map(str.casefold, legal) and actor != soloist:
                leads = actor
            world = world.step({actor: (wanted or legal)[0] if wanted else rng.choice(legal)}, rng)
        returns = world.facts()["returns"]
        if any(returns.values()):
            seen.add(returns[soloist])
            assert {returns[other] for other in agents if other != soloist} == {-returns[soloist] / 2}
            assert soloist == "Player-0" or leads == "Player-0"
    assert seen == {0.25, -0.25}


def test_a_negotiation_shows_all_proposals_and_what_was_said() -> None:
    task = task_of("negotiation")
    world: Any = task.world(first(task), random.Random(0))
    said, rng = list[str](), random.Random(0)
    for turn in range(6):
        actor = f"Player-{turn // 2 % 2}"
        text = world.observation(actor)["state"]
        assert text.endswith(f"Proposals so far: {'; '.join(said) or 'none'}")
        move = rng.choice([option for option in world.reply(actor).options if "Agreement" not in option])
        kind, _, items = move.partition(": ")
        said = [*said, f"{actor} {items}"] if kind == "Proposal" else [*said[:-1], f"{said[-1]} (utterance {items})"]
        world = world.step({actor: move}, rng)


def test_the_end_of_a_negotiation_names_nobody_to_act() -> None:
    world, agents, rng = played("negotiation", 1)
    while not world.over:
        [(actor, reply)] = [(who, reply) for who in agents if (reply := world.reply(who)) is not None]
        world = world.step({actor: rng.choice(reply.options)}, rng)
    text = world.observation(agents[0])["state"]
    assert "Most recent proposal: [" in text and not re.search("player|To act|Turn Type|-4", text)


@pytest.mark.parametrize(
    "game", ["maedn", "maedn(players=3)", "maedn(players=4)", "maedn(players=2,twoPlayersOpposite=False)"]
)
def test_pieces_of_ludo_stand_on_the_fields_that_moves_name(game: str) -> None:
    """And a piece that moves as far as the die says hits the one that its player sees there."""
    world, agents, rng = played(game, 1)
    hits = 0
    for _ in range(150):
        [(actor, reply)] = [(who, reply) for who in agents if (reply := world.reply(who)) is not None]
        text, move = world.observation(actor)["state"], rng.choice(reply.options)
        own = re.search(r"^You \(\d\): .*", text, re.MULTILINE)
        fields = {option.rpartition(" ")[2] for option in reply.options if "field" in option}
        assert own is not None and fields <= {*re.findall(r"\d+", own[0].partition(":")[2].partition(";")[0])}
        goal = 0 if "new piece" in move else 40
        if "field" in move:
            goal = int(move.rpartition(" ")[2]) + int(text.partition("Dice: ")[2][0])
        world = world.step({actor: move}, rng)
        if world.over:
            break
        hit = str(goal) in re.findall(r"\(your (\d+)\)", text)
        assert outside(world.observation(actor)["state"]) - outside(text) == hit - ("new piece" in move)
        hits += hit
    assert hits


def outside(text: str) -> int:
    """How many pieces of ludo are outside."""
    return sum(map(int, re.findall(r"(\d) outside", text)))


def test_squares_of_colored_trails_have_numbers() -> None:
    world, _, _ = played("colored_trails", 1)
    board, _, rest = world.observation("Player-0")["state"].partition("\nYou are Player-0\n")
    assert [int(number) for number in re.findall(r"(\d+):[A-Z]", board)] == [*range(16)]
    assert re.match(r"Player-0 on square \d+, Player-1 on \d+, Player-2 on \d+; the goal is \d+\n", rest)


@pytest.mark.parametrize("players", [3, 4])
def test_tarok_says_who_bid_and_played_what(players: int) -> None:
    task = task_of(f"tarok(players={players})", instances=8)
    for number, case in enumerate(task.cases(None, 0)):
        rng, done = random.Random(number), list[str]()
        world: Any = task.world(case, rng)
        while not world.over:
            [(actor, reply)] = [(who, reply) for who in case.agents if (reply := world.reply(who)) is not None]
            move = "Pass" if "Pass" in reply.options and rng.random() < 0.6 else rng.choice(reply.options)
            done.append(f"{actor} {move}")
            world = world.step({actor: move}, rng)
        text = world.observation(case.agents[0])["state"]
        said, course = re.findall(r"Player-\d [^,\n]+", text), iter(done)
        assert len(said) > 2 and all(one in course for one in said), (text, done)  # in this order


def test_point_cards_of_goofspiel_stand_apart() -> None:
    task = task_of("goofspiel", instances=6)
    for case in task.cases(None, 0):
        world, rng, left = task.world(case, random.Random(0)), random.Random(1), {*range(1, 14)}
        while not world.over:
            text = world.observation("Player-0")["state"]
            left -= {int(re.findall(r"Current point card: (\d+)", text)[0])}
            assert f"Remaining Point Cards: {' '.join(map(str, sorted(left)))}\n" in text
            moves = {agent: rng.choice(world.reply(agent).options) for agent in case.agents}  # type: ignore[union-attr,arg-type]
            world = world.step(moves, rng)


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
    assert " ".join(lines["connect_four"].split()) == "2 open rules ceiling"
    assert " ".join(lines["hanabi"].split()) == "2 to 5 hidden rules"
    assert " ".join(lines["lewis_signaling"].split()) == "2 hidden rules", "no play beats random play there"
    assert "needs parameters. For example repeated_game(" in lines["repeated_game"]
    assert "cannot be played: it is for a single player" in lines["blackjack"]
    assert "cannot be played: it is a mean-field game" in lines["mfg_garnet"]
    code, out, _ = invoke(capsys, "list", "tasks", "--openspiel", "POKER")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == sorted(n for n in lines if "poker" in n)
    code, _, err = invoke(capsys, "list", "tasks", "--openspiel", "zzz")
    assert code == 2 and "no game of OpenSpiel has 'zzz' in its name" in err
    assert invoke(capsys, "list", "metrics", "--openspiel")[0] == 2


FORMS = [
    ("chess", "e2e4", "e4"),
    ("chess", "**g1-f3**", "Nf3"),
    ("chess", "1. e4", "e4"),
    ("chess", "e2e4 or d2d4", None),
    ("chess", "e2e5", None),
    ("connect_four", "Column 3.", "x3"),
    ("connect_four", "column 3 or column 4", None),
    ("connect_four", "column 9", None),
    ("bridge(use_double_dummy_result=False)", "1 spade", "1♠"),
    ("bridge(use_double_dummy_result=False)", "2C", "2♣"),
    ("bridge(use_double_dummy_result=False)", "8C", None),
    ("hanabi", "play card 0", "(Play 0)"),
    ("hanabi", "Play card 7", None),
]


@pytest.mark.parametrize(("game", "text", "move"), FORMS)
def test_moves_are_read_in_the_forms_that_people_use(game: str, text: str, move: str | None) -> None:
    task = task_of(game)
    case = first(task)
    world = task.world(case, random.Random(0))
    [reply] = [reply for agent in case.agents if (reply := world.reply(agent)) is not None]
    assert reply.parse(f"I think so.\nACTION: {text}").action == move


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "game",
    ["bridge(use_double_dummy_result=False)", "chess", "connect_four", "crazy_eights", "euchre", "gin_rummy",
     "hanabi(players=3)", "hearts", "oh_hell", "skat", "spades"],
)  # fmt: skip
def test_what_people_write_for_a_move_never_means_another(game: str) -> None:
    task = task_of(game)
    case, rng = first(task), random.Random(3)
    world = task.world(case, rng)
    for _ in range(12):
        acting: dict[str, Any] = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        for reply in acting.values():
            pairs = {(reply.parse(f"ACTION: {name}").action, name) for name in reply.options}
            assert all(read == name for read, name in pairs)
            for written, name in reply.also:
                read = reply.parse(f"ACTION: {written}").action
                many = sum(one == written for one, _ in reply.also) > 1 or "player " in written.lower()
                assert read == name or (read is None and many), written  # "Player 2" may be a name, or two seats on
        world = world.step({agent: rng.choice(reply.options) for agent, reply in acting.items()}, rng)


@pytest.mark.parametrize("game", ["oh_hell", "spades"])
def test_a_bare_number_is_a_bid_and_never_a_card(game: str) -> None:
    world, agents, rng = played(game, 0)
    bid = next(reply for agent in agents if (reply := world.reply(agent)) is not None)
    for text in ("3", "bid 3", "3 tricks", "ACTION: 3", "ACTION: I bid 3"):
        assert bid.parse(text).action == "3", text
    assert bid.parse("ACTION: SA").action is None and bid.parse("ACTION: S3").action is None
    of_one_suit = 0
    while not world.over:
        [(actor, reply)] = [(who, reply) for who in agents if (reply := world.reply(who)) is not None]
        if not {*"0123456789"} & {name[0] for name in reply.options} and "Nil" not in reply.options:
            of_one_suit += len({name[0] for name in reply.options}) == 1
            for number in range(14):
                said = reply.parse(f"ACTION: {number}")
                assert said.action is None and f"the legal actions are: {reply.options[0]}" in str(said.error)
        world = world.step({actor: rng.choice(reply.options)}, rng)
    assert of_one_suit > 5


def test_cards_and_hints_in_words() -> None:
    task = task_of("hanabi(players=3)")
    reply: Any = task.world(first(task), random.Random(0)).reply("Player-0")
    hint = next(name for name in reply.options if name.startswith("(Reveal player +2 rank"))
    assert reply.parse(f"ACTION: hint {hint[-2]}s to Player-2").action == hint
    world, _, _ = played("hanabi(players=3)", 1, seed=1)
    reply = world.reply("Player-1")
    [hint] = [name for name in reply.options if name.startswith("(Reveal player +2 rank")][:1]
    assert reply.parse(f"ACTION: Reveal player +2 rank {hint[-2]}").action == hint  # that is Player-0
    assert reply.parse(f"ACTION: Reveal Player-0 rank {hint[-2]}").action == hint
    assert reply.parse(f"ACTION: Reveal Player-2 rank {hint[-2]}").action in (None, hint.replace("+2", "+1"))
    assert reply.parse(f"ACTION: Reveal Player-1 rank {hint[-2]}").action is None  # itself
    card = LegalAction(("HT", "H9"), also=(("ten of hearts", "HT"), ("a card", "HT"), ("a card", "H9")))
    assert card.parse("ACTION: Ten of Hearts").action == "HT"
    assert card.parse("ACTION: a card").error
