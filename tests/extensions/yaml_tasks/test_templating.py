"""Templates of strangers: whatever they ask for, they end soon, in little memory, and say what was too much."""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.api.errors import PromptError, UserError
from harness.checks.templates import unknown
from harness.config.prompts import PromptSet
from harness.extensions.yaml_tasks.bounded_templates import BoundedEnvironment
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, jsonl, task_of

LOOP = "{% for i in range(99999) %}"
END = "{% endfor %}"
DOUBLED = "{% set ns = namespace(x=%s) %}{% for i in range(64) %}{% set ns.x = %s %}{% endfor %}"
HOSTILE = {
    "nested loops": LOOP * 3 + END * 3,
    "nested loops without text": LOOP * 3 + "{% if false %}{% endif %}" + END * 3,
    "loops that leave all out": (LOOP + "{% for j in range(99999) if false %}" + END) * 2 + END * 2,
    "recursive loop": "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "recursive loop, wide":
        "{% for i in range(99999) recursive %}{% if loop.depth < 4 %}{{ loop(range(99999)) }}{% endif %}{% endfor %}",
    "long body": "{% for i in range(99999) %}" + "{{ i }}" * 20_000 + END,
    "long output": LOOP + "{{ long }}" + END,
    "long output in a block": "{% set y %}" + LOOP + "{{ long }}" + END + "{% endset %}",
    "long output in a macro": "{% macro m() %}" + LOOP + "{{ long }}" + END + "{% endmacro %}{{ m() | length }}",
    "macro that calls itself twice":
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(64) }}",
    "macro forever": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "caller":
        "{% macro f() %}{{ caller() * 2 }}{{ caller() }}{% endmacro %}"
        + "{% call f() %}" * 40 + "x" + "{% endcall %}" * 40,
    "concatenation": DOUBLED.replace("%s", "'xxxx'", 1).replace("%s", "ns.x ~ ns.x"),
    "addition": DOUBLED.replace("%s", "'xxxx'", 1).replace("%s", "ns.x + ns.x"),
    "lists in lists": DOUBLED.replace("%s", "[1]", 1).replace("%s", "[ns.x, ns.x]") + "{{ ns.x }}",
    "tuples in tuples": DOUBLED.replace("%s", "(1,)", 1).replace("%s", "(ns.x, ns.x)") + "{{ ns.x }}",
    "mappings in mappings": DOUBLED.replace("%s", "{}", 1).replace("%s", "{1: ns.x, 2: ns.x}") + "{{ ns.x }}",
    "lists added": DOUBLED.replace("%s", "[1]", 1).replace("%s", "ns.x + ns.x"),
    "dict()": DOUBLED.replace("%s", "{}", 1).replace("%s", "dict(a=ns.x, b=ns.x)") + "{{ ns.x }}",
    "squares": DOUBLED.replace("%s", "3", 1).replace("%s", "ns.x * ns.x"),
    "power": "{{ 9 ** (9 ** 9) }}",
    "power in a loop": DOUBLED.replace("%s", "3", 1).replace("%s", "ns.x ** 9"),
    "times": "{{ 'x' * 999999999999 }}",
    "times, turned": "{{ 999999999999 * 'x' }}",
    "list times": "{{ [0] * 999999999999 }}",
    "long list times": "{{ ([long] * 9999) | join }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "percent, precision": "{{ '%.1000000000f' % 1 }}",
    "percent, star": "{{ '%*d' % (1000000000, 1) }}",
    "percent, often": "{{ ('%s' * 100000) % ((long,) * 100000) }}",
    "format": "{{ '{:1000000000}'.format(1) }}",
    "format, nested": "{{ '{:{}}'.format(1, 1000000000) }}",
    "format_map": "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "format, often": "{{ ('{0}' * 100000).format(long) }}",
    "format, taken first": "{% set f = '{:1000000000}'.format %}{{ f(1) }}",
    "format filter": "{{ '%1000000000d' | format(1) }}",
    "format filter, named": "{{ '%(a)1000000000d' | format(a=1) }}",
    "center": "{{ 'x' | center(1000000000) }}",
    "center, mapped": "{{ ['x'] | map('center', 1000000000) | list }}",
    "ljust": "{{ 'x'.ljust(1000000000) }}",
    "zfill": "{% set f = 'x'.zfill %}{{ f(1000000000) }}",
    "expandtabs": "{{ '\\t'.expandtabs(1000000000) }}",
    "replace": "{{ long.replace('x', long) }}",
    "replace, empty": "{{ long | replace('', long) }}",
    "join": "{{ long.join(range(99999) | list) }}",
    "join filter": "{{ range(99999) | join(long) }}",
    "join, lazy": "{{ long.join(range(99999) | map('string')) }}",
    "translate": "{{ 'aaaa'.translate({97: long}) }}",
    "bytes": "{{ 'x'.encode().center(1000000000) }}",
    "bytes joined": "{{ long.encode().join([long.encode()] * 99) | length }}",
    "to_bytes": "{{ (5).to_bytes(1000000000, 'big') }}",
    "from_bytes": "{{ (5).from_bytes(long.encode(), 'big') // 3 }}",
    "fromkeys": "{{ {}.fromkeys(range(99999), [long]) }}",
    "int of base 16": "{{ ('f' * 5000000) | int(0, 16) }}",
    "indent": "{{ '\\n' * 9999999 | int }}{{ ('a\\n' * 100000) | indent(9999) }}",
    "indent by text": "{{ ('a\\n' * 100000) | indent(long) }}",
    "batch": "{{ [1] | batch(1000000000, 'x') | list }}",
    "slice": "{{ [1] | slice(1000000000) | list }}",
    "round": "{{ 1.5 | round(1000000000, 'floor') }}",
    "tojson": "{{ [[[1]]] | tojson(indent=1000000000) }}",
    "wordwrap": "{{ long | wordwrap(1, true, long) }}",
    "striptags": "{{ ('<!--' * 99999) | striptags }}",
    "striptags, whole comments": "{{ ('<!---->' * 99999) | striptags }}",
    "sum of lists": "{{ ([[1]] * 99999) | sum(start=[]) }}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "range": "{{ range(10 ** 12) | list }}",
    "deep": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "long sum": "{{ 1" + " + 1" * 20_000 + " }}",
    "long number": "{{ " + "9" * 10_000 + " }}",
    "long source": "x" * 200_001,
}  # fmt: skip
VALUES = {"long": "x" * 100_000}


