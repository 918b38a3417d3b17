"""Mutable environments in frozen worlds: an adapter of one's own, and PettingZoo's."""

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy
import pytest

from harness.api import Case, Outcome
from harness.api.errors import PluginError, SetupError
from harness.config.project import builtin
from harness.extensions.games.environments import Environment, EnvironmentTask, ExampleEnvironment, OwnChance
from harness.extensions.games.legal import LegalAction
from harness.extensions.yaml_tasks.conformance import check_protocol, check_task, check_world

BUILTIN = builtin()
ZOO = BUILTIN.load("tasks", "pettingzoo")
STEPS = BUILTIN.load("protocols", "steps")


class Dice(Environment):
    """Each agent in turn rolls or stops; who has most wins. It draws from the global generators and prints."""

    def __init__(self, agents: Sequence[str]) -> None:
        self.agents = agents

    def reset(self, seed: int) -> None:
        self.points = dict.fromkeys(self.agents, 0)
        self.turns: list[str] = list(self.agents) * 3

    def legal(self) -> Mapping[str, Sequence[str]]:
        return {self.turns[0]: ["roll", "stop"]} if self.turns else {}

    def observe(self, agent: str) -> str:
        return f"You have {self.points[agent]} points; luck today is {random.random():.6f}."

    def act(self, actions: Mapping[str, str]) -> None:
        print("noise")
        agent, action = next(iter(actions.items()))
        self.turns.remove(agent)
        if action == "roll":
            self.points[agent] += random.randint(1, 6) + int(numpy.random.randint(1, 7))
        else:
            self.turns = [other for other in self.turns if other != agent]

    def returns(self) -> Mapping[str, float]:
        return {agent: float(points) for agent, points in self.points.items()}


@dataclass(kw_only=True)
class DiceTask(EnvironmentTask):
    players = 2

    def environment(self, agents: Sequence[str]) -> Environment:
        return Dice(agents)

    def bounds(self, case: Case) -> tuple[float, float]:
        return (-1.0, 36.0)


def first(task: EnvironmentTask) -> Case:
    return next(iter(task.cases(1, 0)))


def played(task: EnvironmentTask, actions: str, case: Case) -> Any:
    world = task.world(case, random.Random(0))
    for letter in actions:
        agent = next(agent for agent in case.agents if world.reply(agent))
        world = world.step({agent: {"r": "roll", "s": "stop"}.get(letter)}, random.Random(0))
    return world


def test_conformance(capfd: pytest.CaptureFixture[str]) -> None:
    task = DiceTask(instances=2)
    assert check_task(task) == [] == check_world(task) == check_protocol(STEPS(), task)
    assert capfd.readouterr().out == ""


def test_an_older_state_goes_on_as_it_would_have() -> None:
    task = DiceTask(instances=1)
    case = first(task)
    world = task.world(case, random.Random(0))
    trail = [world]
    while not trail[-1].over:
        agent = next(agent for agent in case.agents if trail[-1].reply(agent))
        trail.append(trail[-1].step({agent: "roll"}, random.Random(0)))
    assert len(trail) == 7 and all(value > 5 for value in trail[-1].facts()["returns"].values())
    for start in (3, 0, 5):
        at = trail[start]
        for later in trail[start + 1 :]:
            agent = next(agent for agent in case.agents if at.reply(agent))
            at = at.step({agent: "roll"}, random.Random(9))
            assert [at.observation(agent) for agent in case.agents] == [later.observation(a) for a in case.agents]
        assert at.facts() == trail[-1].facts()


def test_games_draw_from_their_case_alone() -> None:
    task = DiceTask(instances=2)
    one, two = task.cases(2, 0)
    random.seed(5)
    numpy.random.seed(5)
    alone = [played(task, "rrrrrr", case).facts() for case in (one, two)]
    assert alone[0] != alone[1] and played(task, "rrrrrr", one).facts() == alone[0]
    worlds = [task.world(case, random.Random(0)) for case in (one, two)]
    for turn in range(6):
        agent = one.agents[turn % 2]
        worlds = [world.step({agent: "roll"}, random.Random(0)) for world in worlds]
    assert [world.facts() for world in worlds] == alone
    assert (random.random(), numpy.random.rand()) == (random.Random(5).random(), numpy.random.RandomState(5).rand())


