"""TextArena's games: the same as in the package's own loop, for any text, and what is refused."""

import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest

import harness
from harness.api import Request, Turn
from harness.api.errors import PluginError
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.extensions.games.textarena import ClockedGame, LiveGame, Position, catalog, clocked
from harness.extensions.sandbox import clock
from harness.extensions.yaml_tasks.conformance import NASTY, check_task, check_world
from harness.replies import FreeText
from tests.helpers.commands import invoke

BUILTIN = builtin()
TASK = BUILTIN.load("tasks", "textarena")
POLICY = BUILTIN.load("policies", "textarena/random")
MOST = 60
"""Actions of a game in these tests."""
MINUTES = {"Sokoban-v0-medium"}
"""Environments that take minutes to make their first state."""
Chooses = Callable[[Position, random.Random], str]


def moves() -> Chooses:
    """What the random policy plays in one game: an agent of its own for every player."""
    agents: dict[int, Any] = {}

    def choose(position: Position, rng: random.Random) -> str:
        agent = agents.setdefault(position.player, POLICY())
        observation = {"text": position.text, "news": list(position.news)}
        return str(agent.choose(Turn("a", "act", observation, FreeText()), rng))

    return choose


def hostile(position: Position, rng: random.Random) -> str:
    """A text that no game expects, or one that looks a little like a move."""
    seen = re.findall(r"\[[^\[\]\n]{1,40}\]", position.text)[-8:]
    odd = [
        "[]",
        "[-1]",
        "[999999999999999999999]",
        "[0 0]",
        "[4 -1]",
        "[1²]",
        "[١]",
        "[" * 500,
        "[x" + "9" * 5000 + "]",
    ]
    return rng.choice([*NASTY, *odd, *seen])


def play(game: LiveGame, choose: Chooses, seed: int) -> list[Position]:
    """A game to its end, or to `MOST` actions."""
    rng = random.Random(seed)
    trail = [game.start()]
    while trail[-1].rewards is None and len(trail) <= MOST:
        trail.append(game.after(trail[-1], choose(trail[-1], rng)))
    return trail


def plain(name: str, players: int, seed: int, actions: list[str]) -> tuple[list[tuple[int, str]], Any]:
    """TextArena's own loop, fed these actions: what each player saw, and the rewards; None before the end."""
    import textarena

    random.seed(seed)
    numpy.random.seed(seed)
    environment = textarena.make(name)
    environment.reset(num_players=players, seed=seed)

    def shown() -> tuple[int, str]:
        player, text = environment.get_observation()
        names = {**environment.state.role_mapping, -1: "GAME"}
        if not isinstance(text, str):  # "-raw": messages
            parts = [said if isinstance(said[1], str) else said[1:] for said in text]  # three games mix them up
            text = "".join(f"\n[{names.get(who, f'Player {who}')}] {said}" for who, said, *_ in parts)
        return player, text

    seen, done = [shown()], False
    for action in actions:
        done, _ = environment.step(action)
        if not done:
            seen.append(shown())
    return seen, environment.close()[0] if done else None


def check(name: str, choose: Chooses, seed: int, players: int | None = None) -> list[Position]:
    """Play a game and compare it with the package's loop, with itself, and with itself from its middle."""
    players = players or catalog.entry(name).players[0]
    game = LiveGame(name, players, seed, {})
    trail = play(game, choose, seed)
    last = trail[-1]
    assert len(last.actions()) == last.turns == len(trail) - 1
    failed = last.reason.startswith("The environment failed")
    seen, rewards = plain(name, players, seed, last.actions()[:-1] if failed else last.actions())
    shown = [(at.player, at.text) for at in trail if at.rewards is None]
    assert shown == seen[: len(shown)]
    if rewards is not None:
        numbers = {player: reward for player, reward in rewards.items() if isinstance(reward, (int, float))}
        assert last.rewards is not None and (not numbers or last.rewards == numbers)
    again = LiveGame(name, players, seed, {})
    at = again.start()
    for action in last.actions():
        at = again.after(at, action)
    assert (at.rewards, at.text, at.news) == (last.rewards, last.text, last.news)
    middle = trail[len(trail) // 2]
    for action in last.actions()[middle.turns :]:
        middle = game.after(middle, action)
    assert (middle.rewards, middle.text, middle.invalid) == (last.rewards, last.text, last.invalid)
    elsewhere = ClockedGame(name, players, seed, {})  # as runs play it
    at = elsewhere.start()
    for action, there in zip(last.actions(), trail[1:], strict=True):
        at = elsewhere.after(at, action)
        assert at == there
    if len(trail) > 2:
        assert elsewhere.after(trail[-3], "something else") == game.after(trail[-3], "something else")
    return trail


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["SecretMafia-v0", "TicTacToe-v0", "KuhnPoker-v0", "Taboo-v0-food", "Countdown-v0", "KuhnPoker-v0-raw"]
)
def test_games_are_those_of_the_package(name: str) -> None:
    check(name, moves(), 1)
    check(name, hostile, 2)