@pytest.fixture(autouse=True, scope="module")
def _little_memory() -> Iterator[None]:
    """A template that asks for more than 2 GB beyond what is there gets a MemoryError, and its test fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
    )
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + 2_000_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_end_in_one_message_with_a_place(tmp_path: Path, name: str) -> None:
    (tmp_path / "say.j2").write_text(HOSTILE[name])
    with pytest.raises(PromptError) as caught:
        PromptSet("mine", [tmp_path]).render("say", VALUES)
    assert "say.j2:" in str(caught.value) and "MemoryError" not in str(caught.value)


@pytest.mark.slow
def test_includes_that_double(tmp_path: Path) -> None:
    for i in range(64):
        (tmp_path / f"t{i}.j2").write_text(f"{{% include 't{i + 1}.j2' %}}" * 2)
    (tmp_path / "t64.j2").write_text("")
    with pytest.raises(PromptError, match="it takes more than"):
        PromptSet("mine", [tmp_path]).render("t0", {})


def test_a_template_that_extends_itself(tmp_path: Path) -> None:
    (tmp_path / "say.j2").write_text("{% extends 'say.j2' %}")
    with pytest.raises(PromptError, match=r"say\.j2:1"):
        PromptSet("mine", [tmp_path]).render("say", {})


def test_includes_imports_and_inheritance_render_as_in_plain_jinja(tmp_path: Path) -> None:
    texts = {
        "base.j2": "<{% block body %}base{% endblock %}>",
        "say.j2": "{% extends 'base.j2' %}{% block body %}{{ super() }}{% include ['none.j2', 'inc.j2'] %}"
        "{% include 'none.j2' ignore missing %}{% import 'm.j2' as m %}{{ m.f(2) }}{% endblock %}",
        "inc.j2": "{% from 'm.j2' import f %}{{ f(x) }}",
        "m.j2": "{% macro f(n) %}{{ n }}{% endmacro %}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert PromptSet("mine", [tmp_path]).render("say", {"x": 1}) == "<base12>"


def test_an_imported_modules_text_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "m.j2").write_text(LOOP + "{{ 'x' * 1000 }}" + END)
    (tmp_path / "say.j2").write_text("{% import 'm.j2' as m %}{{ m }}")
    with pytest.raises(PromptError, match="more than 10,000,000 characters"):
        PromptSet("mine", [tmp_path]).render("say", {})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("parameter", "template"),
    [
        ("doc_to_text", LOOP * 3 + END * 3),
        ("doc_to_target", "{{ 'x' * 999999999999 }}"),
        ("doc_to_choice", "{{ [[0] * 99999] * 99999 }}"),
        ("description", "{{ '%1000000000d' % 1 }}"),
        ("doc_to_text", "{{ q | regex_replace('(a+)+$', '') }}"),
        ("doc_to_text", "{{ q | regex_replace('', q * 100) }}"),
        ("doc_to_text", "{{ q | regex_replace('(', '') }}"),
        ("doc_to_text", "{{ q | regex_replace('a', '\\\\9') }}"),
    ],
)
def test_templates_of_data_sets_too(tmp_path: Path, parameter: str, template: str) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "a" * 5000 + "b", "a": "A"}])
    given: dict[str, Any] = {
        "doc_to_text": "q",
        "doc_to_target": "a",
        "answer": {"form": "letter", "options": 3},
        parameter: template,
    }
    with pytest.raises(UserError) as caught:
        cases(task_of(data_files=str(file), **given))
    assert "test.jsonl:1:1" in str(caught.value) and parameter in str(caught.value)


@pytest.mark.slow
def test_expressions_on_replies_end(tmp_path: Path) -> None:
    """`(a+)+$` takes 2^40 steps on 40 letters: the reply has no answer, or one that is not right."""
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": "x"}])
    metric = {"metric": "exact_match", "regexes_to_ignore": ["(a+)+$"]}
    task = task_of(
        data_files=str(file), doc_to_text="q", doc_to_target="a", answer={"form": "text"}, metric_list=[metric]
    )
    [case] = cases(task)
    assert graded(task, case, "a" * 5000 + "b")["score"] == 0 and graded(task, case, "xaaa")["score"] == 1
    task = task_of(data_files=str(file), doc_to_text="q", doc_to_target="a",
                   answer={"form": "pattern", "pattern": "(a+)+$"})  # fmt: skip
    read = task.reply(cases(task)[0], "Agent-0").parse("a" * 5000 + "b")
    assert read.action is None and "takes more than 1 s on the reply" in read.error


# ------------------------------------------------------------------------------------- and all else is as it was

FINE = [
    "{% for m in messages %}{{ loop.index }}. {{ m.name }}: {{ m.text | trim }}\n{% endfor %}",
    "{{ names | join(', ') }} and {{ names[1:] | map('upper') | list }} {{ names | length }}",
    "{% for n in names if n != 'b' %}{{ n ~ '-' ~ loop.index0 }}{% else %}none{% endfor %}",
    "{% macro m(x, y=2) %}<{{ x + y }}{{ caller() if caller is defined }}>{% endmacro %}"
    "{{ m(1) }}{% call m(3) %}!{% endcall %}",
    "{{ '%s has %05.2f' % ('a', 1.5) }} {{ '%d%%' | format(7) }} {{ '{:>5}|{a}'.format('x', a=2) }}",
    "{{ 'ab' * 3 }} {{ [1, 2] + [3] }} {{ 2 ** 10 }} {{ 7 % 4 }} {{ (1, 2) }} {{ {'a': [1]} }}",
    "{{ 'text' | center(20) }}{{ 'a\nb' | indent(2) }}{{ [1, 2, 3] | batch(2, 0) | list }}{{ 2.567 | round(1) }}",
    "{{ 'a-b'.split('-') | join('+') }} {{ 'x'.ljust(4) }}| {{ 'abc'.replace('b', 'BB') }} {{ ', '.join(names) }}",
    "{{ 5 | tojson }} {{ none | tojson }} {{ 1.5 | round }} {{ 51 | replace(5, 6) }} {{ 8 | center(5) }}",
    "{{ ', '.join(names | map('upper')) }} {{ 'for 100000 %s' % 'x' }} {{ '{{n}}: {n}, {0:>3}'.format(1, n=2) }}",
    "{% set ns = namespace(n=0) %}{% for i in range(50) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
    "{% for i in [1, [2, [3]]] recursive %}{{ loop(i) if i is iterable else i }}{% endfor %}",
    "{{ messages | selectattr('name', 'eq', 'a') | map(attribute='text') | first }} {{ {'a': 1} | tojson(indent=1) }}",
    "{% filter upper %}{{ names[0] }}{% endfilter %}{% set b %}x{% endset %}"
    "{{ b | replace('x', 'y') }}{% raw %}{{ }}{% endraw %}",
    "{{ [1, 2, 3] | sum }} {{ messages | groupby('name') | length }}"
    "{{ names | sort(reverse=true) }} {{ '5' | int + 1 }}",
    "{{ 5 | tojson }} {{ 2.5 | tojson }} {{ true | tojson }} {{ none | tojson }} {{ 5 | replace('5', 'x') }}",
    "{{ ('a' ~ 1 ~ none ~ 2.5) }} {{ names == ['a', 'b'] }} {{ 'a' in names }}"
    "{{ names is sequence }} {{ x | default('d') }}",
    "{% set d = {'items': 1, 'a': 2} %}{{ d.a }} {{ d.items() | list }} {{ d['items'] }}"
    "{{ d.b is defined }} {{ d.__class__ is defined }} {{ d.get('a') }}",
]  # fmt: skip
GIVEN: dict[str, Any] = {"names": ["a", "b"], "messages": [{"name": "a", "text": " hi "}, {"name": "b", "text": "<&>"}]}


@pytest.mark.parametrize("source", FINE)
@pytest.mark.parametrize("options", [{}, {"autoescape": True}, {"trim_blocks": True, "keep_trailing_newline": True}])
def test_templates_render_as_in_plain_jinja(source: str, options: dict[str, Any]) -> None:
    plain = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, **options)
    assert BoundedEnvironment(**options).from_string(source).render(GIVEN) == plain.from_string(source).render(GIVEN)


ARGUMENTS = {
    "attr": "'x'", "batch": "2", "default": "'d'", "d": "'d'", "format": "1", "groupby": "0", "map": "'upper'",
    "reject": "'none'", "rejectattr": "'x'", "replace": "'a', 'b'", "select": "'none'", "selectattr": "'x'",
    "slice": "2",
}  # fmt: skip
GENERATING = (
    "batch", "items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "unique"
)  # fmt: skip
FILTERS = sorted(name for name in BoundedEnvironment().filters if name.isidentifier())


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("value", [7, -2.5, True, None, "", "ab", [], ["b", "a"], {"b": 1, "a": 2}], ids=repr)
def test_filters_give_what_they_give_in_plain_jinja(name: str, value: Any) -> None:
    source = f"{{% set x = value | {name}({ARGUMENTS.get(name, '')}) %}}{{{{ x }}}}"
    source = source.replace("{{ x }}", "{{ x | list }}") if name in GENERATING else source
    plain = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined).from_string(source)
    try:
        text = plain.render(value=value)
    except Exception:
        with pytest.raises(Exception):  # noqa: B017 - the kind of mistake may differ
            BoundedEnvironment().from_string(source).render(value=value)
    else:
        assert BoundedEnvironment().from_string(source).render(value=value) == text


@given(st.lists(st.text(), max_size=20), st.integers(-5, 50))
def test_texts_and_numbers_of_any_sort(names: list[str], n: int) -> None:
    source = "{% for x in names %}{{ x ~ n }}{{ x * 2 }}{{ [x, n] }}{{ x | replace('a', 'bb') | upper }}{% endfor %}"
    given = {"names": names, "n": n}
    plain = ImmutableSandboxedEnvironment().from_string(source).render(given)
    assert BoundedEnvironment().from_string(source).render(given) == plain


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [listed.name for listed in BUILTIN.listing("prompts")])
def test_every_prompt_set_that_ships_compiles(name: str) -> None:
    prompts = BUILTIN.prompts(name)
    for template in prompts.files:
        unknown(prompts, template, set())
