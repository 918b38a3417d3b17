"""The task `openspiel`: the games that OpenSpiel's own loop plays, what agents know of them, mistakes, policies."""

import json
import random
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspiel
import pytest

import harness
from harness.api import Case
from harness.api.errors import UserError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.evaluation.rescore import rescored
from harness.extensions.games.worlds import SteppedTask, World
from harness.extensions.yaml_tasks.conformance import check_task, check_world
from harness.runtime.steps import drive
from tests.helpers.commands import invoke

BUILTIN = builtin()
KINDS = {
    kind.short_name: kind
    for kind in pyspiel.registered_games()
    if kind.default_loadable and kind.max_num_players > 1 and kind.dynamics != pyspiel.GameType.Dynamics.MEAN_FIELD
}
SLOW_TO_LOAD = ("bridge", "bridge_uncontested_bidding")
"""Each move takes seconds there: OpenSpiel solves deals for it."""
WRAPPED = [
    "repeated_game(stage_game=matrix_pd(),num_repetitions=5)",
    "misere(game=kuhn_poker())",
    "turn_based_simultaneous_game(game=goofspiel())",
    "start_at(game=tic_tac_toe(),history=4;0)",
    "repeated_poker(max_num_hands=3,reset_stacks=True,universal_poker_game_string=universal_poker())",
    "goofspiel(imp_info=True,players=3)",
    "hanabi(players=5)",
    "chinese_checkers(players=6)",
    "tarok(players=4)",
]
ONE_PLAYER = ("pathfinding",)
"""For one player unless the grid has more; tried below with a grid for two."""
GRIDS = {"pathfinding": "pathfinding(players=2,grid=a.B\n...\nb.A)"}
"""Games that agents can play with other parameters only."""
FEW = ["connect_four", "hanabi(players=3)", "leduc_poker", "negotiation", "snake", "goofspiel", "matrix_pd", "go_fish"]
MOST = 400
"""Steps of a game that are played here: random play needs thousands to end some games."""


def task_of(game: str, **parameters: Any) -> SteppedTask:
    source = {"name": "x", "task": {"use": "openspiel", "game": game, **parameters}, "protocol": "steps"}
    task = resolve.plan(spec.parse(source, BUILTIN), BUILTIN).conditions[0].task
    assert isinstance(task, SteppedTask)
    return task


def first(task: SteppedTask, seed: int = 0) -> Case:
    return next(iter(task.cases(1, seed)))


def random_game(task: SteppedTask, case: Case, seed: int) -> tuple[World, list[dict[str, Any]]]:
    """The last state of a game of random actions, and these."""
    rng, world = random.Random(seed), task.world(case, random.Random(0))
    moves: list[dict[str, Any]] = []
    while not world.over and len(moves) < MOST:
        replies = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        assert replies, "no agent has a turn, and the game is not over"
        moves.append({agent: rng.choice(reply.options or ()) for agent, reply in replies.items()})
        world = world.step(moves[-1], rng)
    return world, moves


def plain_loop(text: str, history: list[int], seed: int) -> list[float]:
    """Returns of OpenSpiel's own loop with the same actions, each of which must be legal there."""
    game = pyspiel.load_game(text)
    if "rng_seed" in game.get_type().parameter_specification:
        game = pyspiel.load_game(game.get_type().short_name, {**game.get_parameters(), "rng_seed": seed % 2**31})
    state, at = game.new_initial_state(), 0
    while at < len(history):
        if state.is_simultaneous_node():
            joint = history[at : at + game.num_players()]
            assert all(a in state.legal_actions(p) or not state.legal_actions(p) for p, a in enumerate(joint))
            state.apply_actions(joint)
            at += len(joint)
        else:
            assert history[at] in state.legal_actions()
            state.apply_action(history[at])
            at += 1
    return list(state.returns())


