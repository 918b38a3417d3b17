"""The engine `agent` with interface=prompt: what a command gets in a turn, where its reply is, how it may fail."""

import contextlib
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import evaluate
from harness.api.errors import RequestError, SetupError
from harness.extensions.agents import _prompt_reply
from harness.extensions.agents._seat_folders import SeatFolder
from harness.extensions.agents.agent import Agent
from tests.helpers.agents import Talk, all_end, hung, using

NOBODY = 65534
PYTHON = [sys.executable, "-I", "-S"]
PROGRAM = r"""
import json, os, pathlib, signal, subprocess, sys, time

given, arguments = sys.stdin.read(), sys.argv[1:]
prompt = given or arguments[-1]
notes = pathlib.Path("notes")
with notes.open("a") as file:
    file.write("x")
word, _, rest = prompt.rpartition("\n")[2].partition(" ")

def child(**more):
    code = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(1000)"
    new = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, **more)
    return int(new.stdout.readline())

match word:
    case "question":
        home = [os.path.relpath(path, "..") for path in pathlib.Path("..").rglob("*")]
        facts = {"given": given, "arguments": arguments, "turns": len(notes.read_text()), "variables": dict(os.environ)}
        print(json.dumps({**facts, "home": home, "folder": os.getcwd(), "pid": os.getpid()}))
    case "arguments": print(json.dumps(arguments))
    case "file": pathlib.Path("answer.json").write_text(rest)
    case "silent": pass
    case "exit": sys.stderr.write("first\nthe \x1b[31mreason\n"); sys.exit(3)
    case "mute": print("what went wrong"); sys.exit(1)
    case "kill": os.kill(os.getpid(), signal.SIGKILL)
    case "bytes": os.write(1, b"\xff\xfe\n")
    case "long": print("x" * 1_000_001)
    case "flood":
        while True:
            os.write(1, b"x" * 65536)
    case "hang": pathlib.Path(rest).write_text(f"{child()} {os.getpid()}"); time.sleep(1000)
    case "leave": print(child(stdin=subprocess.DEVNULL)); sys.stdout.flush(); os._exit(0)
    case "remove": import shutil; shutil.rmtree(os.getcwd()); print("gone")
    case "link": os.rename("../work", "../old"); os.symlink(rest, "../work")
    case "prompt": os.unlink("../prompt.txt"); os.symlink(rest, "../prompt.txt"); print("linked")
    case "answer": os.symlink(rest, "answer.json")
    case "pipe": os.mkfifo("answer.json")
    case _: print(f"heard: {prompt}")
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

    return using(work, command=command, label="prog", interface="prompt", **fields)


def test_each_turn_is_a_process_in_the_seats_folder_that_gets_the_whole_conversation(command: list[str]) -> None:
    first, second = map(json.loads, answers(command, "question one", "question two"))
    assert first["given"] == "Be kind.\n\nquestion one"
    begin, reply, last = second["given"].split("\n\n=== ")[0], "You replied ===\n{", "You were sent ===\nquestion two"
    assert begin == "Be kind." and reply in second["given"] and second["given"].endswith(last)
    assert (first["turns"], second["turns"]) == (1, 2) and first["folder"] == second["folder"] != str(Path.cwd())
    assert first["pid"] != second["pid"] and first["arguments"] == second["arguments"] == []
    assert not Path(first["folder"]).exists()  # the run is over


def test_a_folder_goes_with_its_conversation_and_another_one_of_its_name_stays(command: list[str]) -> None:
    async def work(engine: Agent) -> tuple[int, bool]:
        first, again = Talk(engine), Talk(engine)  # as where an episode is begun anew
        one, two = json.loads(await first.say("question")), json.loads(await again.say("question"))
        assert one["folder"] == two["folder"] and two["turns"] == 1
        del first
        gc.collect()
        there = json.loads(await again.say("question"))
        del again
        gc.collect()
        return there["turns"], Path(there["folder"]).exists()

    assert using(work, command=command, interface="prompt") == (2, False)


def test_a_continue_command_hears_only_what_is_new_and_after_a_failure_all_of_it(command: list[str]) -> None:
    heard = answers(command, "one", "two", "exit", "four", "five", continue_command=[*command, "--continue"])
    assert heard[:2] == ["heard: Be kind.\n\none", "heard: two"] and heard[2].startswith("error: ")
    assert heard[3].startswith("heard: Be kind.") and "=== You replied ===\nheard: two" in heard[3]
    assert heard[4] == "heard: five"
    [_, later] = answers(command, "one", "question", continue_command=[*command, "--continue"])
    assert json.loads(later)["arguments"] == ["--continue"]


def test_the_prompt_stands_in_an_argument_or_a_file(command: list[str]) -> None:
    [text] = answers([*command, "--ask={prompt}"], "arguments a\0b\ud800 $HOME {prompt_file} `date` {prompt}")
    assert json.loads(text) == ["--ask=Be kind.\n\narguments a\ufffdb? $HOME {prompt_file} `date` {prompt}"]
    handed = answers(["sh", "-c", 'echo "$1"', "sh", "{prompt}"], "$(id) `id`; id")
    assert handed == ["Be kind.\n\n$(id) `id`; id"]
    reader = "import sys; assert not sys.stdin.read(); print(open(sys.argv[1]).read())"
    long = "x" * 200_000
    assert answers([*PYTHON, "-c", reader, "{prompt_file}"], long) == [f"Be kind.\n\n{long}"]
    assert answers(command, long) == [f"heard: Be kind.\n\n{long}"]
    [error] = answers([*command, "{prompt}"], long)
    assert "holds at most 131,071 bytes, the prompt makes it 200,010" in error and "{prompt_file}" in error


@pytest.mark.parametrize(
    ("reply", "written", "expected"),
    [
        ("answer.json", "  forty-two\n", "forty-two"),
        ("answer.json#/a/1/b~1c", '{"a": [0, {"b/c": "forty-two"}]}', "forty-two"),
        ("answer.json#/a", '{"a": {"b": 1}}', '{"b": 1}'),
        ("answer.json#/a/b", '{"a": 1}', "error: prog: answer.json has nothing at /a/b: there is no 'b'"),
        ("answer.json#/7", "[1]", "error: prog: answer.json has nothing at /7: there is no '7'"),
        ("answer.json#/x", "[" * 100_000, "error: prog: answer.json is not JSON: '[[[[.*"),
        ("answer.json", "x" * 8_000_001, "error: prog: answer.json has more than 8,000,000 bytes"),
    ],
)
def test_the_reply_is_a_file_or_a_part_of_it(command: list[str], reply: str, written: str, expected: str) -> None:
    writer = [*PYTHON, "-c", "import sys; open('answer.json', 'w').write(sys.stdin.read().partition('\\n\\n')[2])"]
    [found] = answers(writer, written, reply=reply)
    assert found == expected or re.fullmatch(re.escape(expected).replace(r"\.\*", ".*"), found)


def test_a_reply_is_never_that_of_an_earlier_turn(command: list[str]) -> None:
    assert answers(command, "file 42", "silent", reply="answer.json")[1] == "error: prog: it wrote no file answer.json"
    [error] = answers(command, '{"result": "x"}', reply="#/result")
    assert error.startswith("error: prog: its standard output is not JSON: 'heard: Be kind.")


FAULTS = {
    "exit": r"prog ended with exit code 3: first \| the \[31mreason",
    "mute": r"prog ended with exit code 1: what went wrong",
    "kill": r"prog was ended by SIGKILL",
    "long": r"prog: a reply has at most 1,000,000 characters, found 1,000,001",
    "flood": r"prog: it wrote more than 8,000,000 bytes",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_program_does_wrong_is_a_failure_and_the_next_turn_works(command: list[str], fault: str) -> None:
    failure, after = answers(command, fault, "again")
    assert re.fullmatch(f"error: {FAULTS[fault]}", failure), failure
    assert after.startswith("heard: ")


def test_odd_bytes_and_no_reply_are_replies(command: list[str]) -> None:
    assert answers(command, "bytes", "silent") == ["\ufffd\ufffd", ""]


def test_a_turn_that_takes_too_long_ends_with_its_children(command: list[str], tmp_path: Path) -> None:
    heard = tmp_path / "heard"

    async def work(engine: Agent) -> str:
        return await hung(Talk(engine), f"hang {heard}", lambda: heard.exists() and len(heard.read_text().split()) == 2)

    assert using(work, command=command, label="prog", interface="prompt") == "prog gave no reply within 30 s"
    assert all_end([int(word) for word in heard.read_text().split()])


def test_what_a_program_leaves_ends_with_its_turn(command: list[str]) -> None:
    [pid] = answers(command, "leave")
    assert all_end([int(pid)])


def test_what_a_program_does_to_its_folder_touches_nothing_else(command: list[str], tmp_path: Path) -> None:
    elsewhere, secret = tmp_path / "elsewhere", tmp_path / "secret"
    elsewhere.mkdir()
    (elsewhere / "answer.json").write_text("not yours")
    secret.write_text("secret")
    assert answers(command, "remove", "again")[1].startswith("heard: ")
    for act in ("answer", "pipe"):
        assert answers(command, f"{act} {secret}", reply="answer.json")[0].startswith("error: prog: answer.json ")
    first, second = answers(command, f"link {elsewhere}", "again", reply="answer.json")
    assert first.endswith(" leads out of its folder") and second == "error: prog: work leads out of its folder"
    assert answers([*command, "{prompt_file}"], "again")  # the program's own way
    answers(command, f"prompt {secret}", "again")
    assert (elsewhere / "answer.json").read_text() == "not yours" and secret.read_text() == "secret"


def test_a_program_cannot_block_its_folder() -> None:
    place = Path(tempfile.mkdtemp())
    os.chown(place, NOBODY if os.geteuid() == 0 else -1, -1)
    with as_nobody():
        folder = SeatFolder(place / "seat", {"a": "x"}, {}, None)
        folder.prepare(b"prompt", "answer.txt")
        for name in ("work/deep/er", "work", "."):
            (folder.path / name).mkdir(parents=True, exist_ok=True)
            (folder.path / name / "kept").write_text("x")
        for name in ("work/deep/er", "work/deep", "work", "."):
            (folder.path / name).chmod(0)
        folder.prepare(b"again", "answer.txt")  # it is the program's own, and it may use it again
        assert (folder.path / "prompt.txt").read_text() == "again"
        folder.path.chmod(0)
        again = SeatFolder(folder.path, {"a": "y"}, {}, None)
        assert [file.name for file in again.path.iterdir()] == ["a"]
        again.path.chmod(0)
        again.remove()
        assert not again.path.exists()
        place.chmod(0o500)
        with pytest.raises(RequestError, match="its folder cannot be made"):
            SeatFolder(again.path, {}, {}, None)
        place.chmod(0o700)
    place.rmdir()


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Where tests run as root, which nothing is forbidden to, as another user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_seat_has_a_home_of_its_own_with_its_files(command: list[str], tmp_path: Path) -> None:
    home = {".config/agent.toml": 'url = "{HOME}/x {NO_SUCH} ${HOME}"', "settings.json": {"telemetry": False}}
    [text] = answers(command, "question", home=home)
    facts = json.loads(text)
    assert {".config/agent.toml", "settings.json", "work", "work/notes"} <= set(facts["home"])
    assert facts["variables"]["HOME"] == str(Path(facts["folder"]).parent) != os.environ["HOME"]
    reader = [*PYTHON, "-c", "import os; print(open(os.environ['HOME'] + '/.config/agent.toml').read())"]
    [text] = answers(reader, "x", home=home)
    assert re.fullmatch(r'url = "/.+/x \{NO_SUCH\} \$\{HOME\}"', text)
    for name, content in (("templates/.config/agent.toml", "a"), ("templates/b", "{HOME}")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    [text] = answers(command, "question", home=str(tmp_path / "templates"))
    assert {".config/agent.toml", "b"} <= set(json.loads(text)["home"])


OTHER: dict[str, Any] = {"call": "os:getcwd"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"interface": "prompt"}, "interface=prompt needs command="),
    ({"command": "true", "reply": "a.txt"}, 'reply="a.txt" is for command-line agents'),
    ({"command": "true", "confine": True}, "confine=true is for command-line agents"),
    ({"command": "true", "interface": "prompt", "history": True}, "interface=prompt takes no history="),
    ({"command": "true", "interface": "prompt", "args": {"a": 1}}, "interface=prompt takes no args="),
    ({"command": "true", "interface": "prompt", "reply": "/etc/passwd"}, "names no place of a reply"),
    ({"command": "true", "interface": "prompt", "reply": "../a"}, "names no place of a reply"),
    ({"command": "true", "interface": "prompt", "reply": "#result"}, "names no place of a reply"),
    ({"command": "sh -c 'echo {prompt}'", "interface": "prompt"}, "would run what other agents write"),
    ({"command": "env A=b /bin/bash -lc {prompt}", "interface": "prompt"}, "would run what other agents write"),
    ({"command": "true", "interface": "prompt", "readable": ["/"]}, "it needs confine=true"),
    ({"command": "true", "interface": "prompt", "home": {"../a": "x"}}, "is not a path below the home"),
    *(
        ({"command": "true", "interface": "prompt", "home": dict.fromkeys(paths, "x")}, message)
        for paths, message in (
            (["."], "'.' is not a path below the home"),
            ([1], "1 is not a path below the home"),
            (["a/b", "a"], "'a' is a file, and 'a/b' lies in it"),
            (["prompt.txt/b"], "'prompt.txt' is a file, and 'prompt.txt/b' lies in it"),
            (["a", "./a"], "'./a' is there already"),
            (["work"], "'work' is there already"),
        )
    ),
    ({"command": "true", "interface": "prompt", "reply": "."}, "names no place of a reply"),
    ({"command": "true", "interface": "prompt", "reply": "./#/a"}, "names no place of a reply"),
    *(
        ({"command": "true", "interface": "prompt", "confine": True, "readable": [path]}, "is the system's own")
        for path in ("/", "/proc", "/usr/..")
    ),
    ({"command": "true", "inner": "fake", "env": {"A=B": "base_url"}}, "'A=B' is no name of a variable"),
    ({"command": "true", "interface": "prompt", "home": "/no/such"}, "there is no such folder"),
    ({"command": "true", "interface": "prompt", "continue_command": "no-such-program"}, "no such program on the PATH"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=range(len(REFUSED)))
def test_fields_that_do_not_fit_are_explained(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError) as caught:
        Agent(**{**OTHER, **fields} if "command" not in fields else fields).check()
    assert message in str(caught.value)


@given(
    st.recursive(st.none() | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)), st.data()
)
def test_a_pointer_finds_each_text_of_a_document(document: Any, data: st.DataObject) -> None:
    def texts(value: Any, path: str = "") -> dict[str, str]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        own = {path: value} if isinstance(value, str) and path else {}
        for key, below in items:
            own |= texts(below, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
        return own

    for pointer, text in texts(document).items():
        found = _prompt_reply.read_text(f"#{pointer}", json.dumps(document).encode(), None)
        assert found == text


def test_a_run_is_played_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "adder.sh").write_text("#!/bin/sh\ncat > /dev/null\necho The answer is 42.\n")
    (tmp_path / "adder.sh").chmod(0o755)
    agent = {"command": str(tmp_path / "adder.sh"), "interface": "prompt"}
    run = evaluate("arithmetic", "agent", model_args=agent, limit=1, output_path=tmp_path / "run")
    assert [score.number("answered") for score in run.scores] == [1] * 3


def test_a_folder_for_temporary_files_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"harness-{os.getuid()}").mkdir(mode=0o755)
    command = [sys.executable, "-m", "harness", "eval", "--spec", "arithmetic", "--limit", "1", "--model", "agent"]
    command += ["--model_args", "command=cat,interface=prompt", "--output_path", str(tmp_path / "run")]
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2 and "is not a folder that only you may enter" in done.stderr


def test_a_run_whose_program_cannot_be_confined_stops_before_it_begins(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "arithmetic", "--limit", "1", "--model", "agent"]
    command += [
        "--model_args",
        "command=/bin/cat,interface=prompt,confine=true",
        "--output_path",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(command, env={**os.environ, "PATH": "/none"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr and not (tmp_path / "run").exists()
    assert "confine=true: programs cannot be confined here: there is no program bwrap" in done.stderr
    assert "Install bubblewrap (Debian: apt-get install bubblewrap" in done.stderr
