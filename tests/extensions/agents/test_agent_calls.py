"""The engine `agent` with Python functions and classes: what they get, what they give, and whatever else they do."""

import asyncio
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import Request, Thread
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.extensions.agents.agent import Agent
from tests.helpers.agents import Talk, hung, using
from tests.helpers.commands import ROOT, invoke

Write = Callable[[str], str]
_names = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module of an agent into the working directory; returns its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def write(code: str) -> str:
        name = f"agent_of_a_test_{next(_names)}"
        (tmp_path / f"{name}.py").write_text(code)
        return name

    yield write
    for name in [name for name in sys.modules if name.startswith("agent_of_a_test_")]:
        del sys.modules[name]


def answers(call: str, *texts: str, **fields: Any) -> list[str]:
    """The agent's answers to messages of one conversation; of those that fail, the error."""

    async def work(engine: Agent) -> list[str]:
        talk = Talk(engine)
        results = []
        for text in texts:
            try:
                results.append(await talk.say(text))
            except RequestError as error:
                results.append(f"error: {error}")
        return results

    return using(work, call=call, **fields)


FORMS = """
import asyncio, functools
from harness.api import Completion

def plain(messages):
    return messages[-1]["content"].upper()

async def waiting(messages):
    await asyncio.sleep(0)
    return messages[-1]["content"].upper()

class Callable:
    def __call__(self, messages):
        return plain(messages)

thing = Callable()
partial = functools.partial(lambda suffix, messages: plain(messages), "")
coroutine = lambda messages: waiting(messages)

def mapping(messages):
    return {"text": plain(messages), "more": object()}

def completion(messages):
    return Completion(plain(messages))
"""


@pytest.mark.parametrize("name", ["plain", "waiting", "thing", "partial", "coroutine", "mapping", "completion"])
def test_whatever_can_be_called_with_the_messages_answers(module: Write, name: str) -> None:
    assert answers(f"{module(FORMS)}:{name}", "hi", "you") == ["HI", "YOU"]


def test_an_agent_gets_what_it_has_parameters_for_and_says_what_it_took(module: Write) -> None:
    name = module("""
def reply(messages, agent, seed, id, episode, conversation, sampling, constraint, style="-"):
    text = " ".join(map(str, (agent, seed, id, episode, conversation, sampling, constraint, style, len(messages))))
    messages.clear()
    return {"text": text, "input_tokens": 5, "output_tokens": 2.0, "cached_tokens": -1, "reasoning_tokens": "x",
            "cost": 0.25, "reasoning": "hm", "finish_reason": "stop"}
""")
    answer = using(
        lambda engine: Talk(engine).ask("hi", constraint={"choice": ["a"]}),
        call=f"{name}:reply",
        args={"style": "kind"},
    )
    assert answer.text == ("Ann 7 toy/c0/0/Ann/0/0 toy/c0/0 toy/c0/0/Ann/0 {'max_tokens': 9} {'choice': ['a']} kind 2")
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens) == (
        5,
        2,
        None,
        None,
    )
    assert (answer.cost, answer.reasoning, answer.finish_reason) == (0.25, "hm", "stop")
    assert answer.latency is not None and answer.latency > 0


GARBAGE = {
    "None": "found NoneType: None",
    "b'text'": "found bytes: b'text'",
    "5": "found int: 5",
    "{}": "a mapping with no keys",
    "{'output': 'x'}": "a mapping with output",
    "{'text': ['x']}": "found list",
    "'x' * 1_000_001": "at most 1,000,000 characters, found 1,000,001",
    "Strange()": "found Strange: what cannot be shown",
    "{1: 2}": "a mapping with no keys",
    "Odd()": "OSError: gone",
    "(i for i in 'x')": "found generator",
    "1 / 0": "ZeroDivisionError: division by zero",
    "sys.exit(3)": "SystemExit: 3",
    "raising(KeyboardInterrupt())": "KeyboardInterrupt",
    "raising(Silent())": "Silent: .its message fails: RuntimeError",
    "raising(RequestError('busy'))": "^error: busy$",
}
STRANGE = """
import sys
from collections.abc import Mapping
from harness.api.errors import RequestError

class Strange:
    def __repr__(self):
        raise RuntimeError

class Odd(Mapping):
    def __getitem__(self, key): raise OSError("gone")
    def __iter__(self): raise OSError("gone")
    def __len__(self): return 1

class Silent(Exception):
    def __str__(self):
        raise RuntimeError

def raising(error):
    raise error

def reply(messages):
    return eval(messages[-1]["content"])

async def waiting(messages):
    return eval(messages[-1]["content"])

class Object:
    def reply(self, message):
        return eval(message.splitlines()[-1])
"""