def same_as_openspiel(text: str, episodes: int) -> None:
    task = task_of(text, instances=episodes)
    for number, case in enumerate(task.cases(episodes, 7)):
        world, moves = random_game(task, case, number)
        again = task.world(case, random.Random(1))
        for move in moves:
            again = again.step(move, random.Random(2))
        assert again.facts() == world.facts()
        returns = list(world.facts()["returns"].values())
        assert returns == plain_loop(text, world.state.history(), case.target)  # type: ignore[attr-defined]
        assert not any(world.facts()["invalid"].values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", FEW)
def test_a_game_is_that_of_openspiels_own_loop(text: str) -> None:
    same_as_openspiel(text, 3)
    task = task_of(text)
    assert check_task(task) == [] and check_world(task) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", [*sorted(KINDS.keys() - set(ONE_PLAYER)), *WRAPPED])
def test_every_game_is_that_of_openspiels_own_loop(text: str) -> None:
    same_as_openspiel(text, 1 if text in SLOW_TO_LOAD else 20)
    if text not in SLOW_TO_LOAD:
        assert check_task(task_of(text)) == [] and check_world(task_of(text)) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", sorted(KINDS.keys() - set(ONE_PLAYER) - set(SLOW_TO_LOAD)))
def test_every_game_replays_from_the_journal(tmp_path: Path, text: str) -> None:
    source = {
        "name": "x",
        "task": {"use": "openspiel", "game": text, "instances": 2},
        "protocol": {"use": "steps", "max_timesteps": MOST},
    }
    run = harness.evaluate(source, output_path=tmp_path / "run")
    again = rescored(tmp_path / "run")
    assert again.scores == run.scores and not run.failed


# ------------------------------------------------------------------------------------------- chance


def test_a_case_has_the_same_chance_whatever_else_is_random() -> None:
    task = task_of("leduc_poker", instances=50)
    cases = list(task.cases(None, 3))
    texts = [[task.world(case, random.Random(s)).observation("Player-0")["state"] for case in cases] for s in (0, 1)]
    assert texts[0] == texts[1] and len(set(texts[0])) == 6, "six cards"
    deals = [task.world(case, random.Random(0)).state.history() for case in cases]  # type: ignore[attr-defined]
    assert all(sum(deal[0] == card for deal in deals) >= 3 for card in range(6))


def test_a_game_that_draws_by_itself_draws_by_the_cases_seed() -> None:
    task = task_of("negotiation", instances=8)
    pools = [task.world(case, random.Random(0)).observation("Player-0")["state"] for case in task.cases(None, 0)]
    assert pools == [
        task.world(case, random.Random(5)).observation("Player-0")["state"] for case in task.cases(None, 0)
    ]
    assert len(set(pools)) > 4


def test_limiting_the_samples_changes_no_case() -> None:
    task = task_of("kuhn_poker", instances=30)
    assert list(task.cases(4, 1)) == list(task.cases(None, 1))[:4]


# ----------------------------------------------------------------------------------- what agents know


@pytest.mark.parametrize("observes", ["observation", "information"])
@pytest.mark.parametrize("text", ["leduc_poker", "kuhn_poker", "bargaining"])
def test_an_agent_sees_its_own_text_only(text: str, observes: str) -> None:
    task = task_of(text, observes=observes)
    case = first(task)
    world = task.world(case, random.Random(0))
    rng = random.Random(3)
    while not world.over:
        state: Any = world.state  # type: ignore[attr-defined]
        for seat, agent in enumerate(case.agents):
            own = (state.observation_string if observes == "observation" else state.information_state_string)(seat)
            seen = world.observation(agent)
            assert seen["state"] == own.strip("\n")
            assert seen["moves"] == [] and seen["history"] == []
            if world.reply(agent) is None:
                assert seen["legal"] == []
        mover = next(agent for agent in case.agents if world.reply(agent) is not None)
        world = world.step({mover: rng.choice(world.reply(mover).options)}, rng)


def test_two_deals_that_differ_in_the_others_card_look_the_same() -> None:
    task = task_of("kuhn_poker", instances=40)
    seen: dict[int, set[str]] = {}
    hidden: dict[int, set[int]] = {}
    for case in task.cases(None, 0):
        world = task.world(case, random.Random(0))
        mine, others = world.state.history()[:2]  # type: ignore[attr-defined]
        seen.setdefault(mine, set()).add(json.dumps([world.observation("Player-0"), task.context(case, "Player-0")]))
        hidden.setdefault(mine, set()).add(others)
    assert all(len(texts) == 1 for texts in seen.values()) and all(len(cards) == 2 for cards in hidden.values())


@pytest.mark.slow
def test_rules_name_only_parameters_that_their_games_have() -> None:
    task = task_of("tic_tac_toe")
    rules = sys.modules[type(task).__module__.rpartition(".")[0] + "._openspiel.rules"]
    for name, ours in rules.described().items():
        known = task_of(GRIDS.get(name, name)).loaded.parameters  # type: ignore[attr-defined]
        assert {field for _, field, *_ in string.Formatter().parse(ours.rules) if field} <= set(known), name
        assert ours.observes is None or ours.observes in task_of(GRIDS.get(name, name)).loaded.observes  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiny_hanabi", "10;0;0;4;8;4;10;0;0;0;0;10"),  # the payoffs
        ("battleship", "[2;3;3;4;5]"),  # how long the ship is that an action places
        (GRIDS["pathfinding"], "a.B\n..."),  # where to go, which the state does not show
    ],
)
def test_what_the_state_does_not_show_is_in_the_rules(text: str, said: str) -> None:
    task = task_of(text)
    case = first(task)
    rules = task.context(case, "Player-0")["rules"]
    shown = task.world(case, random.Random(0)).observation("Player-0")["state"]
    assert said in rules and said not in shown


