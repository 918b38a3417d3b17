"""Texts of tasks in YAML: templates over an agent's facts."""

import pickle

import pytest

from harness.api.errors import PluginError
from harness.extensions.yaml_tasks.wordings import Wording

FACTS = ("name", "demand")


def test_a_text_with_facts() -> None:
    text = Wording("goal", "\nYou are {{ name }}.{% if demand > 1 %} Take {{ demand }}.{% endif %}\n", FACTS)
    assert text({"name": "Ann", "demand": 2}) == "You are Ann. Take 2."
    assert pickle.loads(pickle.dumps(text))({"name": "Bo", "demand": 1}) == "You are Bo."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ demnad }}", "goal uses the fact 'demnad', which agents do not have\n  Did you mean demand?"),
        ("one\n{{ demand", "goal, line 2:"),
    ],
)
def test_mistakes_show_when_it_is_read(source: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        Wording("goal", source, FACTS)
    assert message in str(caught.value) and caught.value.at == ("goal",)


@pytest.mark.parametrize(
    "source", ["{{ 1 / demand }}", "{% for i in range(10 ** 9) %}{% endfor %}", "{{ name.first }}"]
)
def test_what_fails_later_is_no_traceback(source: str) -> None:
    with pytest.raises(PluginError, match="goal: "):
        Wording("goal", source, FACTS)({"name": "Ann", "demand": 0})