@pytest.mark.parametrize("name", ["reply", "waiting", "Object"])
def test_what_an_agent_does_wrong_is_a_failure_of_its_move(module: Write, name: str) -> None:
    call = f"{module(STRANGE)}:{name}"
    results = answers(call, *GARBAGE, "'well'")
    for expression, result, message in zip(GARBAGE, results, GARBAGE.values(), strict=False):
        assert result.startswith("error: "), expression
        assert re.search(message, result), (expression, result)
        if "Error:" in message or "Exit" in message or "Interrupt" in message:
            assert f"{call.partition(':')[0]}.py:" in result  # the line in the person's file
    assert results[-1] == "well"


def test_lone_surrogates_and_texts_of_their_own_classes_become_plain_text(module: Write) -> None:
    name = module("""
class Mine(str):
    def encode(self, *_): raise RuntimeError
    def __len__(self): return 10 ** 9

def reply(messages):
    return Mine("a\\ud800b")
""")
    [text] = answers(f"{name}:reply", "?")
    assert text == "a?b" and type(text) is str


HANGS = """
import asyncio, threading

heard = threading.Event()

def reply(messages):
    if messages[-1]["content"] == "hang":
        heard.set()
        threading.Event().wait()
    return "well"

async def waiting(messages):
    if messages[-1]["content"] == "hang":
        heard.set()
        await asyncio.Event().wait()
    return "well"

class Object:
    def reset(self, messages):
        self.heard = [m["content"] for m in messages]
    def reply(self, message):
        if message == "hang":
            heard.set()
            threading.Event().wait()
        return "/".join(self.heard) or "well"
"""


@pytest.mark.parametrize("name", ["reply", "waiting", "Object"])
def test_a_hang_ends_at_its_time_and_the_next_message_is_answered(module: Write, name: str) -> None:
    code = module(HANGS)

    async def work(engine: Agent) -> tuple[str, str]:
        talk = Talk(engine)
        return await hung(talk, "hang", lambda: sys.modules[code].heard.is_set()), await talk.say("go on")

    error, well = using(work, call=f"{code}:{name}")
    assert error == f"{code}:{name} gave no reply within 30 s"
    assert well == ("Be kind./hang/" if name == "Object" else "well")


def test_an_agent_that_blocks_the_loop_of_all_agents_ends_at_its_time_too(module: Write) -> None:
    call = (
        module("""
import threading
async def reply(messages):
    threading.Event().wait()
""")
        + ":reply"
    )
    [error] = answers(call, "hang", timeout=0.1)
    assert error.startswith(f"error: {call} gave no reply within 0.1 s: an agent blocks the event loop of all;")


def test_tasks_of_an_agents_own_may_exit_and_others_are_still_answered(module: Write) -> None:
    call = (
        module("""
import asyncio, sys
async def quit():
    sys.exit(1)
async def reply(messages):
    task = asyncio.create_task(quit())
    await asyncio.wait([task])
    return "still here"
""")
        + ":reply"
    )
    assert answers(call, "one", "two") == ["still here"] * 2


MEMORY = """
class Memory:
    def __init__(self):
        self.heard = []
    def reset(self, messages):
        self.heard = [m["content"] for m in messages]
    def reply(self, message):
        if message == "fail":
            raise ValueError(message)
        self.heard.append(message)
        answer = "|".join(self.heard)
        self.heard.append(f"<{len(self.heard)}>")
        return answer

class Plain(Memory):
    def reset(self):
        self.heard = ["again"]

class Without:
    def __init__(self):
        self.heard = []
    reply = Memory.reply

class Async(Memory):
    async def reset(self, messages):
        super().reset(messages)
    async def reply(self, message):
        return super().reply(message)
"""


@pytest.mark.parametrize("name", ["Memory", "Async"])
def test_a_class_keeps_a_conversation_and_is_brought_back_to_it(module: Write, name: str) -> None:
    results = answers(f"{module(MEMORY)}:{name}", "one", "two", "fail", "three")
    assert results[:2] == ["Be kind.|one", "Be kind.|one|<2>|two"]
    assert results[2].startswith("error: ")
    assert results[3] == f"Be kind.|one|{results[0]}|two|{results[1]}|fail||three"