def test_battleship_shows_boards_as_its_rules_describe() -> None:
    task = task_of("battleship")
    assert (
        "Your shots:\n0 . . . . . . . . . .\n"
        in task.world(first(task), random.Random(0)).observation("Player-0")["state"]
    )


def test_a_game_of_one_joint_move_has_no_state_to_show() -> None:
    task = task_of("matrix_pd")
    assert task.world(first(task), random.Random(0)).observation("Player-0")["state"] == ""


def test_own_cards_of_hanabi_appear_nowhere() -> None:
    task = task_of("hanabi(players=3)")
    case = first(task)
    world = task.world(case, random.Random(0))
    hands = [
        [re.findall(r"  \d: (\w\w), hints", hand) for hand in text.split("Player-")[1:]]
        for text in (world.observation(agent)["state"] for agent in case.agents)
    ]  # of each player: what it sees of its own hand, of the next player's, of the one after it
    assert all(seen[0] == ["XX"] * 5 and "XX" not in seen[1] + seen[2] for seen in hands)
    assert all(hands[seat][1] == hands[seat - 1][2] for seat in range(3))


def test_prompts_never_show_the_history_that_policies_follow(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text("name: x\ntask: {use: openspiel, game: tic_tac_toe}\nprotocol: steps\n")
    _, out, _ = invoke(capsys, "show", "--spec", str(tmp_path / "s.yaml"), "--case", "0")
    assert "history" not in out and "Player-0: x(" in out and "Your legal actions: " in out


# -------------------------------------------------------------------------------------- invalid moves


def idle(task: SteppedTask, **protocol: Any) -> Any:
    source = {"name": "x", "task": "dpbench/dining_table", "protocol": {"use": "steps", **protocol},
              "prompts": "world/standard", "metrics": ["timesteps"], "baseline": "random"}  # fmt: skip
    steps = resolve.plan(spec.parse(source, BUILTIN), BUILTIN).conditions[0].protocol
    case = first(task)
    return task.grade(case, drive(steps, task, case, lambda turn: None).outcome)


def test_an_invalid_move_is_replaced_by_a_legal_one_and_counted() -> None:
    task = task_of("connect_four")
    grade = idle(task)
    assert grade["invalid"] >= 7 and sorted(grade["returns"].values()) in ([-1, 1], [0, 0])
    assert grade == idle(task), "drawn from the case's seed"


@pytest.mark.parametrize(
    ("text", "returns", "score"),
    [
        ("connect_four", [-1, 1], 0.5),
        ("kuhn_poker(players=3)", [-2, 1, 1], None),
        ("hanabi", [0, 0], 0.0),
        ("bargaining", [0, 0], 0.0),
    ],
)
def test_a_forfeit_ends_the_game_with_the_least_return(text: str, returns: list[float], score: float | None) -> None:
    grade = idle(task_of(text, invalid="forfeit"))
    assert list(grade["returns"].values()) == returns and grade["invalid"] == 1
    assert score is None or grade["score"] == score


def test_returns_are_normalized_and_a_cooperative_game_has_a_greatest_one() -> None:
    assert idle(task_of("matrix_coordination"))["solved"] in (0, 1)
    assert idle(task_of("connect_four"))["solved"] is None
    grade = idle(task_of("coin_game"))
    low, high = -144, 144
    assert grade["score"] == pytest.approx((sum(grade["returns"].values()) / 2 - low) / (high - low))


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_simultaneous_games_play_in_both_orders(order: str) -> None:
    task = task_of("repeated_game(stage_game=matrix_pd(),num_repetitions=4)")
    grade = idle(task, order=order, max_timesteps=100)
    assert grade["invalid"] == 8


def test_backgammon_lists_each_move_once_and_without_numbers() -> None:
    task = task_of("backgammon", instances=3)
    for case in task.cases(None, 0):
        world, rng = task.world(case, random.Random(0)), random.Random(1)
        for _ in range(12):
            state: Any = world.state  # type: ignore[attr-defined]
            seat = state.current_player()
            reply = world.reply(case.agents[seat])
            assert reply is not None and reply.options is not None
            moves = [state.action_to_string(seat, action).split(" - ")[-1] for action in state.legal_actions()]
            assert sorted(reply.options) == sorted(set(moves))
            results = [str(state.child(action)) for action in state.legal_actions()]
            assert len(set(zip(moves, results, strict=True))) == len(set(moves)), "one name, one result"
            world = world.step({case.agents[seat]: rng.choice(reply.options)}, rng)


def test_names_are_all_different() -> None:
    task = task_of("tic_tac_toe")
    module = sys.modules[type(task.world(first(task), random.Random(0))).__module__]
    assert module.distinct(("a", "a", "a #2", "b")) == ("a", "a #3", "a #2", "b")
    assert module.distinct(("x\x1b[1m", "\n")) == ("x [1m", "action")


# ------------------------------------------------------------------------------------------ mistakes

MISTAKES = {
    "hanaby": "OpenSpiel has no game 'hanaby'\n  Did you mean hanabi?",
    "hanabi(players=9)": "hanabi is for 2 to 5 players, found 9",
    "hanabi(players=3": "'hanabi(players=3' is not a game\n  Did you mean hanabi or",
    "liars_dice(players=3)": "liars_dice is for 2 players, found 3",
    "repeated_game(stage_game=matrix_pdd(),num_repetitions=3)": "no game 'matrix_pdd'\n  Did you mean matrix_pd",
    "hanabi(player=3)": "hanabi has no parameter 'player'\n  Did you mean players?",
    "kuhn_poker(players=2.5)": "Wrong type for parameter players",
    "universal_poker(numPlayers=3)": "only read 2 stack sizes, need 3",
    "hanabi(hand_size=99)": "hanabi(hand_size=99) cannot be played: ",
    "efg_game": "efg_game needs parameters\n  For example efg_game(filename=/path/to/game.efg).",
    "efg_game(filename=/nowhere)": "the file that it names cannot be opened",
    "repeated_game": "For example repeated_game(stage_game=matrix_pd(),num_repetitions=10).",
    "2048": "2048 is for a single player",
    "mfg_garnet": "is a mean-field game",
    "pathfinding": "pathfinding is here for 1 players",
    "connect_four(rows=-1)": "cannot be played",
    "tic_tac_toe(": "'tic_tac_toe(' is not a game",
    "": "'' is not a game",
    "\x1b[31m": "is not a game",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_game_is_one_line_with_its_place(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError) as caught:
        task_of(text)
    assert MISTAKES[text] in str(caught.value) and "\x1b" not in str(caught.value)
    assert str(caught.value).startswith("the spec's task.game: ") and caught.value.__suppress_context__
    assert capfd.readouterr() == ("", "")


def test_what_openspiel_says_of_a_game_comes_as_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="OpenSpiel says that its implementation of quoridor has known issues"):
        task_of("quoridor(board_size=5)")  # a game is loaded once, and no other test loads this one
    task_of("quoridor(players=3)")
    assert capfd.readouterr() == ("", "")


def test_an_observation_that_a_game_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="hanabi gives no information"):
        task_of("hanabi", observes="information")


