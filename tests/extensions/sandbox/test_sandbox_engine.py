"""The engine `sandbox`: what a program prints becomes a reply, once, and a team mends its program by it."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request, Thread
from harness.api.errors import EngineFatalError, SetupError
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.sandbox.engine import Sandbox
from harness.runtime.runner import RunStoppedError
from harness.transcripts.reader import Transcripts
from tests.extensions.datasets.documents_kit import jsonl


def answers(*texts: str, **fields: Any) -> list[str]:
    """The engine's replies to these messages, all asked at once."""

    async def work() -> list[str]:
        engine = Sandbox(**fields)

        async def ask(text: str) -> str:
            thread = Thread()
            thread.add("user", text)
            reply = await engine.complete(Request("e/a/0/0", thread, {}, 0))
            assert (reply.input_tokens, reply.output_tokens) == (0, 0)
            return reply.text

        return await asyncio.gather(*map(ask, texts))

    return asyncio.run(work())


def block(program: str, language: str = "python") -> str:
    return f"```{language}\n{program}\n```"


NO_PROGRAM = "There is no Python program in the message. Write it in a fenced block that begins with ```python."
TRACEBACK = 'Traceback (most recent call last):\n  File "<program>", line {}, in <module>\n{}'
LISTED = "=== From a ===\n  Mine:\n  ```\n  if 1:\n      print(3)\n  ```\n=== End ==="
CASES = [
    (block("print(1)\nprint(2)"), "1\n2", "ok"),
    (block("x = 1"), "", "ok"),
    (f"First\n{block('x = 4')}\nand then\n{block('print(x)', 'py')}", "4", "ok"),
    (LISTED, "3", "ok"),
    (f"{block('print(5)')}\nwhich gives\n{block('5 6', 'text')}\nor\n{block('7 8', '')}", "5", "ok"),
    (block("assert 1 == 2, 'no'"), TRACEBACK.format(1, "AssertionError: no"), "error"),
    (block("print('exit: ok', end='')\nraise SystemExit(3)"), "exit: ok", "error"),
    (block("while True: pass"), "", "timeout (after 1 s)"),
    (block("x = [0] * 10**10"), "", "memory"),
    (block("print('a' * 300 + 'b' * 300)"), f"{'a' * 100}\n… 400 characters left out …\n{'b' * 100}", "ok"),
    (block("import os\nos.fork()"), TRACEBACK.format(2, "PermissionError: [Errno 1] Operation not permitted"), "error"),
]


@pytest.mark.slow
def test_a_reply_is_what_the_program_prints_and_how_it_ends() -> None:
    replies = answers(*(text for text, _, _ in CASES), seconds=1, characters=200)
    for (text, printed, end), reply in zip(CASES, replies, strict=True):
        said = f"The program printed:\n{printed}" if printed else "The program printed nothing."
        assert reply == f"{said}\nexit: {end}", text


@pytest.mark.parametrize("text", ["print(1)", "", block("console.log(1)", "js"), "```python\n```", "\x00 ``` \ud800"])
def test_a_message_without_a_program_runs_nothing(text: str) -> None:
    assert answers(text) == [f"{NO_PROGRAM}\nexit: no program"]


def test_no_more_programs_run_at_once_than_the_engine_allows(tmp_path: Path) -> None:
    program = block("import time\nprint(time.monotonic())\ntime.sleep(0.05)\nprint(time.monotonic())")
    times = [tuple(map(float, reply.splitlines()[1:3])) for reply in answers(*[program] * 4, concurrency=1)]
    times.sort()
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(times))


# ---------------------------------------------------------------------------------- in a team

ROW = {
    "task_id": "Own/0", "entry_point": "double", "prompt": 'def double(x: int) -> int:\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n", "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}  # fmt: skip
STAMP = "import time\n    print(time.time_ns(), flush=True)"


def program(body: str) -> str:
    """A program with a test of its own, and a stamp that no other run of it prints."""
    main = f'if __name__ == "__main__":\n    {STAMP}\n    assert double(3) == 6'
    return block(f"def double(x: int) -> int:\n    {body}\n\n{main}")


class Solver:
    """Writes a wrong program first, and mends it when it reads that its test failed."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.asked: list[str] = []
        self.fails_at = fails_at

    def __call__(self, request: Request) -> str:
        prompt = request.thread.messages[-1]["content"]
        if len(self.asked) == self.fails_at:
            raise EngineFatalError("the server is gone")
        self.asked.append(prompt)
        return program("return x + x") if "AssertionError" in prompt else program("return x + 2")


def play(tmp_path: Path, model: Solver, name: str = "run", **options: Any) -> Run:
    overrides = [f"task.data_files={jsonl(tmp_path / 'rows.jsonl', [ROW])}"]
    options = {"allow_code_execution": True, **options}
    return harness.evaluate(
        "teams/two_agents", Mock(function=model), overrides=overrides, output_path=tmp_path / name, **options
    )


def replies(run: Run) -> dict[str, list[str]]:
    """Seat → what it wrote."""
    [episode] = Transcripts(run.folder)
    return {seat: [text for role, text in episode.conversation(seat) if role == "assistant"] for seat in episode.agents}


def test_a_solver_mends_its_program_by_what_the_checker_prints(tmp_path: Path) -> None:
    solver = Solver()
    run = play(tmp_path, solver)
    [score] = run.scores
    assert score.numbers["score"] == score.numbers["stopped"] == 1 and score.numbers["rounds"] == 2
    first, second = replies(run)["checker"]
    assert first.endswith("AssertionError\nexit: error") and second.endswith("\nexit: ok")
    assert "=== From checker ===" in solver.asked[1] and "\n  exit: error" in solver.asked[1]


def test_a_spec_with_this_engine_needs_consent(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="allow_code_execution=True"):
        play(tmp_path, Solver(), allow_code_execution=False)


@pytest.mark.slow
def test_a_program_runs_once_whatever_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="gone"):
        play(tmp_path, Solver(fails_at=1))
    again = Solver()
    run = play(tmp_path, again)
    first = replies(run)["checker"][0]
    assert len(again.asked) == 1, "the first program is in the journal"
    stamp = first.splitlines()[1]
    assert stamp.isdecimal() and stamp in again.asked[0], "and so is what it printed then"
    before = replies(run)
    scored = rescored(run.folder, allow_code_execution=True)
    assert replies(scored) == before and scored.scores[0].numbers == run.scores[0].numbers