def startable() -> list[catalog.EnvironmentEntry]:
    """All environments that start here, but for those that take minutes."""
    known = (entry for entry in catalog.entries().values() if entry.problem() is None)
    return [entry for entry in known if entry.name.removesuffix(entry.variant) not in MINUTES]


@pytest.mark.slow
def test_one_environment_of_each_family_can_be_played() -> None:
    families = {entry.family: entry.name for entry in reversed(startable()) if not entry.variant}
    assert len(families) > 60
    for name in families.values():
        at = play(LiveGame(name, catalog.entry(name).players[0], 3, {}), hostile, 3)[-1]
        assert at.rewards is None or all(-1 <= reward <= 1 for reward in at.rewards.values())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_every_environment_that_starts_here_is_as_in_the_package(part: int) -> None:
    every = startable()
    assert len(every) > 500
    for entry in every[part::3]:
        trails = [check(entry.name, hostile, 4)]
        if not entry.variant:  # variants are other views of the same game
            trails.append(check(entry.name, moves(), 3))
        for trail in trails:
            rewards = trail[-1].rewards or {}
            assert all(-1 <= reward <= 1 for reward in rewards.values()), (entry.name, rewards)


@pytest.mark.slow
def test_games_side_by_side_do_not_disturb_one_another_or_the_process() -> None:
    alone = [play(LiveGame("SecretMafia-v0", 6, seed, {}), moves(), seed)[-1] for seed in (5, 6)]
    random.seed(0)
    numpy.random.seed(0)
    games = [LiveGame("SecretMafia-v0", 6, seed, {}) for seed in (5, 6)]
    at, choose, rngs = [game.start() for game in games], [moves(), moves()], [random.Random(5), random.Random(6)]
    while any(one.rewards is None and one.turns < MOST for one in at):
        for i, game in enumerate(games):
            if at[i].rewards is None and at[i].turns < MOST:
                at[i] = game.after(at[i], choose[i](at[i], rngs[i]))
    assert [(one.text, one.rewards) for one in at] == [(one.text, one.rewards) for one in alone]
    assert random.random() == random.Random(0).random()
    assert numpy.random.random() == numpy.random.RandomState(0).random_sample()


def in_processes(tmp_path: Path, code: str, **environment: str) -> list[str]:
    """What a program prints with one hash seed, and with another."""
    (tmp_path / "play.py").write_text(
        "from harness.extensions.games.textarena import ClockedGame, LiveGame, catalog\n" + code
    )
    done = []
    for seed in ("1", "2"):
        words = {**environment, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(harness.__file__).parents[1])}
        ran = subprocess.run([sys.executable, tmp_path / "play.py"], env=words, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        done.append(ran.stdout)
    return done


@pytest.mark.slow
def test_a_game_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "g = LiveGame('SecretMafia-v0', 7, 3, {}); p = g.start()\n"
        "while p.rewards is None: p = g.after(p, '[1] [2] [0]'[p.turns % 3 * 4:])\n"
        "print(p.actions(), p.rewards, p.roles)\n"
        "for seed in range(9):\n"  # Crosswords carries out all moves of a reply, from a set
        "    g = LiveGame('Crosswords-v0', 1, seed, {}); p = g.start()\n"
        "    print(g.after(p, ' '.join(f'[{i} {j} {x}]' for i in range(9) for j in range(9) for x in 'EAS')).text)"
    )
    one, other = in_processes(tmp_path, code)
    assert one == other and "Mafia" in one and "Please resubmit" in one