WITHOUT = "import sys; sys.modules['pyspiel'] = None; from harness.__main__ import main; sys.exit(main())"


@pytest.mark.slow
def test_without_the_package_specs_validate_and_runs_say_what_to_install(tmp_path: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False)

    assert call("validate", "--spec", "repeated_dilemmas").returncode == 0
    run = call("eval", "--spec", "hanabi", "--output_path", str(tmp_path / "run"))
    assert run.returncode == 2 and "Traceback" not in run.stderr
    assert run.stderr.endswith('needs the package open_spiel\n  pip install "mas-eval-harness[games]"\n')


# ------------------------------------------------------------------------------------------ policies


def versus(policy: Any, game: str, folder: Path) -> Any:
    source = {
        "name": "x",
        "task": {"use": "openspiel", "game": game, "instances": 6},
        "protocol": "steps",
        "agents": {
            "default": {"policy": policy},
            "other": {"policy": "random", "scored": False, "agents": ["Player-1"]},
        },
    }
    return harness.evaluate(source, output_path=folder)


def test_tree_search_beats_random_play_and_repeats_itself(tmp_path: Path) -> None:
    search = {"use": "openspiel/mcts", "simulations": 100}
    one, two = (versus(search, "connect_four", tmp_path / name) for name in ("one", "two"))
    assert one.scores == two.scores and not one.failed
    assert [score.numbers["score"] for score in one.scores] == [1.0] * 6