def test_an_invalid_action_is_replaced_or_forfeits() -> None:
    drawn = played(DiceTask(instances=1), "-", first(DiceTask(instances=1)))
    assert drawn.facts()["invalid"] == {"Player-0": 1, "Player-1": 0} and not drawn.over
    task = DiceTask(instances=1, invalid="forfeit")
    lost = played(task, "r-", first(task))
    assert lost.over and lost.facts()["returns"]["Player-1"] == -1.0 and lost.facts()["returns"]["Player-0"] > 0
    grades = task.grade(first(task), Outcome(facts=lost.facts()))
    assert grades["invalid"] == 1 and 0 < grades["score"] < 0.5


def test_each_start_makes_the_environment_anew() -> None:
    class Counting(Dice):
        acted = 0

        def observe(self, agent: str) -> str:
            return str(self.acted)

        def act(self, actions: Mapping[str, str]) -> None:
            self.acted += 1
            super().act(actions)

    @dataclass(kw_only=True)
    class Task(DiceTask):
        def environment(self, agents: Sequence[str]) -> Environment:
            return Counting(agents)

    case = first(Task(instances=1))
    world = played(Task(instances=1), "r", case)
    later = world.step({"Player-1": "roll"}, random.Random(0))
    again = world.step({"Player-1": "roll"}, random.Random(0))
    assert later.observation("Player-0")["state"] == again.observation("Player-0")["state"] == "2"


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        ("legal", None, "must return a mapping agent → names of its actions, which is empty at the end; it returned"),
        ("legal", {"Bob": ["roll"]}, "actions of Player-0, Player-1 only; it returned 'Bob'"),
        ("legal", {"Player-0": []}, "a list of different texts for Player-0, one or more; it returned []"),
        ("legal", {"Player-0": [0, 1]}, "a list of different texts for Player-0, one or more; it returned [0, 1]"),
        ("legal", {"Player-0": "roll"}, "a list of different texts for Player-0, one or more; it returned 'roll'"),
        ("legal", {"Player-0": ["a", "a"]}, "a list of different texts for Player-0, one or more"),
        ("observe", {"points": 3}, "must return a text for Player-0; it returned {'points': 3}"),
        ("observe", numpy.zeros(2), "must return a text for Player-0; it returned array([0., 0.])"),
        ("returns", None, "from each of Player-0, Player-1 to a finite number; it returned None"),
        ("returns", {"Player-0": 1.0}, "from each of Player-0, Player-1 to a finite number; it returned {'Player-0'"),
        ("returns", {"Player-0": 1.0, "Player-1": "won"}, "to a finite number; it returned {'Player-0': 1.0,"),
        ("returns", {"Player-0": 1.0, "Player-1": float("nan")}, "to a finite number; it returned {'Player-0': 1.0,"),
    ],
    ids=lambda value: str(value)[-20:] if isinstance(value, str) else "",
)
def test_wrong_answers_are_named(monkeypatch: pytest.MonkeyPatch, method: str, wrong: Any, message: str) -> None:
    monkeypatch.setattr(Dice, method, lambda *_: wrong)
    with pytest.raises(PluginError) as caught:
        DiceTask(instances=1).world(first(DiceTask(instances=1)), random.Random(0))
    assert f"Dice.{method}() must return " in caught.value.message and message in caught.value.message


@pytest.mark.slow
def test_games_in_two_threads_do_not_disturb_one_another() -> None:
    task = DiceTask(instances=2)
    cases = list(task.cases(2, 0))
    alone = [played(task, "rrrrrr", case).facts() for case in cases]
    with ThreadPoolExecutor(2) as pool:
        beside = list(pool.map(lambda case: [played(task, "rrrrrr", case).facts() for _ in range(50)], cases))
    assert beside == [[facts] * 50 for facts in alone]


