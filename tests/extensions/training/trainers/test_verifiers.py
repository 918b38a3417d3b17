"""Environments of `verifiers`, with the real package: an episode there is one of `harness eval`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.api import Completion
from harness.api.errors import SpecError
from harness.extensions.training import AgentConversation, Rewards, Rollout, TrainingEnv
from tests.docs.test_docs import blocks
from tests.helpers.commands import ROOT, TOY, invoke
from tests.helpers.fake_openai import Body, FakeOpenAI, chat, status
from tests.helpers.tiny_model import make_tokenizer

pytestmark = pytest.mark.trainers
SPECS = {"agentsnet_quick": 4, "dpbench_quick": 3, "silo_calls": 2, "networks/coloring": 3}
"""Spec → trainable agents that take part in an episode, at least."""
TEXTS = ["0", "1", "no idea", "<think>hm</think>2", '{"action": "wait"}', "Group 1", '{"final_answer": 3}', ""]


def reply(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] = ()) -> str | dict[str, Any]:
    """What the model says: it depends on the conversation alone."""
    number = zlib.crc32(json.dumps([[one["role"], one["content"]] for one in messages]).encode())
    if tools and number % 3:
        name = tools[number % len(tools)]["name"]
        function = {"name": name, "arguments": "{}"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call-{number}", "type": "function", "function": function}],
        }
    return TEXTS[number % len(TEXTS)] or "…"


def by_server(body: Body) -> Body:
    return chat(reply(body["messages"], [tool["function"] for tool in body.get("tools", ())]))


def by_trainer(messages: Any, tools: Any, sampling: Any, seat: Any) -> Completion:
    from harness.extensions.openai.wire import read_completion

    return read_completion(chat(reply(messages, tools)), 0.0, with_tools=bool(tools))


@contextlib.contextmanager
def installed(spec: Any, **more: Any) -> Iterator[str]:
    """The name of a package for `verifiers` that has this spec."""
    from harness.extensions.training.verifiers_env import SeatHarness, environment

    taskset, env = environment(spec, **more)
    module: Any = types.ModuleType(name := "an_environment")
    module.Tasks, module.Env, module.Seat, module.__all__ = taskset, env, SeatHarness, ["Tasks", "Env", "Seat"]
    sys.modules[name] = module
    try:
        yield name
    finally:
        del sys.modules[name]


def play(
    name: str,
    url: str,
    *,
    rows: slice = slice(1),
    samples: int = 1,
    client: Any = None,
    taskset: Mapping[str, Any] | None = None,
    **env: Any,
) -> list[Any]:
    """Episodes, as `vf-eval` and prime-rl play them."""
    import verifiers.v1 as vf

    async def all_of_them() -> list[Any]:
        loaded = vf.load_environment(vf.resolve_env_config({"taskset": {"id": name, **(taskset or {})}, **env}))
        context = vf.ModelContext(model="fake", client=client or vf.EvalClientConfig(base_url=url, api_key_var="NONE"))
        slots = [slot for task in [*loaded.taskset][rows] for slot in loaded.slots(task, samples)]
        async with loaded.serving():
            return await asyncio.gather(*(loaded.run_slot(slot, context) for slot in slots))

    return asyncio.run(all_of_them())


def said(messages: Sequence[Any]) -> list[Any]:
    """Roles, texts and calls of a conversation, of ours and of a trace."""

    def of(message: Any) -> tuple[Any, ...]:
        one = message if isinstance(message, dict) else message.model_dump()
        calls = [call.get("function", call) for call in one.get("tool_calls") or ()]
        return one["role"], one["content"] or "", [(call["name"], call["arguments"]) for call in calls]

    return [of(message) for message in messages]


def traces_of(episode: Any) -> dict[tuple[str, int], Any]:
    return {(trace.info["harness"]["agent"], trace.info["harness"]["conversation"]): trace for trace in episode.traces}


def ours(spec: str, generate: Callable[..., Any], rows: slice = slice(1), **more: Any) -> list[Rollout]:
    with TrainingEnv(spec, **more) as env:
        return env.rollouts(generate, env.tasks[rows])


def conversations(rollout: Rollout) -> dict[tuple[str, int], AgentConversation]:
    return {(one.agent, one.index): one for one in rollout.conversations}


@pytest.mark.parametrize("spec", SPECS)
def test_an_episode_there_is_the_episode_of_a_trainer_here(spec: str) -> None:
    here = ours(spec, by_trainer, limit=1)
    with installed(spec) as name, FakeOpenAI(by_server) as server:
        there = play(name, server.url, taskset={"limit": 1})
    for episode, rollout in zip(there, here, strict=True):
        assert episode.ok, episode.errors
        traces, expected = traces_of(episode), conversations(rollout)
        assert traces.keys() == expected.keys()
        for key, trace in traces.items():
            assert trace.agent.trainable and trace.agent.name == expected[key].group
            assert trace.rewards["episode"].score == expected[key].reward
            last = [node for node in trace.nodes if node.sampled][-1]
            path = [last]
            while path[-1].parent is not None:
                path.append(trace.nodes[path[-1].parent])
            assert said([*(one.message for one in path[:0:-1])]) == said(expected[key].messages[:-1])
            assert trace.num_turns == len(expected[key].replies)
            assert trace.metrics.items() <= {**rollout.score.numbers, **trace.metrics}.items()
    assert max(len({agent for agent, _ in traces_of(one)}) for one in there) >= SPECS[spec]


class Generator(FakeOpenAI):
    """Also answers in token ids, as the engine of a trainer does."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        super().__init__()
        make_tokenizer(folder)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def route(self, router: web.UrlDispatcher) -> None:
        super().route(router)
        router.add_post("/inference/v1/generate", self._generate)

    def write(self, prompt: Sequence[int]) -> tuple[list[int], list[float]]:
        """What the model generates behind a prompt: token ids with their log-probabilities."""
        text = TEXTS[zlib.crc32(bytes(i % 251 for i in prompt)) % 2]
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        return ids, [-(one % 7) / 8 - 0.125 for one in ids]

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        ids, logprobs = self.write((await request.json())["token_ids"])
        content = [{"token": f"token_id:{one}", "logprob": value} for one, value in zip(ids, logprobs, strict=True)]
        choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
        return web.json_response({"request_id": "r", "choices": [choice]})

    def complete(self, messages: Any, tools: Any, sampling: Any, seat: Any) -> Completion:
        """The same for a trainer here."""
        prompt = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        ids, logprobs = self.write(prompt)
        text = self.tokenizer.decode(ids[:-1])
        return Completion(text, prompt_token_ids=prompt, token_ids=ids, logprobs=logprobs)