def test_another_answer_than_its_own_makes_a_new_object(module: Write) -> None:
    async def work(engine: Agent) -> list[str]:
        talk = Talk(engine)
        first = await talk.say("one")
        talk.thread.add("user", "two")
        talk.thread.add("assistant", "from a cache")
        return [first, await talk.say("three")]

    assert using(work, call=f"{module(MEMORY)}:Memory")[1] == "Be kind.|one|Be kind.|one|two|from a cache|three"


@pytest.mark.parametrize(("name", "again"), [("Plain", "again|"), ("Without", "")])
def test_without_messages_for_reset_the_conversation_is_played_again(module: Write, name: str, again: str) -> None:
    async def work(engine: Agent) -> tuple[str, str, object]:
        talk = Talk(engine)
        live = [await talk.say("one"), await talk.say("two"), await talk.say("three")][-1]
        resumed = Talk(engine)  # another thread, with the same messages: as after a resume
        resumed.thread.messages = talk.thread.messages[:-2]
        return live, await resumed.say("three"), engine.report()

    live, resumed, report = using(work, call=f"{module(MEMORY)}:{name}")
    assert live == resumed == f"{again}Be kind.\n\none|<{1 + bool(again)}>|two|<{3 + bool(again)}>|three"
    assert report == {"objects": 2, "replayed": 2}


def test_two_hundred_seats_at_once(module: Write) -> None:
    async def work(engine: Agent) -> list[str]:
        talks = [Talk(engine, f"toy/c{i}/0") for i in range(200)]
        await asyncio.gather(*(talk.say(f"I am {i}") for i, talk in enumerate(talks)))
        return list(await asyncio.gather(*(talk.say("again") for talk in talks)))

    results = using(work, call=f"{module(MEMORY)}:Memory", concurrency=64)
    assert results == [f"Be kind.|I am {i}|<2>|again" for i in range(200)]


def test_no_more_calls_at_once_than_asked_for(module: Write) -> None:
    call = (
        module("""
import threading
lock, now, most = threading.Lock(), 0, 0
def reply(messages):
    global now, most
    with lock:
        now += 1
        most = max(most, now)
    with lock:
        now -= 1
    return str(most)
""")
        + ":reply"
    )

    async def work(engine: Agent) -> list[str]:
        return list(await asyncio.gather(*(Talk(engine, f"toy/c{i}/0").say("hi") for i in range(40))))

    assert max(map(int, using(work, call=call, concurrency=3))) <= 3


