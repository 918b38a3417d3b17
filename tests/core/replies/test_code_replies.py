"""Programs in replies: found wherever a model puts them, and made whole whatever became of their indentation."""

import ast
import json
import textwrap

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.extensions.sandbox.code import Code, assemble
from tests.helpers.samples import examples

PROMPT = '''import math
from typing import List


def helper(x: int) -> int:
    """Rounds (helper)."""
    return math.floor(x)


def area(sides: List[float], deep: bool = False) -> int:
    """ The area, rounded down.
    It isn't hard:
    >>> area([2, 3.5])
    7
    """
'''
BODIES = {
    "one line": "    return helper(math.prod(sides))\n",
    "a loop first": "    total = 1\n    for side in sides:\n        total *= side\n    return helper(total)\n",
    "a block first": "    for n in sides:\n        if n < 0:\n            return 0\n    return 7\n",
    "only a block": "    if True:\n        total = math.prod(sides)\n        return helper(total)\n",
    "brackets over lines": "    total = math.prod([\n        side\n    for side in sides])\n    return helper(total)\n",
    "a string over lines": '    """Says\nnothing\n  much."""\n    return helper(math.prod(sides))\n',
    "comment first": "    # so\n    total = math.prod(sides)\n\n    # it goes\n    return helper(total)\n",
    "function within": "    def product(x):\n        return math.prod(x)\n    return helper(product(sides))\n",
    "its own name within": "    def area(x):\n        return math.prod(x)\n    return helper(area(sides))\n",
    "imports first": "    from math import prod\n    return helper(prod(sides))\n",
    "decorated within": "    @staticmethod\n    def n(): ...\n    return 7\n",
}
HELPED = "    return helped(sides)\n\n\ndef helped(sides):\n    return helper(math.prod(sides))\n"


def works(program: str) -> bool:
    namespace: dict[str, object] = {}
    exec(compile(program, "program", "exec"), namespace)
    area = namespace["area"]
    assert callable(area)
    return bool(area([2, 3.5]) == 7)