def test_tree_search_follows_chance_and_three_players(tmp_path: Path) -> None:
    search = {"use": "openspiel/mcts", "simulations": 5}
    assert not versus(search, "pig(players=3,winscore=10)", tmp_path / "run").failed


def test_bots_of_openspiel_play_by_name(tmp_path: Path) -> None:
    fixed = {"use": "openspiel/bot", "bot": "fixed_action_preference", "parameters": {"actions": "0:1:2:3:4:5:6:7:8"}}
    assert not versus(fixed, "tic_tac_toe", tmp_path / "fixed").failed
    both = [versus({"use": "openspiel/bot", "bot": "uniform_random"}, "nim", tmp_path / name) for name in ("a", "b")]
    assert both[0].scores == both[1].scores and not both[0].failed
    uniform = {"use": "openspiel/bot", "bot": "uniform_random"}  # it also names moves that backgammon lists once
    assert not versus(uniform, "backgammon(max_player_turns=10)", tmp_path / "backgammon").failed


@pytest.mark.parametrize(
    ("policy", "game", "says"),
    [
        ("openspiel/mcts", "kuhn_poker", "kuhn_poker hides something"),
        ("openspiel/mcts", "goofspiel", "goofspiel is simultaneous"),
        ({"use": "openspiel/bot", "bot": "uniform_random"}, "leduc_poker", "leduc_poker hides something"),
        ({"use": "openspiel/bot", "bot": "uniform"}, "nim", "Did you mean uniform_random"),
    ],
)
def test_a_policy_that_cannot_play_is_refused(policy: Any, game: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says) as caught:
        versus(policy, game, tmp_path)
    assert str(caught.value).startswith("the spec's agents.default")


