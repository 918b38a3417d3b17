"""Agents with a model of the run: a project whose engine notes what it is asked, and runs in it."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import harness
from harness import storage
from harness.config.project import find
from tests.helpers.toy import TOY

ENGINE = '''
"""Says what it is asked last, and notes it."""

from pathlib import Path

from harness.api import CallsTools, Completion, ContextLengthError, ContinuesText, Engine, RequestError, plugin


@plugin
class Parrot(Engine, CallsTools, ContinuesText):
    """Says the last word that it is asked."""

    incidental = frozenset({"log"})
    log: str
    api_key: str = ""

    @property
    def model(self):
        return "parrot"

    async def complete(self, request):
        text = request.thread.messages[-1]["content"]
        with Path(self.log).open("a") as file:
            file.write(text + "\\n")
        if text == "fail":
            raise RequestError("the parrot is asleep")
        if text == "too long":
            raise ContextLengthError("the parrot forgets")
        return Completion(text.split()[-1], input_tokens=len(text.split()), output_tokens=1)
'''
CLIENT = '''
import http.client, json, os, sys, threading
from urllib.parse import urlsplit


def call(text, base=None, key=None, **more):
    """(status, JSON) of a call of the model."""
    at = urlsplit(base or os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(at.hostname, at.port)
    model = more.pop("model", None) or os.environ["OPENAI_MODEL"]
    path = more.pop("path", "/chat/completions")
    asked = {"prompt": text} if path == "/completions" else {"messages": [{"role": "user", "content": text}]}
    body = {"model": model, **asked}
    headers = {"Authorization": "Bearer " + (key or os.environ["OPENAI_API_KEY"]), "Content-Type": "application/json"}
    connection.request("POST", at.path + path, json.dumps({**body, **more}), headers)
    answer = connection.getresponse()
    found = answer.status, json.load(answer)
    connection.close()
    return found


def ask(text, **more):
    return call(text, **more)[1]["choices"][0]["message"]["content"]


def note(name, *facts):
    with open(name, "a") as file:
        file.write(json.dumps(facts) + chr(10))


def say(**facts):
    print(json.dumps(facts), flush=True)
'''
LINES = (
    CLIENT
    + """
for line in sys.stdin:
    question = json.loads(line)
    args = question.get("args", {})
"""
)
MODULE = (
    CLIENT
    + """

class Thinker:
    def __init__(self, base_url, api_key):
        self.at, self.heard = (base_url, api_key), 0

    def reply(self, message, model):
        self.heard += 1
        return ask(f"turn {self.heard} a", base=self.at[0], key=self.at[1], model=model)


async def function(messages, base_url, api_key, model, anthropic_base_url, word):
    assert anthropic_base_url + "/v1" == base_url
    return ask(f"say {word}", base=base_url, key=api_key, model=model)
"""
)


class Place:
    """A project in a folder, with an engine `parrot`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "asked"
        (folder / "registry" / "engines").mkdir(parents=True)
        (folder / "registry" / "engines" / "parrot.py").write_text(ENGINE)
        (folder / "harness.yaml").write_text(f"parents: [{TOY.root}]\n")
        self.log.touch()
        self.project = find(folder)

    @property
    def asked(self) -> list[str]:
        """What the parrot was asked, in order."""
        return self.log.read_text().splitlines()

    @property
    def parrot(self) -> dict[str, Any]:
        """The engine, as specs name it."""
        return {"use": "parrot", "log": str(self.log)}

    def program(self, body: str) -> list[str]:
        """The command of a program whose loop over questions has this body."""
        file = self.folder / "program.py"
        lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
        file.write_text(f"{LINES}{lines}\n")
        return [sys.executable, "-I", "-S", str(file)]

    def play(self, agent: Mapping[str, Any], name: str = "run", rounds: int = 1, **options: Any) -> harness.Run:
        """A run of one case with two agents of this kind."""
        task = {"use": "pick", "agents": "${agents}", "cases_made": 1}
        played = {"task": task, "protocol": {"use": "rounds", "rounds": rounds}}
        spec = {"extends": "toy", "matrix": {"agents": [2]}, "tables": [], **played}
        return harness.evaluate(
            spec, "agent", model_args={"inner": self.parrot, **agent}, project=self.project,
            output_path=self.folder / name, **options,
        )  # fmt: skip

    def lines(self, *kinds: str, name: str = "run") -> list[Any]:
        """The lines of these kinds in the journal."""
        every = storage.lines(self.folder / name / storage.JOURNAL)
        return [line for _, line in every if line["k"] in kinds]

    def notes(self, name: str) -> Iterator[Any]:
        """What programs have noted in a file."""
        return map(json.loads, (self.folder / name).read_text().splitlines())
