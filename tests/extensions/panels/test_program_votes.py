"""Programs that are the same but for how they are written are one candidate; hostile ones harm nobody."""

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Case
from tests.extensions.datasets.documents_kit import BUILTIN, cases, jsonl
from tests.extensions.panels.exchange_kit import scripted

HumanEval: Any = BUILTIN.load("tasks", "humaneval")
programs: Any = importlib.import_module(f"{HumanEval.__module__.rpartition('.')[0]}._programs")
same_program = programs.same_program

ROW = {
    "task_id": "Own/0",
    "entry_point": "double",
    "prompt": 'from typing import List\n\n\ndef double(xs: List[int]) -> List[int]:\n    """Twice each."""\n',
    "canonical_solution": "    return [2 * x for x in xs]\n",
    "test": "def check(candidate):\n    assert candidate([2]) == [4]\n",
}
BODY = "    ys = [2 * x for x in xs]\n    return ys"
WHOLE = f"def double(xs: List[int]) -> List[int]:\n{BODY}"


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Any, Case]:
    task = HumanEval(dataset_path=None, data_files=str(jsonl(tmp_path / "rows.jsonl", [ROW])))
    [case] = cases(task)
    return task, case


@pytest.mark.parametrize(
    "written",
    [
        WHOLE,
        BODY.strip(),
        BODY.replace("    ", ""),
        BODY.replace("    ", "\t"),
        f"from typing import List\n\n{WHOLE}",
        WHOLE.replace("    return", "\n    # at last\n    return") + "   \n\n",
        WHOLE.replace(":\n", ':\n    """Twice each one."""\n', 1),
        WHOLE.replace("[2 * x for", "[(2 *  x) for"),
        ROW["prompt"] + BODY,
    ],
)
def test_the_same_program_written_otherwise_is_the_same_candidate(asked: tuple[Any, Case], written: str) -> None:
    task, case = asked
    assert task.canonical(case, written) == task.canonical(case, BODY)


@pytest.mark.parametrize("written", [BODY.replace("2", "3"), BODY.replace("ys", "zs"), "pass", "", "no program at all"])
def test_another_program_is_another_candidate(asked: tuple[Any, Case], written: str) -> None:
    task, case = asked
    assert task.canonical(case, written) != task.canonical(case, BODY)


def test_programs_are_voted_on_as_programs(asked: tuple[Any, Case]) -> None:
    task, _ = asked
    texts = [
        f"```python\n{WHOLE}  # so\n```",
        "```python\ndef double(xs):\n    return xs\n```",
        f"```python\n{BODY}\n```",
    ]
    result = scripted("vote", lambda agent, number: texts[int(agent[-1])], "panels/standard", task, agents=3)
    assert sorted(result.outcome.facts["votes"].values()) == [1.0, 2.0] and "[2 * x" in result.outcome.group


def test_agents_and_ballots_show_a_program_in_a_block_with_its_indentation(asked: tuple[Any, Case]) -> None:
    task, _ = asked
    programs = [f"def double(xs):\n    ys = xs * {i}\n    return ys" for i in range(2)]
    block = "".join(f"  {line}\n" for line in programs[0].split("\n"))

    def say(agent: str, number: int) -> str:
        return f"\n```python\n{programs[int(agent[-1])]}\n```" if number == 0 else "AGREE"

    ballots = scripted("discussion", say, task=task, agents=2, max_rounds=0, decision="vote")
    assert all(f" ===\n{block}" in ballots.prompt(agent, 1) for agent in ("Agent-0", "Agent-1"))
    one: dict[str, Any] = {"agents": 2, "style": "agree", "order": "round_robin", "drafts": "one", "max_rounds": 1}
    assert f"on the table:\n{block}" in scripted("discussion", say, task=task, **one).prompt("Agent-1", 0)


def test_without_its_row_a_program_stands_for_itself() -> None:
    task = HumanEval()
    assert task.canonical(task.example(), "x = (1)  # one") == task.canonical(task.example(), "x=1")


def test_strings_that_are_no_docstrings_and_imports_that_differ_are_kept() -> None:
    assert same_program("x = 'a'") == same_program('x = "a"  # b') != same_program("x = 'b'")
    assert same_program("import a\nimport a\nx") == same_program("import a\nx") != same_program("import b\nx")
    assert same_program("def f():\n    return 1\n    'no docstring'") != same_program("def f():\n    return 1")
    assert same_program("def f():\n    'one'\n    'two'\n    return 1") == same_program("def f():\n    return 1")
    assert same_program("f()\nf()") != same_program("f()"), "only imports count once"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 10_000, "{" * 199, "-" * 19_000 + "1", "1+" * 9_000 + "1", "a" + ".b" * 9_000, "f" + "()" * 9_000,
        "lambda:" * 2_800 + "1", "a if b else " * 1_600 + "1", "not " * 4_900 + "1", "x=0x" + "f" * 19_000, "9" * 9_999,
        "".join(" " * i + "if 1:\n" for i in range(150)), "if a: pass\n" + "elif a: pass\n" * 1_500, "x\x00y", "\ud800",
        "x = 1\n" * 1_000_000, "with " + "(" * 99 + "a" + ")" * 99 + ": pass", "x = '\\d'", "assert (1, 2)", "1 is 1",
    ],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_hostile_programs_are_taken_as_they_stand_or_parsed(asked: tuple[Any, Case], hostile: str) -> None:
    task, case = asked
    result = task.canonical(case, hostile)
    assert isinstance(result, str) and result == task.canonical(case, hostile)
    assert same_program(hostile) == same_program(f"\n{hostile}  \n\n")


def test_what_is_too_long_is_compared_as_text() -> None:
    long = "x = 1\n" * programs.MAX_PROGRAM
    assert same_program(long + "y  ") == long + "y" != same_program(long + "y # no")


@given(st.text(st.sampled_from("ab()=:\n \t#'\"1,+[]{}\\if de"), max_size=60))
def test_normal_forms_are_their_own(program: str) -> None:
    result = same_program(program)
    assert same_program(result) == result
    try:
        tree = ast.parse(result)
    except (SyntaxError, ValueError):
        return
    assert ast.unparse(tree) == result
