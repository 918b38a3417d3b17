"""The engine `agent` with programs: their protocol, whatever they may do wrong, and that none is left over."""

import asyncio
import gc
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.extensions.agents.agent import Agent
from tests.helpers.agents import Talk, all_end, hung, lives, using

ROOT = Path(__file__).parents[3]
PYTHON = [sys.executable, "-I", "-S"]
PROGRAM = r"""
import json, os, signal, subprocess, sys, time

def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()

def child(*more):
    code = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(1000)"
    new = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, **dict(more))
    return int(new.stdout.readline())

turn = 0
for line in sys.stdin:
    turn += 1
    question = json.loads(line)
    words = question["messages"][-1]["content"].split()
    match words[0]:
        case "question": say(text=json.dumps({"pid": os.getpid(), "turn": turn, **question}))
        case "turn": say(text=str(turn))
        case "tokens": say(text="x", input_tokens=3, output_tokens=1, cost=0.5, id=question["id"])
        case "surrogate": sys.stdout.write('{"text": "a\\ud800b"}\n'); sys.stdout.flush()
        case "exit": sys.stderr.write("the reason\n"); sys.exit(3)
        case "raise": raise ValueError("my mistake")
        case "once": say(text="once"); sys.exit(0)
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "half": sys.stdout.write('{"text": "ha'); sys.exit(0)
        case "hang": open(__file__ + ".heard", "w").close(); time.sleep(1000)
        case "close": os.close(1); time.sleep(1000)
        case "garbage": sys.stdout.write("Hello!\n"); sys.stdout.flush()
        case "bytes": os.write(1, b'{"text": "\xff\xfe"}\n')
        case "null": say(text=None)
        case "number": say(text=5)
        case "list": sys.stdout.write("[1]\n"); sys.stdout.flush()
        case "deep": sys.stdout.write("[" * 100_000 + "\n"); sys.stdout.flush()
        case "error": say(error="no credit left")
        case "other": say(text="x", id="another")
        case "long": say(text="x" * 1_000_001)
        case "two": sys.stdout.write('{"text": "a"}\n{"text": "b"}\n'); sys.stdout.flush()
        case "flood":
            while True:
                os.write(1, b"x" * 65536)
        case "shout":
            for _ in range(300):
                os.write(2, b"x" * 65536)
            say(text="loud")
        case "children": say(text=json.dumps([child(), child(("start_new_session", True))]))
        case "leave": say(text=json.dumps([child()])); os._exit(0)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    return [*PYTHON, str(tmp_path / "program.py")]


def answers(command: list[str], *texts: str, **fields: Any) -> list[str]:
    """The program's answers to messages of one conversation; of those that fail, the error."""

    async def work(engine: Agent) -> list[str]:
        talk = Talk(engine)
        results = []
        for text in texts:
            try:
                results.append(await talk.say(text))
            except RequestError as error:
                results.append(f"error: {error}")
        return results

    return using(work, command=command, label="prog", **fields)


