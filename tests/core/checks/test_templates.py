"""Which variables templates read."""

from pathlib import Path

from harness.checks.templates import unknown
from harness.config.prompts import PromptSet


def test_unknown_variables_are_found_in_branches_not_taken(tmp_path: Path) -> None:
    (tmp_path / "say.j2").write_text(
        "{% if x %}\n{{ typo }}{% endif %}{% set y = 1 %}{{ y }}{% for i in x %}{{ i }}{% endfor %}"
    )
    found = unknown(PromptSet("mine", [tmp_path]), "say", {"x"})
    assert [(name, place.line) for name, place in found] == [("typo", 2)]
