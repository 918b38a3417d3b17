"""Runs of the engine `agent` that are killed go on exactly: each agent is brought back to its conversation."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.storage import journals
from tests.helpers.toy import TOY, results

ROOT = Path(__file__).parents[3]
AGENT = '''
import json, os, signal, sys, time, zlib
from pathlib import Path

TRACE, ONCE, AT = Path("trace"), Path("once"), 30
harness = os.getpid() if __name__ != "__main__" else os.getppid()


class Walker:
    """Its answer depends on every word of its conversation."""

    def reset(self, messages):
        self.heard = "".join(m["content"] for m in messages)

    def reply(self, message):
        with TRACE.open("a") as file:
            file.write("x")
        if not ONCE.exists() and TRACE.stat().st_size >= AT:  # once, in the middle of episodes
            ONCE.touch()
            while not any(b"move" in file.read_bytes() for file in Path("run").glob("journal*.jsonl")):
                time.sleep(0.01)  # the harness writes its journal every 100 ms
            os.kill(harness, signal.SIGKILL)
        self.heard += message
        answer = "ab?"[zlib.crc32(self.heard.encode()) % 3]
        self.heard += answer
        return answer


if __name__ == "__main__":
    walker = Walker()
    for line in sys.stdin:
        question = json.loads(line)
        if not question["start"]:
            walker.reset(question["messages"][:-1])
        print(json.dumps({"text": walker.reply(question["messages"][-1]["content"])}), flush=True)
'''


def run(folder: Path, form: str) -> subprocess.CompletedProcess[str]:
    """The command line of a run in a process of its own; its results are in `run` there."""
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "agent", "--model_args", form,
               "--output_path", "run", "--quiet", "--max_concurrency", "4", "--set", "protocol.rounds=6"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["call=walker:Walker,label=walker", f"command={sys.executable} -I walker.py,label=walker"],
    ids=["call", "command"],
)
def test_a_run_that_is_killed_amid_conversations_goes_on_exactly(tmp_path: Path, form: str) -> None:
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    for folder in (calm, wild):
        folder.mkdir()
        (folder / "walker.py").write_text(AGENT)
        (folder / "harness.yaml").write_text(f"parents: [{TOY.root}]\n")
    (calm / "once").touch()
    done = run(calm, form)
    assert done.returncode == 0, done.stderr
    assert run(wild, form).returncode == -signal.SIGKILL
    [journal] = journals(wild / "run")
    assert b"move" in journal.read_bytes()
    done = run(wild, form)
    assert done.returncode == 0, done.stderr
    assert results(wild / "run") == results(calm / "run")
    answers = (calm / "trace").stat().st_size
    assert answers <= (wild / "trace").stat().st_size <= answers + 30  # what is journaled is not asked again