def test_a_process_is_kept_for_a_conversation_and_hears_what_is_new(command: list[str]) -> None:
    first, second = map(json.loads, answers(command, "question one", "question two", args={"style": "kind"}))
    assert first["pid"] == second["pid"] and second["turn"] == 2
    assert first["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "question one"}]
    assert second["messages"] == [{"role": "user", "content": "question two"}]
    assert (first["start"], second["start"]) == (0, 3)
    assert {key: second[key] for key in ("id", "agent", "episode", "conversation", "seed", "sampling", "args")} == {
        "id": "toy/c0/0/Ann/1/0", "agent": "Ann", "episode": "toy/c0/0", "conversation": "toy/c0/0/Ann/0", "seed": 7,
        "sampling": {"max_tokens": 9}, "args": {"style": "kind"},
    }  # fmt: skip


def test_one_that_has_ended_is_started_again_with_the_whole_conversation(command: list[str]) -> None:
    for ends in ("once", "exit"):
        _, again = answers(command, ends, "question two")
        question = json.loads(again)
        assert (question["turn"], question["start"], len(question["messages"])) == (1, 0, 4)


def test_tokens_cost_and_odd_characters(command: list[str]) -> None:
    answer = using(lambda engine: Talk(engine).ask("tokens"), command=command)
    assert (answer.input_tokens, answer.output_tokens, answer.cost) == (3, 1, 0.5)
    assert answers(command, "surrogate") == ["a?b"]


FAULTS = {
    "exit": r"prog ended with exit code 3 before it replied: the reason",
    "raise": r"prog ended with exit code 1 before it replied: ValueError: my mistake",
    "kill": r"prog was ended by SIGKILL before it replied",
    "half": r"prog ended with exit code 0 in the middle of a line",
    "close": r"prog closed its standard output before it replied",
    "garbage": r"prog: a reply is {\"text\": …}, found 'Hello!'; .* print everything else to standard error",
    "bytes": r"prog: a reply is .*, found",
    "null": r"prog: a reply must be text, found NoneType",
    "number": r"prog: a reply must be text, found int: 5",
    "list": r"prog: a reply is {\"text\": …}, found \[1\]",
    "deep": r"prog: a reply is .*, found '\[\[",
    "error": r"prog: the agent reports: no credit left",
    "other": r"prog: the reply has another id: 'another', not 'toy/c0/0/Ann/0/0'",
    "long": r"prog: a reply has at most 1,000,000 characters, found 1,000,001",
    "flood": r"prog: it wrote more than 8,000,000 bytes without the end of a line",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_program_does_wrong_is_a_failure_and_the_next_one_answers(command: list[str], fault: str) -> None:
    failure, after = answers(command, fault, "turn")
    assert re.fullmatch(f"error: {FAULTS[fault]}.*", failure), failure
    assert after == "1"  # of a new process


def test_a_line_too_many_is_not_taken_for_the_next_reply(command: list[str]) -> None:
    first, second, third = answers(command, "two", "turn", "turn")
    assert first == "a" and third == "1"
    assert second.startswith('error: prog: it wrote more than a line for its last reply: \'{"text": "b"}\'')


def test_a_hang_ends_at_its_time_and_its_process_with_it(command: list[str]) -> None:
    async def work(engine: Agent) -> tuple[str, str, str]:
        talk = Talk(engine)
        question = await talk.say("question")
        return question, await hung(talk, "hang", Path(f"{command[-1]}.heard").exists), await talk.say("turn")

    question, error, after = using(work, command=command, label="prog")
    assert error == "prog gave no reply within 30 s" and after == "1"
    assert all_end([json.loads(question)["pid"]])


@pytest.mark.slow
def test_standard_error_is_in_the_log_and_bounded(command: list[str], tmp_path: Path) -> None:
    async def work(engine: Agent) -> str:
        with pytest.raises(RequestError):
            await Talk(engine).say("exit")
        return await Talk(engine).say("shout")

    assert using(work, tmp_path / "engine.log", command=command) == "loud"
    text = (tmp_path / "engine.log").read_text()
    assert re.search(r"^\[Ann \d+\] the reason$", text, re.MULTILINE)
    assert len(text) < 10_100_000 and "the rest is left out" in text


# ---------------------------------------------------------------------------------- how many, and for how long


def test_a_process_ends_with_its_conversation(command: list[str]) -> None:
    async def work(engine: Agent) -> int:
        talk = Talk(engine)
        pid = int(json.loads(await talk.say("question"))["pid"])
        del talk
        gc.collect()
        while lives(pid):
            await asyncio.sleep(0)
        return await Talk(engine).say("turn") == "1"

    assert using(work, command=command)


@pytest.mark.slow
def test_no_more_processes_than_asked_for_and_each_conversation_goes_on(command: list[str]) -> None:
    async def work(engine: Agent) -> tuple[list[dict[str, Any]], Any]:
        talks = [Talk(engine, f"toy/c{i}/0") for i in range(6)]
        rows = []
        for _ in range(2):
            rows += await asyncio.gather(*(talk.say("question") for talk in talks))
            pids = {json.loads(row)["pid"] for row in rows}
            assert sum(map(lives, pids)) <= 2
        return list(map(json.loads, rows)), engine.report()

    with pytest.warns(UserWarning, match=r"ended to make room.*concurrency=2 is less than an episode's agents"):
        rows, report = using(work, command=command, concurrency=2)
    assert len(rows) == 12 and report["processes"] + sum(row["start"] > 0 for row in rows) == 12
    assert report["ended_for_room"] == report["processes"] - 2
    assert all(len(row["messages"]) in ((2,) if i < 6 else (1, 4)) for i, row in enumerate(rows))


@pytest.mark.slow
def test_conversations_keep_their_processes_while_others_wait(command: list[str]) -> None:
    async def lead(engine: Agent, i: int) -> list[str]:
        talk = Talk(engine, f"toy/c{i}/0")
        return [await talk.say("turn") for _ in range(3)]

    async def work(engine: Agent) -> tuple[list[list[str]], Any]:
        return await asyncio.gather(*(lead(engine, i) for i in range(12))), engine.report()

    turns, report = using(work, command=command, concurrency=3)
    assert turns == [["1", "2", "3"]] * 12
    assert report == {"processes": 12, "restarted": 0, "ended_for_room": 0}


def test_two_hundred_seats_share_processes_that_keep_nothing(command: list[str]) -> None:
    async def work(engine: Agent) -> tuple[list[str], Any]:
        talks = [Talk(engine, f"toy/c{i}/0") for i in range(200)]
        await asyncio.gather(*(talk.say("turn") for talk in talks))
        return list(await asyncio.gather(*(talk.say("question") for talk in talks))), engine.report()

    rows, report = using(work, command=command, concurrency=4, history=True)
    assert [json.loads(row)["episode"] for row in rows] == [f"toy/c{i}/0" for i in range(200)]
    assert all(json.loads(row)["start"] == 0 and len(json.loads(row)["messages"]) == 4 for row in rows)
    assert report["processes"] <= 4


def test_what_an_agent_has_started_ends_with_the_run(command: list[str]) -> None:
    async def work(engine: Agent) -> list[int]:
        return [int(pid) for pid in json.loads(await Talk(engine).say("children"))]

    assert all_end(using(work, command=command))


def test_what_an_agent_left_in_its_group_ends_with_it(command: list[str]) -> None:
    async def work(engine: Agent) -> None:
        [pid] = json.loads(await Talk(engine).say("leave"))
        while lives(pid):
            await asyncio.sleep(0)

    using(work, command=command)


OWNER = """
import asyncio, json, os, signal, sys
from tests.helpers.agents import Talk, using

async def work(engine):
    talk = Talk(engine)
    own = json.loads(await talk.say("question"))["pid"]
    print(json.dumps([own, *json.loads(await talk.say("children"))]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

using(work, command=sys.argv[1:])
"""


def test_nothing_is_left_when_the_harness_is_killed(command: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    owner = [sys.executable, "-c", OWNER, *command]
    done = subprocess.run(owner, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = json.loads(done.stdout)
    assert len(pids) == 3 and all_end(pids)


# ---------------------------------------------------------------------------------- what cannot be started


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("./progam.py", r"there is no such file\n  Did you mean \./program\.py"),
        ("program.py", r"no such program on the PATH\n  A file of this folder needs \./ before it"),
        ("./program.py", r"may not be executed\n  Make it executable \(chmod \+x \./program\.py\)"),
        ("no_such_program", r"no such program on the PATH\n  Install it"),
    ],
)
def test_a_program_that_is_not_there_is_an_error_that_teaches(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=message):
        using(lambda engine: Talk(engine).say("hi"), command=words)


@pytest.mark.parametrize(
    ("how", "says"), [("command", "no such program on the PATH"), ("call", "no module 'nonesuch'")]
)
def test_a_run_without_its_agent_leaves_no_folder(tmp_path: Path, how: str, says: str) -> None:
    engine = {"command": "nonesuch"} if how == "command" else {"call": "nonesuch:reply"}
    with pytest.raises(SetupError, match=says):
        evaluate("agentsnet_quick", "agent", model_args=engine, output_path=tmp_path / "run", allow_code_execution=True)
    assert not (tmp_path / "run").exists()


def test_a_file_without_an_interpreter_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("hello")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(EngineFatalError, match="names no interpreter"):
        using(lambda engine: Talk(engine).say("hi"), command=[str(tmp_path / "odd")])