def test_a_baseline_that_cannot_play_is_refused_at_its_own_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("name: x\ntask: {use: openspiel, game: hanabi}\nprotocol: steps\nbaseline: openspiel/mcts\n")
    with pytest.raises(UserError, match=r"s\.yaml:4:11: this policy cannot play openspiel"):
        harness.evaluate(str(file), output_path=tmp_path / "run")


def test_a_policy_of_games_is_refused_by_other_tasks(tmp_path: Path) -> None:
    source = {"extends": "dpbench_quick", "name": "x", "agents": {"default": {"policy": "openspiel/mcts"}}}
    with pytest.raises(UserError, match="it plays games of the task openspiel"):
        harness.evaluate(source, output_path=tmp_path)


def dilemmas(act: str, folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(game, strategy of the other) → the numbers of one episode of repeated_dilemmas, by a policy's one rule."""
    source = {"extends": "repeated_dilemmas", "name": "x", "baseline": {"use": "expression", "act": act}}
    run = harness.evaluate(source, limit=1, output_path=folder)
    assert not run.failed
    return {(score.labels["stage"], score.labels["against"]): dict(score.numbers) for score in run.scores}


def test_known_strategies_answer_as_they_should(tmp_path: Path) -> None:
    nice = "options[0] if 'Dare' not in options else 'Chicken'"
    kind = dilemmas(nice, tmp_path / "kind")
    for opponent in ("itself", "tit for tat", "grim trigger"):
        assert kind["prisoners dilemma", opponent]["points"] == 50, "five points in each of ten rounds"
    assert kind["prisoners dilemma", "always defect"]["points"] == 0
    assert kind["prisoners dilemma", "always defect"]["points_of_the_other"] == 100
    assert {parts["cooperation"] for parts in kind.values()} <= {(10.0, 10.0), (20.0, 20.0)}
    # one defection in the third round: tit for tat answers once, grim trigger for the rest of the game
    once = dilemmas(f"'Defect' if 'Defect' in options and len(moves) == 2 else ({nice})", tmp_path / "once")
    assert once["prisoners dilemma", "tit for tat"]["points"] == 2 * 5 + 10 + 0 + 6 * 5
    assert once["prisoners dilemma", "grim trigger"]["points"] == 2 * 5 + 10 + 7 * 0
    assert once["prisoners dilemma", "itself"]["points"] == 2 * 5 + 1 + 7 * 5
    assert once["prisoners dilemma", "tit for tat"]["cooperation"] == (9.0, 10.0)


def test_an_agreement_is_found_whoever_agrees(tmp_path: Path) -> None:
    agree = {"use": "expression", "act": "'Agree' if 'Agree' in options else options[0]"}
    source = {
        "extends": "negotiation",
        "name": "x",
        "baseline": agree,
        "matrix": {"game": [{"inherits": "bargaining"}]},
    }
    run = harness.evaluate(source, limit=3, output_path=tmp_path)
    assert [score.numbers["agreement"] for score in run.scores] == [1.0] * 6
    assert all(score.numbers["points"] == 5 for score in run.scores), (
        "an offer of nothing for oneself: 10 for the other"
    )


def test_a_plan_counts_games_that_are_played_even_where_idle_players_forfeit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(
        "name: x\ntask: {use: openspiel, game: tic_tac_toe, instances: 1, invalid: forfeit}\nprotocol: steps\n"
    )
    _, out, _ = invoke(capsys, "plan", "--spec", str(tmp_path / "s.yaml"))
    calls = next(line for line in out.splitlines() if line.startswith("model calls"))
    assert 5 <= int(calls.split()[2]) <= 9