@pytest.mark.slow
def test_games_with_data_of_nltk_ask_no_network_and_start_alike(tmp_path: Path) -> None:
    words = tmp_path / "corpora" / "words"
    words.mkdir(parents=True)
    for file in ("en", "en-basic"):
        (words / file).write_text(
            "\n".join(f"{a}{b}{c}{d}" for a in "bcdlp" for b in "aeio" for c in "nrt" for d in "dek")
        )
    code = (
        "import nltk\n"
        "def fetch(*_, **__): raise SystemExit('asks the network')\n"
        "nltk.download = fetch\n"
        "for name in ('WordChains-v0', 'Hangman-v0', 'WordSearch-v0', 'SpellingBee-v0', 'LetterAuction-v0'):\n"
        "    e = catalog.entry(name); assert e.problem() is None, e.problem()\n"
        "    g = LiveGame(name, e.players[0], 3, {}); p = g.after(g.start(), '[0 0 0 3] [1 0 1 3] [2 0 2 3] [bane]')\n"
        "    print(p.text, p.reason)"
    )
    one, other = in_processes(tmp_path, code, NLTK_DATA=str(tmp_path))
    assert one == other and "Word Chains" in one and "Hangman" in one


def test_conformance(capfd: pytest.CaptureFixture[str]) -> None:
    task = TASK(env="SecretMafia-v0", players=6, instances=2)
    assert check_task(task) == []
    assert check_world(task) == []
    play(LiveGame("LogicPuzzle-v0", 1, 0, {}), moves(), 0)
    assert capfd.readouterr() == ("", "")  # environments print; a run does not


def test_a_reply_full_of_blanks_does_not_occupy_an_environment_for_minutes() -> None:
    task = TASK(env="SimpleNegotiation-v0-raw", instances=1)
    world = task.world(next(iter(task.cases(1, 0))), random.Random(0))
    world = world.step({"Player-0": "[Offer " + " \n" * 1500 + "I give 1 Wheat"}, random.Random(0))
    assert world.position.actions() == ["[Offer" + (" " + " \n" * 25)[:50] + "I give 1 Wheat"]


def endless_games() -> Any:
    """What the process of the clock makes: environments that come to no end with one text."""

    class Endless(LiveGame):
        def _do(self, action: str) -> Any:
            while action == "forever" or (action == "" and self.seed == 4):
                pass
            return super()._do(action)

    vars(clocked)["LiveGame"] = Endless
    return clocked.games()