def test_a_stand_in_has_a_turn_for_each_agent() -> None:
    environment = ExampleEnvironment(["a", "b"])
    turns = []
    environment.reset(0)
    while legal := environment.legal():
        turns += list(legal)
        environment.act({agent: names[0] for agent, names in legal.items()})
    assert turns == ["a", "b"]


def test_chance_of_its_own_goes_on_where_it_stopped() -> None:
    chance, all_in_one = OwnChance(3), random.Random(3)
    numbers = []
    for _ in range(3):
        with chance():
            numbers.append(random.random())
    assert numbers == [all_in_one.random() for _ in range(3)]


# ---------------------------------------------------------------------------------------------- PettingZoo


def countdown(render_mode: str | None = None) -> Any:
    """An environment of PettingZoo's kind: two players take one or two of seven; who takes the last one wins."""
    from gymnasium.spaces import Box, Dict, Discrete
    from pettingzoo import AECEnv

    class Countdown(AECEnv):  # type: ignore[misc]
        metadata = {"render_modes": ["ansi"], "name": "countdown"}  # noqa: RUF012

        def __init__(self) -> None:
            super().__init__()
            self.possible_agents, self.render_mode = ["left", "right"], render_mode

        def observation_space(self, agent: str) -> Any:
            return Dict({"observation": Box(0, 7, (1,)), "action_mask": Box(0, 1, (3,))})

        def action_space(self, agent: str) -> Any:
            return Discrete(3)

        def reset(self, seed: int | None = None, options: Any = None) -> None:
            self.left, self.agents, self.agent_selection = 7, list(self.possible_agents), "left"
            self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0), dict.fromkeys(self.agents, 0)
            self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
            self.infos: dict[str, Any] = {agent: {} for agent in self.agents}

        def observe(self, agent: str) -> Any:
            mask = numpy.array([0, 1, self.left > 1], dtype=numpy.int8)
            return {"observation": numpy.array([self.left]), "action_mask": mask}

        def render(self) -> str:
            return "o" * self.left

        def step(self, action: int | None) -> None:
            agent = self.agent_selection
            if self.terminations[agent]:
                self._was_dead_step(action)
                return
            assert action is not None
            other = "right" if agent == "left" else "left"
            self.left -= action
            self._cumulative_rewards[agent] = 0
            self.rewards = dict.fromkeys(self.agents, 0)
            if self.left == 0:
                self.rewards, self.terminations = {agent: 1, other: -1}, dict.fromkeys(self.agents, True)
            self.agent_selection = other
            self._accumulate_rewards()

    return Countdown()


@pytest.fixture
def zoo() -> Iterator[Any]:
    """The task with an environment that needs no further package, as a user registers one."""
    import pettingzoo

    pettingzoo.register("aec", "mine/countdown_v0", countdown)
    yield ZOO(env="mine/countdown_v0", instances=1)
    del pettingzoo.aec_registry["mine/countdown-v0"]


def loop(make: Any, seed: int, numbers: Sequence[int]) -> dict[str, float]:
    """PettingZoo's own loop with these actions: the rewards of each player."""
    environment = make()
    environment.reset(seed=seed % 2**32)
    total = dict.fromkeys(environment.possible_agents, 0.0)
    left = list(numbers)
    for agent in environment.agent_iter():
        _, reward, terminated, truncated, _ = environment.last()
        total[agent] += float(reward)
        environment.step(None if terminated or truncated else left.pop(0))
    assert not left
    return total