async def served(name: str, client: Any, taskset: Mapping[str, Any]) -> Any:
    """The first episode, as prime-rl gets it from a server of environments."""
    import verifiers.v1 as vf
    from verifiers.v1.serve.client import EnvClient
    from verifiers.v1.serve.server import EnvServer

    config = vf.resolve_env_config({"taskset": {"id": name, **taskset}})
    [task, *_] = vf.load_taskset(config.taskset)
    server = EnvServer(config, "tcp://127.0.0.1:0")
    serving = asyncio.create_task(server.run())
    asking = EnvClient(server.address)
    try:
        return await asking.run(client, "fake", vf.SamplingConfig(), task.data.model_dump())
    finally:
        await asking.close()
        serving.cancel()
        await asyncio.wait([serving])


@pytest.mark.parametrize("spec", ["agentsnet_quick", "dpbench_quick"])
def test_traces_have_the_token_ids_that_a_trainer_here_gets(spec: str, tmp_path: Path) -> None:
    import verifiers.v1 as vf

    with installed(spec) as name, Generator(tmp_path) as server:
        client = vf.TrainClientConfig(base_url=server.url, api_key_var="NONE", renderer_model_name=str(tmp_path))
        episode = asyncio.run(served(name, client, {"limit": 1}))
        [rollout] = ours(spec, server.complete, limit=1)
    assert episode.ok, episode.errors
    assert len(episode.traces) == len(rollout.conversations) >= SPECS[spec]
    for key, trace in traces_of(episode).items():
        samples = conversations(rollout)[key].samples()
        branches = [branch for branch in trace.branches if branch.trainable]
        assert [branch.token_ids for branch in branches] == [one.token_ids for one in samples]
        assert [branch.sampled_mask for branch in branches] == [one.mask for one in samples]
        assert [branch.logprobs for branch in branches] == [pytest.approx(one.logprobs) for one in samples]
        assert trace.agent.trainable and trace.reward == samples[0].reward