@pytest.mark.slow
def test_an_action_with_which_an_environment_never_ends_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "SECONDS", 0.3)
    endless = clock.ClockedFunction(f"{__name__}:endless_games")
    monkeypatch.setattr(clocked, "_clock", lambda name: endless)
    game, plain = ClockedGame("SecretMafia-v0", 6, 3, {}), LiveGame("SecretMafia-v0", 6, 3, {})
    at, there = game.after(game.start(), "Hello."), plain.after(plain.start(), "Hello.")
    at, there = game.after(at, "forever"), plain.after_failure(there)
    assert at == there and at.rewards is None and at.actions() == ["Hello.", ""]
    assert game.after(at, "Well.") == plain.after(there, "Well.")
    hopeless = ClockedGame("SecretMafia-v0", 6, 4, {})  # neither with an empty one
    lost = hopeless.after(hopeless.start(), "forever")
    assert lost.rewards is not None and sorted(lost.rewards.values()) == [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert lost.reason == "The environment failed: UnreadableTextError"


def test_a_player_who_only_sends_nonsense_loses_in_the_end() -> None:
    game = LiveGame("Poker-v0", 2, 0, {})  # it would ask again forever
    at = game.start()
    while at.rewards is None:
        at = game.after(at, "no")
    assert (at.turns, at.rewards, at.invalid) == (10, {0: -1.0, 1: 0.0}, (10, 0))
    assert at.reason == "Player 0 sent 10 invalid actions in a row."


@pytest.mark.slow
def test_games_of_more_players_are_those_of_the_package() -> None:
    refused = set()
    for entry in catalog.entries().values():
        if entry.variant or entry.problem() is not None:
            continue
        few, most = entry.players
        for players in {few + 1, (few + most) // 2, most} - {few} if few < most else ():
            try:
                LiveGame(entry.name, players, 5, {}).start()
            except PluginError as error:
                assert re.search("must be even|too small", error.message)
                refused.add((entry.family, players))
                continue
            check(entry.name, moves(), 5, players)
            check(entry.name, hostile, 6, players)
    assert refused == {("Snake", 15), ("Surround", 15), ("Taboo", 5), ("Taboo", 9)}


def run(folder: Path, model: Any = None, **task: Any) -> harness.Run:
    spec = {
        "name": "t",
        "task": {"use": "textarena", "env": "SecretMafia-v0", "instances": 3, **task},
        "protocol": "steps",
    }
    return harness.evaluate(spec, model, output_path=folder, project=BUILTIN)


def numbers(done: harness.Run, metric: str) -> list[float | None]:
    return [score.number(metric) for score in done.scores]


def test_a_spec_of_three_lines_is_whole(tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    assert not done.failed and numbers(done, "finished") == [1, 1, 1] and numbers(done, "invalid") == [0, 0, 0]
    assert numbers(run(tmp_path / "again"), "score") == numbers(done, "score")


def test_a_model_reads_the_games_own_words_and_its_text_is_what_counts(tmp_path: Path) -> None:
    prompts: list[list[Mapping[str, Any]]] = []

    def answer(request: Request) -> str:
        prompts.append([dict(message) for message in request.thread.messages])
        listed = re.findall(r"alid(?: targets)?: (\[\d+\])|: (\[\d+\]), \[", str(prompts[-1][-1]["content"]))
        return f"I say {next(filter(None, listed[-1]))}" if listed else "hello"

    done = run(tmp_path / "r", Mock(function=answer), instances=1, options={"discussion_rounds": 1})
    assert [message["role"] for message in prompts[0]] == ["system", "user"]
    assert "always follow the required format" in str(prompts[0][0]["content"])
    assert str(prompts[0][1]["content"]).startswith("[GAME] Welcome to Secret Mafia! You are Player ")
    assert any("] I say [" in str(prompt[1]["content"]) for prompt in prompts)  # others read it, as it was written
    assert not done.failed


def test_only_what_stands_after_message_reaches_others(tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(request: Request) -> str:
        prompts.append(" ".join(str(message["content"]) for message in request.thread.messages))
        listed = re.findall(r"alid(?: targets)?: (\[\d+\])|: (\[\d+\]), \[", prompts[-1])
        return f"I am a wolf, [0].\nMESSAGE: I say {next(filter(None, listed[-1]))}" if listed else "MESSAGE: hello"

    public = {"public": "after MESSAGE:", "options": {"discussion_rounds": 1}}
    done = run(tmp_path / "r", Mock(function=answer), instances=1, **public)
    assert not done.failed and sum(filter(None, numbers(done, "parse_failures"))) == 0
    assert any("] I say [" in prompt for prompt in prompts) and not any("wolf" in prompt for prompt in prompts)
    assert all("Then write MESSAGE: and behind it" in prompt for prompt in prompts)
    silent = run(tmp_path / "silent", Mock(function=lambda request: "I am a wolf, [0]."), instances=1, **public)
    assert not silent.failed and all(numbers(silent, "parse_failures"))
    with pytest.raises(PluginError, match="public says what of a reply is for others; found 'behind X'"):
        TASK(env="SecretMafia-v0", public="behind X")


def test_a_model_that_says_nothing_costs_no_episode(tmp_path: Path) -> None:
    done = run(tmp_path / "r", Mock())
    assert not done.failed and all(numbers(done, "invalid")) and all(numbers(done, "parse_failures"))


def test_a_game_that_is_cut_off_has_no_returns(tmp_path: Path) -> None:
    spec = {
        "name": "t",
        "task": {"use": "textarena", "env": "SecretMafia-v0", "instances": 1},
        "protocol": {"use": "steps", "max_timesteps": 3},
    }
    done = harness.evaluate(spec, None, output_path=tmp_path / "r", project=BUILTIN)
    assert numbers(done, "score") == [None] and numbers(done, "finished") == [0] and numbers(done, "invalid") == [0]


def test_one_conversation_with_what_is_new(tmp_path: Path) -> None:
    lengths: dict[int, list[int]] = {}

    def answer(request: Request) -> str:
        lengths.setdefault(id(request.thread), []).append(len(str(request.thread.messages[-1]["content"])))
        return "[1] hello"

    spec = {
        "name": "t",
        "task": {"use": "textarena", "env": "SecretMafia-v0-raw", "instances": 1},
        "protocol": {"use": "steps", "memory": "thread"},
    }
    harness.evaluate(spec, Mock(function=answer), output_path=tmp_path / "r", project=BUILTIN)
    assert len(lengths) <= 6 and all(later < first for first, *rest in lengths.values() for later in rest)


def test_a_plan_counts_games_that_are_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Idle players lose after four turns."""
    matrix = ("--set", "matrix.players=[6]", "--set", "matrix.talk=[1]", "--limit", "5")
    code, out, _ = invoke(capsys, "plan", "--spec", "social_deduction", *matrix)
    counted = int(re.findall(r"model calls +(\d+) without retries", out)[0])
    spec = {"extends": "social_deduction", "name": "t", "matrix": {"players": [6], "talk": [1]}, "limit": 5}
    done = harness.evaluate(spec, None, output_path=tmp_path / "r", project=BUILTIN)
    turns = sum(turn or 0 for turn in numbers(done, "turns"))
    assert code == 0 and "of agents that play at random" in out and 0.5 < counted / turns < 2


def test_social_deduction_counts_who_wins(tmp_path: Path) -> None:
    spec = {"extends": "social_deduction", "name": "t", "matrix": {"players": [6], "talk": [1]}}
    done = harness.evaluate(spec, None, output_path=tmp_path / "r", project=BUILTIN, limit=4)
    assert [sum(pair) for pair in zip(numbers(done, "village"), numbers(done, "mafia"), strict=True)] == [1.0] * 4
    assert numbers(done, "invalid") == [0] * 4


@pytest.mark.parametrize(
    ("wrong", "place", "message", "hint"),
    [
        ({"env": "SecretMafia"}, "env", "has no environment 'SecretMafia'", "Did you mean SecretMafia-v0"),
        ({"env": "Zzzzzzz"}, "env", "has no environment 'Zzzzzzz'", "--textarena [WORD]` lists the 238"),
        ({"env": "SecretMafia-v0", "players": 3}, "players", "SecretMafia-v0 has 6 to 15 players, not 3", ""),
        ({"env": "TicTacToe-v0", "players": 3}, "players", "TicTacToe-v0 has 2 players, not 3", ""),
        ({"env": "Debate-v0"}, "env", "cannot be played here: it asks models of its own", "says which"),
        ({"env": "CharacterConclave-v0"}, "env", "every action fails in it", "says which"),
        ({"env": "LightsOut-v0-train"}, "env", "its view shows a board, and the game sends none", "says which"),
        ({"env": "UsedCarNegotiation-v0"}, "env", "lacks its data (UsedCarNegotiation/instructions)", "says which"),
    ],
)
def test_mistakes_are_one_line(wrong: dict[str, Any], place: str, message: str, hint: str) -> None:
    with pytest.raises(PluginError) as caught:
        TASK(**wrong)
    assert caught.value.at == (place,) and message in caught.value.message and hint in (caught.value.hint or "")


def test_a_wrong_option_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"SecretMafia-v0 cannot start: TypeError.*talk_rounds"):
        run(tmp_path / "r", options={"talk_rounds": 2})


def test_without_the_package_specs_are_valid_and_runs_stop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "textarena", None)
    catalog.entries.cache_clear()
    file = tmp_path / "t.yaml"
    file.write_text("name: t\ntask: {use: textarena, env: SecretMafia-v0}\nprotocol: steps\n")
    assert invoke(capsys, "validate", str(file)) == (0, f"{file}: ok\n", "")
    assert invoke(capsys, "validate", "social_deduction")[0] == 0
    code, _, err = invoke(capsys, "eval", "--spec", str(file), "--output_path", str(tmp_path / "r"))
    assert code == 2 and "needs the package textarena" in err and "Traceback" not in err
    assert 'pip install "mas-eval-harness[textarena]"' in err and not (tmp_path / "r" / "journal.jsonl").exists()
    assert invoke(capsys, "list", "tasks", "--textarena")[0] == 2
    needed = "games needs textarena for lists.textarena: pip install 'mas-eval-harness[textarena]'"
    assert needed in invoke(capsys, "list")[1], "the rest of the extension needs nothing"
    assert "gomoku" in invoke(capsys, "list", "tasks", "--openspiel", "go")[1]


def test_the_list_names_what_cannot_be_played(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "list", "tasks", "--textarena", "negotiation")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0 and lines["SimpleNegotiation-v0"] == "2"
    assert "cannot be played: " in lines["UsedCarNegotiation-v0"]
    code, _, err = invoke(capsys, "list", "tasks", "--textarena", "zzz")
    assert code == 2 and "no environment of TextArena has 'zzz' in its name" in err
    assert invoke(capsys, "list", "metrics", "--textarena")[0] == 2