def test_an_environment_of_pettingzoo_shows_its_text_and_numbers(zoo: Any) -> None:
    assert check_task(zoo) == [] == check_world(zoo)
    world = zoo.world(first(zoo), random.Random(0))
    assert world.observation("Player-0")["state"] == "ooooooo\n\n[7]"
    assert world.reply("Player-0") == LegalAction(("1", "2")) and world.reply("Player-1") is None


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (
            "classic/tictactoe_v3",
            ["Each action from 0 to 8 represents", "0 | 3 | 6", "player_1 is Player-0, player_2 is"],
        ),
        ("classic/connect_four_v3", ["which column a token should be dropped in", "If an agent successfully connects"]),
        ("classic/rps_v2", ["Rock is 0, paper is 1 and scissors is 2"]),
        ("classic/leduc_holdem_v4", ["| 0         | Call", "| 3         | Check"]),
    ],
)
def test_the_rules_of_an_environment_are_its_own_documentation(env: str, says: list[str]) -> None:
    """What the numbers of actions mean, and nothing for programmers."""
    task = ZOO(env=env, instances=1)
    context = task.context(first(task), "Player-0")
    text = "\n".join([context["rules"], *context["about"]])
    assert all(" ".join(one.split()) in " ".join(text.split()) for one in says), text
    assert not [word for word in ("Version History", "make(", "```{figure}", "<a href", "import ") if word in text]


def test_images_cannot_be_played_in_words(zoo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pettingzoo

    environment = countdown()
    monkeypatch.setattr(type(environment), "observe", lambda *_: numpy.zeros((100, 100, 3)))
    monkeypatch.setattr(pettingzoo, "make", lambda *_, **__: environment)
    with pytest.raises(PluginError, match="mine/countdown_v0 shows 30,000 numbers at a time") as caught:
        first(zoo)
    assert caught.value.at == ("env",)


def test_a_missing_package_of_an_environment_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "multi_agent_ale_py", None)
    with pytest.raises(SetupError, match="multi_agent_ale_py") as missing:
        first(ZOO(env="atari/pong_v3"))
    assert missing.value.hint == 'pip install "pettingzoo[atari]"'


def same_as_the_loop(task: EnvironmentTask, seed: int) -> None:
    rng, case = random.Random(seed), first(task)
    world, numbers = task.world(case, random.Random(0)), []
    while not world.over:
        agent = next(agent for agent in case.agents if world.reply(agent))
        action = rng.choice(world.reply(agent).options)  # type: ignore[union-attr]
        numbers.append(int(action))
        world = world.step({agent: action}, rng)
    assert list(world.facts()["returns"].values()) == list(loop(task.make, case.target, numbers).values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(5))
def test_returns_are_those_of_pettingzoos_loop(zoo: Any, seed: int) -> None:
    same_as_the_loop(zoo, seed)


CLASSIC = ["connect_four_v3", "rps_v2", "tictactoe_v3"]
CLASSIC += ["hanabi_v5", "leduc_holdem_v4", "texas_holdem_v4", "texas_holdem_no_limit_v6"]
LONG = ["chess_v6", "go_v5"]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:.*precision lowered")
@pytest.mark.parametrize("name", [*CLASSIC, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_classic_games_are_played_as_in_pettingzoos_loop(name: str) -> None:
    same_as_the_loop(ZOO(env=f"classic/{name}", instances=1), 1)


def test_mistakes_about_pettingzoo(zoo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError, match="has no turn-based environment 'classic/connect_four_v9'") as caught:
        ZOO(env="classic/connect_four_v9")
    assert "Did you mean classic/connect_four_v3" in (caught.value.hint or "") and caught.value.at == ("env",)
    with pytest.raises(PluginError, match="has 2 players, not 3"):
        first(ZOO(env="mine/countdown_v0", players=3))
    with pytest.raises(PluginError, match="unexpected keyword argument 'size'"):
        first(ZOO(env="mine/countdown_v0", options={"size": 3}))
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    task = ZOO(env="classic/connect_four_v3")
    assert check_world(task) == []  # specs can be checked without the package
    with pytest.raises(SetupError, match="needs the package pettingzoo") as missing:
        first(task)
    assert missing.value.hint == 'pip install "mas-eval-harness[pettingzoo]"'