def widened(body: str, width: int) -> str:
    """`body` with another width of indentation (its strings and brackets go along)."""
    lines = body.split("\n")
    return "\n".join(" " * (width * ((len(x) - len(x.lstrip())) // 4)) + x.lstrip() for x in lines)


FORMS = {
    "as it should be": lambda body: body,
    "stripped": str.strip,
    "at the margin": textwrap.dedent,
    "at the margin, stripped": lambda body: textwrap.dedent(body).strip(),
    "too deep": lambda body: textwrap.indent(body, "    "),
    "one blank too many in front": lambda body: " " + body,
    "fenced": lambda body: f"Here is the body, it isn't long:\n\n```python\n{body}```\n\nIt loops over `sides`.",
    "fenced, stripped": lambda body: f"```\n{body.strip()}\n```",
    "fence left open": lambda body: f"```py\n{body}",
    "whole, fenced": lambda body: f"Sure!\n~~~python\n{PROMPT}{body}~~~\nUse it:\n~~~python\nprint(area([1]))\n~~~",
    "whole, bare": lambda body: f"Here is the function (as asked):\n\n{PROMPT}{body}\nThis function isn't slow.",
    "whole, without imports": lambda body: PROMPT[PROMPT.index("def area") :] + body,
    "whole, indented": lambda body: textwrap.indent("def area(sides: list[float]) -> int:\n" + body, "  "),
    "fenced behind words": lambda body: f"Sure, it is: ```python\n{body}```",
    "in a list": lambda body: "1. Do:\n" + textwrap.indent(f"```python\n{body}```", "   ", lambda line: True),
    "JSON": lambda body: json.dumps({"reasoning": "it {is}", "completion": body}),
    "JSON, whole": lambda body: f"My answer:\n```json\n{json.dumps({'code': PROMPT + body}, indent=1)}\n```",
    "JSON with a fence": lambda body: json.dumps({"answer": f"```python\n{body}\n```"}),
    "Windows": lambda body: body.replace("\n", "\r\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("body", BODIES)
def test_every_form_of_every_body_works(form: str, body: str) -> None:
    if body == "a string over lines" and form in ("at the margin", "at the margin, stripped", "too deep", "in a list"):
        body = "one line"  # the form changes the string itself
    reply = FORMS[form](BODIES[body])
    for entry in ("area", None):
        parsed = Code(entry_point=entry).parse(reply)
        assert parsed.error is None
        assert works(assemble(PROMPT, parsed.action, "area")), assemble(PROMPT, parsed.action, "area")


@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize("body", ["a loop first", "a block first", "function within", "comment first"])
def test_any_width_of_indentation_fits(width: int, body: str) -> None:
    other = widened(BODIES[body], width)
    assert works(assemble(PROMPT, other, "area"))
    assert works(assemble(PROMPT, textwrap.dedent(other), "area"))
    assert works(assemble(PROMPT, widened(BODIES[body], 1).replace(" " * width, "\t"), "area")) or width > 1


def test_tabs_fit_too() -> None:
    assert works(assemble(PROMPT, "\ttotal = 1\n\tfor n in sides:\n\t\ttotal *= n\n\treturn helper(total)", "area"))


def test_what_follows_a_body_at_the_margin_stays_there() -> None:
    for reply in (HELPED, HELPED.strip(), f"```python\n{HELPED}```", json.dumps({"solution": HELPED})):
        program = assemble(PROMPT, Code().parse(reply).action, "area")
        assert works(program) and "\ndef helped" in program


def test_of_several_blocks_the_last_with_the_entry_point_counts_else_the_first() -> None:
    draft, final, usage = "def area(x):\n    return 1", "def area(x):\n    return 7", "print(area([2, 3.5]))"
    reply = "".join(f"Then:\n```python\n{block}\n```\n" for block in (draft, final, usage))
    assert Code(entry_point="area").parse(reply).action == final
    assert Code().parse(reply).action == draft
    shell = f"```bash\npip install x\n```\n```python\n{final}\n```"
    assert Code().parse(shell).action == final
    assert Code().parse("```ruby\nputs 1\n```").action == "puts 1"


def test_the_future_comes_first_and_stray_decorators_do_not() -> None:
    program = assemble("@decorated\n" + PROMPT[PROMPT.index("def area") :], "from __future__ import annotations\n"
                       "def area(sides: Unknown) -> int:\n    return 7\n", "area")  # fmt: skip
    assert works(program)


def test_other_definitions_of_the_entry_point_are_whole_too() -> None:
    assert works(assemble(PROMPT, "area = lambda sides: helper(math.prod(sides))", "area"))
    coroutine = assemble(PROMPT, "async def area(sides):\n    return 7", "area")
    assert any(isinstance(node, ast.AsyncFunctionDef) for node in ast.parse(coroutine).body)


def test_a_prompt_that_ends_at_the_signature_is_continued() -> None:
    for prompt in ("def area(sides):", "def area(sides):\n", "def area(\n    sides,\n):  # so\n"):
        assert works(assemble(prompt, "return 7", "area"))
        assert not works(assemble(prompt, "", "area"))
    assert works(assemble('def area(sides):\n  """Two blanks."""\n', "for n in sides:\n    pass\nreturn 7", "area"))


@pytest.mark.parametrize("text", ["", " \n ", "I cannot do that.", "```python\n```", "Note: the value = unknown to me"])
def test_no_code_is_said_so(text: str) -> None:
    assert "no Python code was found" in (Code().parse(text).error or "")


LONG = 20_000
HARD = [
    "(" * LONG, "\"'" * LONG, "{" * LONG, "[{" * LONG, "```" * LONG, "``` " + "a" * LONG + "`", " " * LONG + "x",
    "if " + ": #" * LONG, "x" + "[1]" * LONG, "'''" * LONG, "\\" * (LONG + 1), "a." * LONG, "{\n" * LONG,
    '{"a":' * LONG, "\t\n" * LONG, "def area(\n" * LONG, "x = " * LONG, "x, " * LONG, "`" * LONG, "~~~ a\n" * LONG,
]  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", HARD, ids=range(len(HARD)))
def test_hard_texts_are_read_at_once(text: str) -> None:
    for whole in (text, f"```python\n{text}\n```", f"x = 1\n{text}", f"def area(x):\n {text}"):
        action = Code(entry_point="area").parse(whole).action
        assert isinstance(assemble(PROMPT, action or whole, "area"), str)


PIECES = st.sampled_from(
    ["def area(x):\n", "    ", "\n", "return 1", "```", "python", '"""', "'", '"', "\\", "{", "(", ")", ":", "# c",
     "\t", "x = ", "for y in x:\n", "if a:", '{"code": "', "~~~", "\r", "\x00", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join))
@example('"\\')
@example("'''\\")
def test_nothing_a_model_writes_raises(text: str) -> None:
    parsed = Code(entry_point="area").parse(text)
    assert (parsed.error is None) == bool(parsed.action)
    program = assemble(PROMPT, text, "area")
    program.encode()
    assert program.startswith(("import math", "from __future__")) and program.endswith("\n")
    assert Code().allows(text) and not Code().allows(None)


# ------------------------------------------------------------------------------------- broken programs

RIGHT = {**{name: (body, False) for name, body in BODIES.items()}, "helped": (HELPED, False)}
RIGHT |= {f"{name}, whole": (PROMPT + body, True) for name, (body, _) in RIGHT.items()}
BARE = {
    "alone": lambda program: program,
    "stripped": str.strip,
    "at the margin": textwrap.dedent,
    "after a sentence": lambda program: f"Here is the code (it isn't long):\n\n{program}",
    "before a sentence": lambda program: f"{program}\n\nThis loops over `sides`. It isn't slow.",
    "before a list": lambda program: f"{program}\n\nExplanation:\n\n1. It multiplies.\n2. It rounds\n   the product.\n",
}


def test_the_first_line_of_a_body_is_not_dropped_because_it_is_broken() -> None:
    prompt = "def add(x, y):\n"
    for reply in ("retrun None\nreturn x + y", "    retrun None\n    return x + y", "x == y y\nreturn x + y"):
        program = assemble(prompt, Code("add").parse(reply).action or "", "add")
        with pytest.raises(SyntaxError):
            compile(program, "program", "exec")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", BARE)
@given(name=st.sampled_from([*RIGHT]), data=st.data())
@settings(max_examples=examples(150))
def test_no_slip_in_a_line_of_code_is_mended_by_dropping_the_line(way: str, name: str, data: st.DataObject) -> None:
    """Whatever one slip makes of a line, every line of the program is in what is graded."""
    right, _ = RIGHT[name]
    lines = right.split("\n")
    places = [n for n, line in enumerate(lines) if line.strip()]
    n = data.draw(st.sampled_from(places))
    indent, text = lines[n][: len(lines[n]) - len(lines[n].lstrip())], lines[n].lstrip()
    at = data.draw(st.integers(0, len(text) - 1))
    slip = data.draw(st.sampled_from(["swap", "drop", "insert", "replace", "capital", "end"]))
    odd = data.draw(st.sampled_from("abXZ ().:,;=#'\"0\x00\t!?*`-"))
    lines[n] = (
        indent
        + {
            "swap": text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :],
            "drop": text[:at] + text[at + 1 :],
            "insert": text[:at] + odd + text[at:],
            "replace": text[:at] + odd + text[at + 1 :],
            "capital": text[0].upper() + text[1:],
            "end": text + data.draw(st.sampled_from([".", ":", "!", "?", ")", "*"])),
        }[slip]
    )
    action = Code("area").parse(BARE[way]("\n".join(lines))).action
    if action is None:  # nothing is graded, and nothing right
        return
    results = {line.strip() for line in action.split("\n")}
    lost = [line for line in lines if line.strip() not in results]
    assert not [line for line in lost if line.strip(" \t`~")], lost


@pytest.mark.parametrize("way", BARE)
@pytest.mark.parametrize("body", ["one line", "a loop first", "a block first", "imports first", "function within"])
def test_prose_around_a_whole_program_does_no_harm(way: str, body: str) -> None:
    for entry in ("area", None):
        action = Code(entry).parse(BARE[way](PROMPT + BODIES[body])).action
        assert works(assemble(PROMPT, action, "area"))


def test_a_null_character_is_not_taken_out_of_a_program() -> None:
    program = assemble(PROMPT, Code("area").parse("ret\x00urn 7").action or "ret\x00urn 7", "area")
    with pytest.raises((SyntaxError, ValueError)):
        works(program)