def test_what_an_agent_prints_is_in_the_log_and_nowhere_else(
    module: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = (
        module("""
import asyncio, sys
print("imported")
async def later():
    print("in a task")
def reply(messages):
    print("in a thread")
    sys.stderr.write("to standard error\\n")
    return later_and("well")
async def later_and(text):
    await asyncio.create_task(later())
    if text == "well":
        print(1 / 0)
""")
        + ":reply"
    )

    async def work(engine: Agent) -> None:
        with pytest.raises(RequestError, match="ZeroDivisionError"):
            await Talk(engine).say("hi")
        print("the harness itself")

    before = sys.stdout
    using(work, tmp_path / "engine.log", call=call)
    text = (tmp_path / "engine.log").read_text()
    for line in ("imported", "in a task", "in a thread", "to standard error", "Traceback (most recent call last):"):
        assert line in text
    assert capsys.readouterr().out == "the harness itself\n" and sys.stdout is before


@pytest.mark.slow
def test_what_hangs_does_not_keep_the_harness_from_exiting(module: Write) -> None:
    name = module("""
import asyncio, threading
async def reply(messages):
    await asyncio.to_thread(threading.Event().wait)
""")
    what = ["--spec", "arithmetic", "--limit", "1", "--set", "matrix.terms=[2]", "--output_path", "run"]
    model = ["--model", "agent", "--model_args", f"call={name}:reply,timeout=0.1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "harness", "eval", *what, *model]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "gave no reply within 0.1 s" in done.stderr and "Traceback" not in done.stderr


# ---------------------------------------------------------------------------------- what cannot be found

UNUSABLE = """
import os

class Bare: ...
class Answering:
    def reply(self, message): return message
shared = Answering()
number = 3
def reply(messages, style): return style
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("NAME:repyl", r"NAME\.py has no 'repyl'\n  Did you mean reply\?"),
        ("NAME_:reply", r"there is no module 'NAME_'\n  Did you mean NAME\?"),
        ("json.nothing:reply", r"there is no module 'json.nothing'"),
        ("NAME:Bare", r"the class Bare has no method `reply`"),
        ("NAME:shared", r"cannot be called, found Answering\n  .*name its class, Answering"),
        ("NAME:number", r"cannot be called, found int"),
        ("NAME", r"'NAME' names no function\n  Write module:name"),
        ("./NAME.py:reply", r"names no function"),
        ("NAME:", r"names no function"),
    ],
)
def test_a_callable_that_does_not_exist_is_an_error_that_teaches(module: Write, call: str, message: str) -> None:
    name = module(UNUSABLE)
    with pytest.raises(SetupError, match=message.replace("NAME", name)):
        answers(call.replace("NAME", name), "hi")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os\nimport no_such_package.part", r"No module named 'no_such_package' \(NAME\.py:2\)\n.*pip install"),
        ("x = 1\ny = x / 0", r"ZeroDivisionError: division by zero \(NAME\.py:2\)"),
        ("def f():\n  return (", r"SyntaxError: .* \(NAME\.py:2\)"),
        ("import sys\nsys.exit('bye')", r"SystemExit: bye \(NAME\.py:2\)"),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    module: Write, code: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = module(code)
    model = ("--model", "agent", "--model_args", f"call={name}:reply")
    code_, _, err = invoke(capsys, "eval", "--spec", "arithmetic", "--limit", "1", *model, "--output_path", "run")
    assert code_ == 2 and "Traceback" not in err
    assert re.search(message.replace("NAME", name), err), err


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs one of call, command, url and a2a, found none of them"),
        ({"call": "a:b", "url": "http://x"}, "found call and url"),
        ({"command": "x 'y"}, "No closing quotation\n  Close the quotation marks"),
        ({"url": "localhost:8000/reply"}, "is not an address\n  Write url=http://localhost:8000/reply"),
        ({"command": []}, "found none"),
        ({"command": [""]}, "names no program"),
    ],
)
def test_fields_that_do_not_fit(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        Agent(**fields)


@pytest.mark.parametrize("fields", [{"call": "a:b"}, {"command": "c d"}, {"url": "http://e/f"}])
def test_an_agent_can_be_sent_to_workers(fields: dict[str, Any]) -> None:
    assert pickle.loads(pickle.dumps(Agent(**fields))) == Agent(**fields)


def test_args_that_the_function_does_not_take(module: Write) -> None:
    with pytest.raises(SetupError, match=r"no parameter 'stile'.*\n  Did you mean style\?"):
        answers(f"{module(UNUSABLE)}:reply", "hi", args={"stile": 1})


def test_an_engine_that_is_not_started_is_fatal(module: Write) -> None:
    thread = Thread()
    thread.add("user", "hi")
    with pytest.raises(EngineFatalError):
        asyncio.run(Agent(call="a:b").complete(Request("t/c0/0/A/0/0", thread, {}, 1)))


def test_a_model_of_a_spec_has_a_seat_of_its_own_with_consent(
    module: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    name = module(FORMS)
    spec = {
        "extends": "arithmetic", "name": "mine", "matrix": {"terms": [2]},
        "models": {"own": {"use": "agent", "call": f"{name}:mapping", "label": "Adder"}},
        "agents": {"default": {"model": "own"}},
    }  # fmt: skip
    Path("mine.yaml").write_text(json.dumps(spec))
    command = ("eval", "--spec", "mine.yaml", "--limit", "2", "--quiet", "--output_path", "run")
    code, _, err = invoke(capsys, *command)
    assert code == 2 and re.search(rf"mine.yaml:1:\d+: not approved to run:\n    {name}:mapping.*, in no sandbox", err)
    assert invoke(capsys, *command, "--allow_code_execution")[0] == 0
    assert json.loads(Path("run/run.json").read_text())["engine_args"]["own"]["label"] == "Adder"


def test_another_agent_is_another_run(module: Write, capsys: pytest.CaptureFixture[str]) -> None:
    name = module("def reply(messages):\n    return '#### 1'\n")
    command = (
        "eval",
        "--spec",
        "arithmetic",
        "--limit",
        "1",
        "--set",
        "matrix.terms=[2]",
        "--quiet",
        "--model",
        "agent",
    )
    mine = (*command, "--model_args", f"call={name}:reply,label=adder", "--output_path", "run")
    assert invoke(capsys, *mine)[0] == 0
    assert invoke(capsys, *mine)[0] == 0  # the same one is finished
    Path(f"{name}.py").write_text("def reply(messages):\n    return '#### 2'\n")
    code, _, err = invoke(capsys, *mine)
    assert code == 2 and "different configuration" in err and "code:" in err