class FirstTurns:
    """Pays each agent 2, and 0.5 for its first turn."""

    async def pay(self, played: Any) -> Rewards:
        """As `RewardRule.pay`."""
        return Rewards(dict.fromkeys(played.learners, 2.0), {(agent, 0): 0.5 for agent in played.learners})


def test_a_trace_is_paid_for_its_own_turns_too() -> None:
    import verifiers.v1 as vf

    with installed("dpbench_quick") as name, FakeOpenAI(by_server) as server:
        env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": name, "limit": 1}}))
        env.taskset.games.reward_rule = FirstTurns()
        context = vf.ModelContext(model="fake", client=vf.EvalClientConfig(base_url=server.url, api_key_var="NONE"))

        async def run() -> Any:
            async with env.serving():
                return await env.run_episode(next(iter(env.taskset)), context)

        traces = traces_of(asyncio.run(run()))
    assert max(index for _, index in traces) > 0  # each turn begins anew: a trace a turn
    for (_, index), trace in traces.items():
        assert trace.reward == (2.5 if index == 0 else 2.0)
        assert trace.info["harness"].get("turn_rewards") == ({"0": 0.5} if index == 0 else None)


def test_an_episode_that_comes_again_has_another_chance() -> None:
    """`verifiers` plays rollouts of a task independently, and says of none to which group or pass it belongs."""
    spec = {
        "name": "duel",
        "task": {"use": "openspiel", "game": "repeated_game(stage_game=matrix_rps(),num_repetitions=6)"},
        "protocol": {"use": "steps", "max_timesteps": 12},
        "prompts": "games/standard",
        "agents": {"default": "model", "rival": {"policy": "random", "agents": ["Player-1"]}},
        "metrics": ["score"],
    }
    with TrainingEnv(spec) as env:
        expected = [env.rollouts(by_trainer, env.tasks[:1], epoch=epoch)[0] for epoch in range(3)]
    with installed(spec, learn=["default"]) as name, FakeOpenAI(by_server) as server:
        there = play(name, server.url, samples=3)

    def shown(conversations: Any) -> set[str]:
        return {str(said(one.messages)) for one in conversations}

    seen = [shown(episode.traces) for episode in there]
    assert all(one != other for one, other in itertools.combinations(seen, 2))
    assert sorted(map(sorted, seen)) == sorted(sorted(shown(one.conversations)) for one in expected)


def test_samples_of_a_task_differ_by_the_model_alone_where_nothing_is_chance() -> None:
    with installed("agentsnet_quick") as name, FakeOpenAI(by_server) as server:
        one, two = play(name, server.url, samples=2)
    assert {key: said(trace.messages) for key, trace in traces_of(one).items()} == {
        key: said(trace.messages) for key, trace in traces_of(two).items()
    }
    assert not any("seed" in body for body in server.bodies)  # a server that heeds it would say the same each time


