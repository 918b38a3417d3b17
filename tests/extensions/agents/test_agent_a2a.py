"""The engine `agent` with A2A agents, on the package's own server: what is sent, and what counts as the reply."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from a2a.helpers import new_text_artifact_update_event, new_text_part
from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    Part,
    Task,
    TaskState,
    TaskStatus,
)

import harness
from harness.api.errors import EngineFatalError, RefusedError, RequestError, SetupError
from harness.cli import main
from harness.extensions.agents.agent import Agent
from tests.helpers.a2a import Play, Played, app_of, card_of, free_port, says, served
from tests.helpers.agents import Talk
from tests.helpers.agents import using as using_agent

T = TypeVar("T")


def using(agent: Played, work: Callable[[Agent], Awaitable[T]], card: AgentCard | None = None, **fields: Any) -> T:
    """Serve an agent, start its engine, do the work."""
    with served(lambda url: app_of(agent, card or card_of(url))) as url:
        return using_agent(work, **{"a2a": url, "max_retries": 0, "backoff": 0.0, **fields})


async def task_of(context: RequestContext, queue: EventQueue) -> TaskUpdater:
    """A task for the message, which is begun unless it goes on."""
    assert context.task_id and context.context_id
    if context.current_task is None:
        state = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, status=state))
    return TaskUpdater(queue, context.task_id, context.context_id)


async def two(engine: Agent) -> tuple[str, str]:
    talk = Talk(engine)
    return await talk.say("one"), await talk.say("two")


@pytest.mark.parametrize("version", ["1.0", "0.3.0", ""])
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_a_conversation_is_one_context(version: str, binding: str, streaming: bool) -> None:
    agent = Played(says("yes"))

    def make(url: str) -> Any:
        one = AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        return app_of(
            agent, card_of(url, supported_interfaces=[one], capabilities=AgentCapabilities(streaming=streaming))
        )

    with served(make) as url:
        assert using_agent(two, a2a=url, max_retries=0) == ("yes", "yes")
    assert agent.heard == ["Be kind.\none", "two"]
    assert agent.messages[0].context_id == agent.messages[1].context_id != ""


def test_an_agent_hears_what_programs_hear_beside_the_messages() -> None:
    agent = Played(says("yes"))
    using(agent, two, args={"style": "kind"})
    facts = dict(agent.messages[1].metadata)
    assert facts["episode"] == "toy/c0/0" and facts["agent"] == "Ann" and facts["seed"] == "7" and facts["start"] == 3
    assert dict(facts["args"]) == {"style": "kind"} and dict(agent.messages[0].parts[0].metadata) == {"role": "system"}


async def _streams(context: RequestContext, queue: EventQueue) -> None:
    updater = await task_of(context, queue)
    await updater.start_work(updater.new_agent_message([new_text_part("thinking …")]))
    for text in ("The ans", "wer is 4", "."):
        await queue.enqueue_event(
            new_text_artifact_update_event(
                context.task_id or "",
                context.context_id or "",
                "reply",
                text,
                artifact_id="a",
                append=text != "The ans",
            )
        )
    await updater.add_artifact([Part(text="Surely."), Part(text="Really.")])
    await updater.complete(
        updater.new_agent_message([new_text_part("done")], metadata={"input_tokens": 3, "cost": 0.5})
    )


def test_a_streamed_task_is_joined_and_its_tokens_are_counted() -> None:
    answer = using(Played(_streams), lambda engine: Talk(engine).ask("2 + 2?"))
    assert answer.text == "The answer is 4.\nSurely.\nReally."
    assert (answer.input_tokens, answer.cost) == (3, 0.5)


async def _asks(context: RequestContext, queue: EventQueue) -> None:
    updater = await task_of(context, queue)
    if context.get_user_input().endswith("three"):
        await updater.add_artifact([Part(text="at last")])
        await updater.complete()
        return
    await updater.add_artifact([Part(text="notes")])
    await updater.requires_input(updater.new_agent_message([new_text_part(f"and then? {context.get_user_input()}")]))


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_a_task_that_asks_for_input_goes_on_with_the_next_turn(streaming: bool) -> None:
    agent = Played(_asks)

    async def work(engine: Agent) -> list[str]:
        talk = Talk(engine)
        return [await talk.say(text) for text in ("one", "two", "three", "four")]

    def make(url: str) -> Any:
        return app_of(agent, card_of(url, capabilities=AgentCapabilities(streaming=streaming)))

    with served(make) as url:
        answers = using_agent(work, a2a=url, max_retries=0)
    assert answers == ["and then? Be kind.\none", "and then? two", "at last", "and then? four"]
    tasks, contexts = [one.task_id for one in agent.messages], {one.context_id for one in agent.messages}
    assert tasks[0] == tasks[1] == tasks[2] != tasks[3] and len(contexts) == 1


def _ends(state: str, text: str = "no credit left") -> Play:
    async def play(context: RequestContext, queue: EventQueue) -> None:
        updater = await task_of(context, queue)
        await getattr(updater, state)(updater.new_agent_message([new_text_part(text)]))

    return play


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ("failed", RequestError, "the agent's task failed: no credit left"),
        ("cancel", RequestError, "was cancelled by the agent: no credit left"),
        ("reject", RefusedError, "the agent rejects the task: no credit left"),
        ("requires_auth", EngineFatalError, "asks for authorization: no credit left; name its key: api_key_env"),
    ],
)
def test_a_task_without_a_reply(state: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        using(Played(_ends(state)), lambda engine: Talk(engine).say("hi"))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Part(raw=b"x", media_type="image/png"), r"a reply is text, and the agent's has a file \(image/png\) in it"),
        (Part(url="http://127.0.0.1/x"), "has a file's address in it"),
        (Part(data={"number_value": 3}), "has data in it"),
        (Part(text="x" * 1_000_001), "at most 1,000,000 characters"),
    ],
)
def test_what_is_no_text_is_refused(part: Part, message: str) -> None:
    async def play(context: RequestContext, queue: EventQueue) -> None:
        updater = await task_of(context, queue)
        await updater.add_artifact([part])
        await updater.complete()

    with pytest.raises(RequestError, match=message):
        using(Played(play), lambda engine: Talk(engine).say("hi"))


def test_after_a_failure_the_agent_hears_the_whole_conversation_in_a_new_context() -> None:
    async def play(context: RequestContext, queue: EventQueue) -> None:
        await (_ends("failed") if "two" in context.get_user_input() and len(agent.heard) == 2 else says("yes"))(
            context, queue
        )

    agent = Played(play)

    async def work(engine: Agent) -> None:
        talk = Talk(engine)
        await talk.say("one")
        with pytest.raises(RequestError):
            await talk.say("two")
        await talk.say("three")

    using(agent, work)
    assert agent.heard[2] == (
        "Be kind.\nYou were asked:\n\none\nYou answered:\n\nyes\nYou were asked:\n\ntwo\nYou answered:\n\n\n"
        "Now you are asked:\n\nthree"
    )
    assert agent.messages[2].context_id != agent.messages[1].context_id


def test_an_agent_that_forgot_a_task_hears_the_whole_conversation() -> None:
    agent, other = Played(_asks), Played(says("yes"))

    async def work(engine: Agent) -> str:
        talk = Talk(engine)
        await talk.say("one")
        first.close()  # the server is started again: it knows no task
        with served(lambda url: app_of(other, card_of(url)), port=int(url.rpartition(":")[2])):
            return await talk.say("two")

    from contextlib import ExitStack

    with ExitStack() as first:
        url = first.enter_context(served(lambda url: app_of(agent, card_of(url))))
        assert using_agent(work, a2a=url, max_retries=2, backoff=0.0) == "yes"
    assert other.heard == [
        "Be kind.\nYou were asked:\n\none\nYou answered:\n\nand then? Be kind.\none\nNow you are asked:\n\ntwo"
    ]


def test_a_task_that_never_ends_is_cancelled() -> None:
    begun = threading.Event()

    async def play(context: RequestContext, queue: EventQueue) -> None:
        updater = await task_of(context, queue)
        await updater.start_work()
        begun.set()
        await asyncio.Event().wait()

    agent = Played(play)

    async def work(engine: Agent) -> str:
        with pytest.raises(RequestError) as caught:
            await Talk(engine).say("hi")
        while not agent.cancelled.is_set():
            await asyncio.sleep(0)
        return str(caught.value)

    assert "no whole answer within 0.3 s" in using(agent, work, timeout=0.3) and begun.is_set()


# ------------------------------------------------------------------------------ cards


def test_the_card_names_the_agent_in_tables_and_stands_in_run_json(tmp_path: Path) -> None:
    def make(url: str) -> Any:
        card = card_of(
            url, "Add\x1b[2Jer", description="d" * 9000, provider=AgentProvider(organization="Acme", url=url)
        )
        return app_of(Played(says("The answer is 4.")), card)

    with served(make) as url:
        run = harness.evaluate("arithmetic", Agent(a2a=url), limit=2, output_path=tmp_path)
    meta = json.loads((tmp_path / "run.json").read_text())
    assert meta["model"] == "Add\\x1b[2Jer" == run.scores[0].model and "\x1b" not in str(meta)
    card = meta["engines"]["model"]["agent"]
    assert card["organization"] == "Acme" and len(card["description"]) == 500 and len(card["sha256"]) == 64
    assert card["interfaces"][0] == {"transport": "JSONRPC", "version": "1.0", "url": url}
    assert harness.load_run(tmp_path).scores[0].model == meta["model"]


def test_a_run_goes_on_only_with_the_same_agent(tmp_path: Path) -> None:
    options: dict[str, Any] = {"limit": 4, "output_path": tmp_path}
    port = free_port()

    def play(version: str, name: str = "Adder", **more: Any) -> harness.Run:
        with served(lambda url: app_of(Played(says("The answer is 4.")), card_of(url, name, version)), port) as url:
            return harness.evaluate("arithmetic", Agent(a2a=url, max_retries=0), **options, **more)

    with pytest.raises(harness.RunStoppedError):
        play("1", max_calls=3)
    for other in (("2",), ("1", "Doubler")):
        with pytest.raises(SetupError, match=r"began with Adder 1, and this is .*\n  Start what it began with"):
            play(*other)
    assert {score.model for score in play("1").scores} == {"Adder"}


def test_a_run_is_verified_by_the_calls_that_the_agent_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(lambda url: app_of(Played(says("The answer is 4.")), card_of(url))) as url:
        harness.evaluate("arithmetic", Agent(a2a=url), limit=1, output_path=tmp_path)
    assert main(["verify", str(tmp_path)]) == 0 and "differs" not in capsys.readouterr().out


def test_a_finished_run_needs_no_agent(tmp_path: Path) -> None:
    with served(lambda url: app_of(Played(says("The answer is 4.")), card_of(url))) as url:
        harness.evaluate("arithmetic", Agent(a2a=url), limit=1, output_path=tmp_path)
    assert harness.evaluate("arithmetic", Agent(a2a=url), limit=1, output_path=tmp_path).meta["model"] == "Adder"


def test_two_agents_are_two_models_for_a_cache(tmp_path: Path) -> None:
    port = free_port()

    def heard(version: str, folder: str) -> int:
        agent = Played(says("The answer is 4."))
        with served(lambda url: app_of(agent, card_of(url, version=version)), port) as url:
            options: dict[str, Any] = {"output_path": tmp_path / folder, "use_cache": tmp_path / "cache"}
            harness.evaluate("arithmetic", Agent(a2a=url), limit=1, **options)
        return len(agent.heard)

    assert [heard("1", "a"), heard("1", "b"), heard("2", "c")] == [3, 0, 3]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": " "}, "has no name"),
        ({"supported_interfaces": []}, "it names no interface"),
        (
            {"supported_interfaces": [("http://198.51.100.7/", "JSONRPC", "1.0")]},
            r"JSONRPC at http://198\.51\.100\.7/ is another place",
        ),
        ({"supported_interfaces": [("http://localhost:1/", "JSONRPC", "1.0")]}, "is another place"),
        ({"supported_interfaces": [("{url}", "GRPC", "1.0")]}, "GRPC at .* is another transport"),
        ({"supported_interfaces": [("{url}", "JSONRPC", "2.0")]}, "is of version 2.0"),
        (
            {"capabilities": AgentCapabilities(extensions=[AgentExtension(uri="urn:pay", required=True)])},
            "requires urn:pay",
        ),
    ],
)
def test_a_card_that_cannot_be_used(fields: dict[str, Any], message: str) -> None:
    agent = Played(says("yes"))

    def make(url: str) -> Any:
        facts = dict(fields)
        if "supported_interfaces" in facts:
            facts["supported_interfaces"] = [
                AgentInterface(url=at.format(url=url), protocol_binding=binding, protocol_version=version)
                for at, binding, version in facts["supported_interfaces"]
            ]
        return app_of(agent, card_of(url, **facts))

    with served(make) as url, pytest.raises(SetupError, match=message):
        using_agent(lambda engine: Talk(engine).say("hi"), a2a=url)
    assert not agent.heard


def test_names_of_this_machine_are_one_place_and_an_address_may_be_that_of_the_card() -> None:
    agent = Played(says("yes"))
    with served(lambda url: app_of(agent, card_of(url.replace("127.0.0.1", "localhost")))) as url:
        for address in (url, f"{url}/", f"{url}/.well-known/agent-card.json", url.replace("127.0.0.1", "localhost")):
            assert using_agent(lambda engine: Talk(engine).say("hi"), a2a=address) == "yes"


def test_an_address_is_shown_and_recorded_without_secrets() -> None:
    for address, hint in (
        ("http://u:pw@localhost:9/", "no user and no password"),
        ("http://localhost:9/?k=v", "takes no query"),
    ):
        with pytest.raises(SetupError, match=hint):
            using_agent(lambda engine: Talk(engine).say("hi"), a2a=address)
    engine = Agent(a2a="http://u:pw@localhost:9/x?k=v", api_key_env="MY_KEY")
    needed = [one for one in engine.approvals() if one.digest]
    assert engine.model == "localhost:9/x" and "MY_KEY" in str(needed)
    assert "pw" not in f"{engine.describe()} {needed}" and "k=v" not in f"{engine.describe()} {needed}"
