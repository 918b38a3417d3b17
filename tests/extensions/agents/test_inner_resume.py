"""Agents with a model of the run, whose harness is killed again and again: they go on exactly, and nothing that was
answered is asked twice."""

import itertools
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import storage
from harness.storage.inner_calls import InnerCallIndex
from tests.helpers.toy import TOY, results

ROOT = Path(__file__).parents[3]
CALLS = 10
AGENT = '''
"""Ten calls of its model a turn, six of them at the same time; its reply depends on all that it ever heard."""

import http.client, json, os, sys, zlib
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

LOG = os.environ["TRACE"]


def note(what):
    with open(LOG, "a") as file:
        file.write(what + "\\n")


class Model:
    def __init__(self, base_url, api_key, model):
        self.at, self.key, self.model = urlsplit(base_url), api_key, model

    def ask(self, text):
        connection = http.client.HTTPConnection(self.at.hostname, self.at.port)
        body = json.dumps({"model": self.model, "messages": [{"role": "user", "content": text}]})
        headers = {"Authorization": "Bearer " + self.key, "Content-Type": "application/json"}
        connection.request("POST", self.at.path + "/chat/completions", body, headers)
        answer = connection.getresponse()
        found = json.load(answer)
        connection.close()
        if answer.status == 503:  # the run has ended
            raise OSError("gone")
        note("GOT " + text)
        return found["choices"][0]["message"]["content"] if answer.status == 200 else "refused"


def turn(model, where, heard):
    said = ""
    for i in range(4):
        said += model.ask(f"{where}/{i} {zlib.crc32((heard + said).encode())}")
    at_once = [f"{where}/{i} {zlib.crc32((heard + said).encode())}" for i in range(4, 10)]
    with ThreadPoolExecutor(6) as threads:
        said += "".join(threads.map(model.ask, at_once))
    return said, "ab?"[zlib.crc32((heard + said).encode()) % 3]


class Walker:
    """Remembers what it heard. It has no `reset`: it is sent its earlier turns again."""

    def __init__(self, base_url, api_key, model, episode, agent):
        self.model, self.where = Model(base_url, api_key, model), f"{episode}/{agent}"
        self.heard, self.turns = "", 0

    def reply(self, message):
        self.heard += message
        said, answer = turn(self.model, f"{self.where}/{self.turns}", self.heard)
        self.heard += said + answer
        self.turns += 1
        return answer


def reply(messages, base_url, api_key, model, id):
    return turn(Model(base_url, api_key, model), id, json.dumps(messages))[1]


if __name__ == "__main__":
    model = Model(os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"], os.environ["OPENAI_MODEL"])
    heard = ""
    for line in sys.stdin:
        question = json.loads(line)
        heard = "".join(m["content"] for m in question["messages"]) if not question["start"] else heard
        print(json.dumps({"text": turn(model, question["id"], json.dumps(question["messages"][-1]))[1]}), flush=True)
'''
ENGINE = '''
"""Answers by chance, and notes what it is asked."""

import asyncio, os
from harness.api import Completion, ContextLengthError, Engine, plugin


@plugin
class Teller(Engine):
    """Answers by chance, from the seed of the request."""

    @property
    def model(self):
        return "teller"

    async def complete(self, request):
        with open(os.environ["TRACE"], "a") as file:
            file.write("ASK " + request.thread.messages[-1]["content"] + "\\n")
        await asyncio.sleep(request.seed % 5 / 1000)
        if request.seed % 11 == 3:
            raise ContextLengthError("too long for me")
        return Completion(f"{request.seed % 1000}", input_tokens=10, output_tokens=2)
'''
FORMS = {
    "class": "call=walker:Walker",
    "function": "call=walker:reply",
    "command": f"command={sys.executable} -I walker.py",
}


def start(folder: Path, form: str) -> subprocess.Popen[str]:
    """The command line of a run in a process of its own; its results are in `run` there."""
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "agent",
               "--model_args", f"{FORMS[form]},label=walker,inner=teller", "--output_path", "run", "--quiet",
               "--max_concurrency", "4", "--set", "protocol.rounds=4", "--set", "task.cases_made=3"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACE": str(folder / "trace")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def prepared(folder: Path) -> Path:
    (folder / "registry" / "engines").mkdir(parents=True)
    (folder / "registry" / "engines" / "teller.py").write_text(ENGINE)
    (folder / "walker.py").write_text(AGENT)
    (folder / "harness.yaml").write_text(f"parents: [{TOY.root}]\n")
    (folder / "trace").touch()
    return folder


def killed(folder: Path, form: str, kills: int, seed: int) -> int:
    """Play a run to its end, killed at most so often, each time after a random number of calls; returns how often."""
    chance, trace = random.Random(seed), folder / "trace"
    for kill in itertools.count():
        process, more = start(folder, form), chance.randrange(2, 40)
        goal = len(trace.read_bytes().splitlines()) + more
        while kill < kills and process.poll() is None:
            if len(trace.read_bytes().splitlines()) >= goal:
                process.send_signal(signal.SIGKILL)
                break
            try:
                process.wait(0.002 + 0.01 * chance.random())
            except subprocess.TimeoutExpired:
                continue
        _, errors = process.communicate(timeout=120)
        if process.returncode == 0:
            return kill
        assert process.returncode == -signal.SIGKILL, errors
    raise AssertionError("unreachable")


def moves(folder: Path) -> dict[object, object]:
    """What the moves say, but for times."""
    found: dict[object, object] = {}
    for _, line in storage.lines(folder / "run" / storage.JOURNAL):
        if line["k"] == "move":
            calls = [{**call, "latency": None} for call in line.get("calls", ())]
            inner = {name: value for name, value in line["inner"].items() if name != "seconds"}
            found[line["e"], line["s"], line["i"]] = line.get("a"), line.get("error"), calls, inner
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("form", "kills"), [("command", 50), ("class", 12), ("function", 12)])
def test_killed_at_any_moment_it_goes_on_exactly(tmp_path: Path, form: str, kills: int) -> None:
    calm, wild = prepared(tmp_path / "calm"), prepared(tmp_path / "wild")
    process = start(calm, form)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert killed(wild, form, kills, seed=4) > kills / 2
    assert results(wild / "run") == results(calm / "run")
    assert moves(wild) == moves(calm)

    asked, got, in_flight = {}, set(), 0
    for line in (wild / "trace").read_text().splitlines():
        what, text = line.split(" ", 1)
        if what == "ASK":
            assert text not in got, f"answered, and asked again: {text}"
            in_flight += text in asked
            asked[text] = True
        else:
            got.add(text)
    calm_asked = [line for line in (calm / "trace").read_text().splitlines() if line.startswith("ASK")]
    assert len(calm_asked) == len({*calm_asked}) == len(asked)  # once each
    assert in_flight <= kills * 4 * 6  # what was under way at a kill, and had no answer
    index = InnerCallIndex([wild / "run" / storage.JOURNAL])
    calls = [call for episode in index.episodes() for call in index.of(episode)]
    assert len(calls) == len(calm_asked) and not any(call.is_dropped for call in calls)
    assert max(call.start for call in calls) >= 1