def test_a_batch_is_answered_side_by_side() -> None:
    with installed("agentsnet_quick") as name:
        waiting = asyncio.Event()
        arrived = 0

        async def all_four(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
            nonlocal arrived
            arrived += 1
            if arrived == 4:
                waiting.set()
            await waiting.wait()
            return web.json_response(chat("0"))

        with FakeOpenAI(by_server, script=[all_four] * 4) as server:
            [episode] = play(name, server.url)
    assert episode.ok and server.peak >= 4


def test_a_refused_request_is_a_move_that_fails_and_the_trace_goes_on_in_another() -> None:
    with installed("agentsnet_quick") as name, FakeOpenAI(by_server, script=[status(400, "too long")]) as server:
        [episode] = play(name, server.url)
    assert episode.ok
    assert {trace.metrics["engine_errors"] for trace in episode.traces} == {1.0}
    assert len(episode.traces) == 5
    assert len({trace.info["harness"]["agent"] for trace in episode.traces}) == 4


def test_a_server_that_fails_ends_the_episode_with_its_error() -> None:
    with (
        installed("agentsnet_quick") as name,
        FakeOpenAI(by_server, faults=lambda body: status(401, "no key")) as server,
    ):
        [episode] = play(name, server.url)
    assert not episode.ok
    assert episode.errors[-1].type == "ProviderError" and "no key" in episode.errors[-1].message
    assert not any(trace.ok or trace.rewards for trace in episode.traces)


def test_an_agents_limit_silences_it() -> None:
    with installed("agentsnet_quick") as name, FakeOpenAI(lambda body: chat("0")) as server:
        [episode] = play(name, server.url, default={"max_turns": 2})
    assert episode.ok
    assert {trace.stop_condition for trace in episode.traces} == {"max_turns"}
    assert {trace.num_turns for trace in episode.traces} == {2}


def test_groups_that_do_not_learn_are_players_of_the_spec() -> None:
    spec = "tiny"
    with TrainingEnv(spec, limit=1) as env:
        groups = env.learn
    assert len(groups) > 1
    with installed(spec, learn=["default"], opponents={"other": "random"}) as name, FakeOpenAI(by_server) as server:
        episodes = play(name, server.url, rows=slice(None), taskset={"limit": 1})
    assert all(episode.ok for episode in episodes), [episode.errors for episode in episodes]
    assert {trace.agent.name for episode in episodes for trace in episode.traces} == {"default"}


@pytest.mark.parametrize(
    ("arguments", "knobs", "message"),
    [
        pytest.param({"learn": ["defualt"]}, {}, "Did you mean default?", id="a group that there is not"),
        pytest.param({}, {"overrides": ["task.sise=4"]}, "sise", id="an override"),
        pytest.param({}, {"id": "an_environment", "spek": "x"}, "spek", id="a knob"),
        pytest.param({}, {"system_prompt": Path("best.txt")}, "change its prompt set", id="a system prompt"),
    ],
)
def test_mistakes_are_told_before_anything_is_played(
    arguments: dict[str, Any], knobs: dict[str, Any], message: str, tmp_path: Path
) -> None:
    knobs = {key: tmp_path / value if isinstance(value, Path) else value for key, value in knobs.items()}
    (tmp_path / "best.txt").write_text("Be good.")
    with FakeOpenAI(by_server) as server, pytest.raises((SpecError, ValueError), match=message):  # noqa: SIM117
        with installed("agentsnet_quick", **arguments) as name:
            play(name, server.url, taskset=knobs)
    assert not server.bodies


def test_overrides_of_a_package_stay_under_those_of_a_taskset() -> None:
    import verifiers.v1 as vf

    with installed("agentsnet_quick", overrides=["matrix.size=[4]", "task.source=seeded"]) as name:
        knobs = {"id": name, "overrides": ["matrix.problem=[consensus]"]}
        games = vf.load_environment(vf.resolve_env_config({"taskset": knobs})).taskset.games
    data = games.plan.spec.data
    assert (data["matrix"]["size"], data["matrix"]["problem"]) == ([4], ["consensus"])
    assert data["task"]["source"] == "seeded"


def test_conversations_end_in_their_order_and_all_of_them() -> None:
    from harness.extensions.training.verifiers_seats import Seats, _Conversation

    ended: list[int] = []

    async def play_seats() -> None:
        async with Seats(None, {}, None) as seats:
            for number in range(3):
                stack = contextlib.AsyncExitStack()
                stack.push_async_callback(end, number)
                seats._every.append(_Conversation("a", "g", number, stack, None))

    async def end(number: int) -> None:
        ended.append(number)
        if number == 0:
            raise OSError("the first does not close")

    with pytest.raises(OSError, match="does not close"):
        asyncio.run(play_seats())
    assert ended == [0, 1, 2]


def test_the_module_of_the_documentation_is_an_environment() -> None:
    import verifiers.v1 as vf

    module: Any = types.ModuleType("of_the_page")
    module.__file__ = __file__
    [body] = [body for note, body in blocks(ROOT / "docs" / "how-to" / "trainers.md", "python") if "verifiers" in note]
    exec(body, module.__dict__)
    sys.modules["of_the_page"] = module
    try:
        env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "of-the-page"}}))
    finally:
        del sys.modules["of_the_page"]
    assert len([*env.taskset]) > 10


