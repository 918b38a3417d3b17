"""Prompts are the texts that Jinja itself renders, and errors have the places that it gives them."""

import traceback
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.config.prompt_templates import QuickEnvironment
from harness.extensions.yaml_tasks.bounded_templates import BoundedEnvironment

FACTS = {"name": "Ann", "n": 3, "items": ["p", "q", "r"], "more": {"name": "Bob", "list": [1, 2]}, "empty": []}
OPTIONS: dict[str, Any] = {
    "undefined": jinja2.StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "auto_reload": False,
}
KINDS = (QuickEnvironment, BoundedEnvironment)
PARTS = (
    "{{ name }}, {{ n }}.\n",
    "{{ more.name }}{{ more.list | join('-') }}",
    "{% set name = 'set' %}",
    "{% set n %}{{ name }}!{% endset %}",
    "{% for name in items %}[{{ loop.index }}{{ name }}%s]{% endfor %}",
    "{% for one in empty %}%s{% else %}none %s{% endfor %}",
    "{% if n is defined and n == 3 %}three %s{% else %}else %s{% endif %}",
    "{% with name = 'with' %}%s{{ name }}{% endwith %}",
    "{% macro m(a, b='b') %}<{{ a }}{{ b }}{{ name }}%s{{ caller() if caller else '' }}>{% endmacro %}"
    "{{ m('x') }}{% call m(1) %}%s{% endcall %}",
    "{% filter upper %}%s{{ name }}{% endfilter %}",
    "{% block inner scoped %}{{ name }}%s{% endblock %}",
    "{{ self.inner() if self.inner is defined else '' }}",
    "{% include 'LEAF' %}",
    "{% include 'LEAF' without context %}",
    "{% include ['absent.j2', 'LEAF'] %}",
    "{% include 'absent.j2' ignore missing %}",
    "{% import 'LIB' as lib with context %}{{ lib.say(name) }}{{ lib.word }}",
    "{% import 'LIB' as lib %}{{ lib.word }}{{ lib.plain(name) }}",
    "{% from 'LIB' import say as tell, word with context %}{{ tell(n) }}{{ word }}",
    "{% include 'L' ~ 'EAF' %}{% import 'L' ~ 'IB' as lib with context %}{{ lib.say(1) }}",
    "\n{{ missing_fact }}",
    "\n{{ more.missing }}",
    "{{ 1 // (n - 3) }}",
    "{% include 'absent.j2' %}",
    "{{ ''.__class__.__mro__ }}",
)
LIBRARY = (
    "{% set word = 'word' %}{% macro plain(x) %}({{ x }}){% endmacro %}"
    "{% macro say(x) %}\n{{ x }}{{ name }}{{ n }}{% endmacro %}"
)


@st.composite
def texts(draw: st.DrawFn, depth: int = 2) -> str:
    """A template of some parts, with further ones inside."""
    text = ""
    for part in draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)):
        while "%s" in part:
            part = part.replace("%s", draw(texts(depth - 1)) if depth else "", 1)
        text += part
    return text


def files(main: str, leaf: str, base: str) -> dict[str, str]:
    """Templates that include and import only those below them."""
    head = "{% block head %}base {{ name }}{% endblock %}"
    return {
        "LIB": LIBRARY,
        "LEAF": leaf.replace("'LEAF'", "'LIB'").replace("'L' ~ 'EAF'", "'LIB'"),
        "base": head + "\n" + base,
        "main": main,
        "child": "{% extends 'base' %}{% block head %}\n{{ super() }} child " + "{{ n }}{% endblock %}",
        "broken": "{% extends 'base' %}{% block head %}\n\n{{ super() }}{{ absent }}{% endblock %}",
    }


def outcome(kind: type[jinja2.Environment], loaded: dict[str, str], name: str, facts: dict[str, Any]) -> object:
    """The texts of two renderings, or what went wrong and where."""
    environment = kind(loader=jinja2.DictLoader(loaded), **OPTIONS)
    try:
        template = environment.get_template(name)
        return template.render(facts), template.render({**facts, "name": "Cid"})
    except jinja2.TemplateSyntaxError as error:
        return type(error), error.message, error.name, error.lineno
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return type(error), str(error), [(f.filename, f.lineno, f.name) for f in frames if f.filename == "<template>"]


@given(main=texts(), leaf=texts(1), base=texts(1), name=st.sampled_from(["main", "child", "broken"]))
def test_texts_and_errors_are_those_of_plain_jinja(main: str, leaf: str, base: str, name: str) -> None:
    loaded = files(main, leaf, base)
    plain = outcome(ImmutableSandboxedEnvironment, loaded, name, FACTS)
    for kind in KINDS:
        assert outcome(kind, loaded, name, FACTS) == plain


@given(part=st.sampled_from(PARTS), name=st.sampled_from(["main", "child", "broken"]))
def test_every_part_alone_is_rendered_as_by_plain_jinja(part: str, name: str) -> None:
    loaded = files(part.replace("%s", "{{ n }}"), part.replace("%s", ""), part.replace("%s", "-"))
    plain = outcome(ImmutableSandboxedEnvironment, loaded, name, FACTS)
    for kind in KINDS:
        assert outcome(kind, loaded, name, FACTS) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_one_rendering_leaves_nothing_for_the_next(kind: type[jinja2.Environment]) -> None:
    text = "{{ kept is defined }}{% set kept = 1 %}{% include 'part' %}{{ kept }}{% include 'part' %}"
    loaded = {"main": text, "part": "{% set kept = (kept | default(0)) + 1 %}{{ kept }}"}
    template = kind(loader=jinja2.DictLoader(loaded), **OPTIONS).get_template("main")
    assert [template.render() for _ in range(2)] == ["False212", "False212"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_is_the_line_of_the_included_file(kind: type[jinja2.Environment], tmp_path: Path) -> None:
    (tmp_path / "main.j2").write_text("one\n{% for i in [1] %}\n{% include 'part.j2' %}\n{% endfor %}")
    (tmp_path / "part.j2").write_text("one\ntwo\n{{ absent }}")
    environment = kind(loader=jinja2.FileSystemLoader(tmp_path), **OPTIONS)
    with pytest.raises(jinja2.UndefinedError) as caught:
        environment.get_template("main.j2").render()
    frames = traceback.extract_tb(caught.value.__traceback__)
    lines = [(Path(frame.filename).name, frame.lineno) for frame in frames if frame.filename.endswith(".j2")]
    assert lines == [("main.j2", 3), ("part.j2", 3)]
