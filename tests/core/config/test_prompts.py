"""Prompt sets: lookup chain, strictness, places, sandbox."""

from pathlib import Path

import pytest

from harness.api.errors import PromptError
from harness.config.prompts import PromptSet
from tests.helpers.toy import TOY


def make(folder: Path, **templates: str) -> PromptSet:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in templates.items():
        (folder / f"{name}.j2").write_text(text)
    return PromptSet("mine", [folder])


def test_a_variant_overrides_some_files_and_inherits_the_rest() -> None:
    loud = TOY.prompts("toy/loud")
    assert loud.render("say", {"round": 1}) == "ROUND 1! SAY ONE LETTER!"
    assert loud.render("system", {"name": "Ann"}) == "You are Ann."
    assert loud.digest != TOY.prompts("toy/base").digest
    assert loud.digest == TOY.prompts("toy/loud").digest


def test_a_template_that_is_no_text_is_reported_with_its_file(tmp_path: Path) -> None:
    prompts = make(tmp_path)
    (tmp_path / "say.j2").write_bytes(b"caf\xe9")
    (tmp_path / "folder.j2").mkdir()
    assert set(prompts.files) == {"say"}
    for look in (lambda: prompts.parsed("say"), lambda: prompts.render("say", {})):
        with pytest.raises(PromptError, match=r"say\.j2: template"):
            look()


def test_a_missing_variable_says_file_line_and_what_there_is(tmp_path: Path) -> None:
    prompts = make(tmp_path, say="one\ntwo {{ nmae }}")
    with pytest.raises(PromptError) as caught:
        prompts.render("say", {"name": "Ann"})
    assert str(caught.value).startswith(f"{tmp_path / 'say.j2'}:2:1: 'nmae' is undefined")
    assert "Variables here: name." in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("a\n{% for %}", "does not compile", 2),
        ("a\n\n{{ 1 // 0 }}", "template fails: .*by zero", 3),
        ("{{ ''.__class__.__mro__ }}", "unsafe", 1),
        ("{{ x.append(1) }}", "unsafe", 1),
        ("{% include 'none.j2' %}", "no template 'none.j2'", 0),
        ("{% include '../../../etc/passwd' %}", "no template", 0),
    ],
)
def test_failing_templates(tmp_path: Path, text: str, says: str, line: int) -> None:
    prompts = make(tmp_path, say=text)
    with pytest.raises(PromptError, match=says) as caught:
        prompts.render("say", {"x": []})
    if line:
        assert f"say.j2:{line}:" in str(caught.value)


def test_an_unknown_template_shows_near_matches(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="Did you mean answer"):
        make(tmp_path, answer="x").render("anwser", {})


def test_text_is_data_not_template(tmp_path: Path) -> None:
    prompts = make(tmp_path, say="<{{ text }}>")
    hostile = "{{ 7*7 }}{% raw %}\x00\ud800</script>"
    assert prompts.render("say", {"text": hostile}) == f"<{hostile}>"


def test_without_the_extension_that_bounds_templates_they_are_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.config.prompts.offers", lambda point: {})
    prompts = make(tmp_path, say="{{ x }}", look="{{ ''.__class__ }}")
    assert prompts.render("say", {"x": 1}) == "1"
    with pytest.raises(PromptError, match="unsafe"):
        prompts.render("look", {})