def test_a_seat_is_played_by_the_program_of_its_package() -> None:
    with installed("agentsnet_quick") as name, pytest.raises(ValueError, match=r"default\.harness\.id is 'null'"):
        play(name, "http://127.0.0.1:1", default={"harness": {"id": "null"}})


def test_no_group_shadows_what_environments_have() -> None:
    from harness.extensions.training.new_environment import agent_names
    from harness.extensions.training.verifiers_env import SpecEnvConfig

    taken = [name for name in dir(SpecEnvConfig) if not name.startswith("_")] + [*SpecEnvConfig.model_fields]
    assert not set(agent_names(taken).values()) & set(taken)


def test_a_row_of_another_version_of_the_spec_is_not_played() -> None:
    import verifiers.v1 as vf

    with installed("agentsnet_quick") as name, FakeOpenAI(by_server) as server:
        env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": name}}))
        [task, *_] = env.taskset
        context = vf.ModelContext(model="fake", client=vf.EvalClientConfig(base_url=server.url, api_key_var="NONE"))

        async def run() -> Any:
            async with env.serving():
                return await env.run_episode(task.with_data(digest="0" * 16), context)

        episode = asyncio.run(run())
    assert "another version" in episode.errors[0].message and not server.bodies


def test_the_package_of_a_spec_is_installed_and_run_by_vf_eval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TOY, tmp_path / "mine", ignore=shutil.ignore_patterns("results", "__pycache__"))
    monkeypatch.chdir(tmp_path / "mine")
    code, _, err = invoke(capsys, "new", "environment", "toy", str(tmp_path / "toy-env"))
    assert code == 0, err
    site = tmp_path / "site"
    pip = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, *pip, str(tmp_path / "toy-env")], check=True, capture_output=True, cwd=tmp_path)
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "HOME": str(tmp_path)}
    with FakeOpenAI(by_server) as server:
        command = [str(Path(sys.executable).with_name("vf-eval")), "toy-env", "-n", "2", "-r", "2", "--model", "fake"]
        command += ["--client.base-url", server.url, "--client.api-key-var", "NONE", "--no-push", "--no-rich"]
        command += ["-o", str(tmp_path), "--run.dir", "run"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "traces.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in lines]
    assert len(episodes) == 4 and all(episode["ok"] for episode in episodes)
    assert all(trace["rewards"]["episode"] for episode in episodes for trace in episode["traces"])
    assert len(server.bodies) == sum(len(trace["calls"]) for episode in episodes for trace in episode["traces"])
