"""Mistakes in a call of `harness.evaluate` name its parameters, and `help` describes every one of them."""

import inspect
import pydoc
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import UserError
from harness.runtime.options import NAMES
from tests.helpers.toy import TOY


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "moc"}, "model: there is no engine 'moc'"),
        ({"model": "hf"}, "model='vllm' model_args={'pretrained': 'NAME'}"),
        ({"model": "hf:Qwen/Qwen3-8B"}, "model='vllm' model_args={'pretrained': 'NAME'}"),
        ({"model": "vllm:Qwen/Qwen3-8B"}, "model='vllm' model_args={'pretrained': 'NAME'}"),
        ({"model": "openai/gpt-5"}, "model='openai' model_args={'model': 'NAME'}"),
        ({"model": "mock", "model_args": {"nam": 1}}, "model_args: engine 'mock': unknown key 'nam'"),
        ({"model_args": {"nam": 1}}, "model_args without the name of an engine"),
        ({"limit": -1}, "limit=-1: 'limit' must be ≥ 1, found -1"),
        ({"limit": 0.5}, "limit=0.5: 'limit' must be an integer, found the number 0.5"),
        ({"seed": "a"}, "seed='a': 'seed' must be an integer"),
        ({"executor": "loca"}, "executor: there is no executor 'loca'"),
        ({"executor": {"use": "local", "worker": 2}}, "executor: executor 'local': unknown key 'worker'"),
        ({"overrides": ["x"]}, "overrides=['x']: expected path=value, e.g. overrides=['task.instances=1']"),
        ({"overrides": ["task.no=1"]}, "overrides=['task.no=1']: task 'pick': unknown key 'no'"),
        ({"max_concurrency": 0}, "max_concurrency must be a whole number, at least 1, found 0"),
        ({"max_error_rate": 7}, "max_error_rate must be a share from 0 to 1, found 7"),
        ({"sandbox": "none"}, "sandbox must be process, bwrap or weaker, found 'none'"),
        ({"resume": True}, "Drop resume=True to start it."),
    ],
)
def test_a_mistake_names_the_parameter_as_the_caller_wrote_it(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        harness.evaluate("toy", output_path=tmp_path / "run", project=TOY, **given)
    text = str(caught.value)
    assert says in text and "--" not in text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["gen_kwargs", "generation_kwargs"])
def test_options_of_lm_eval_have_a_hint(name: str) -> None:
    options: dict[str, Any] = {name: {"temperature": 0}}
    with pytest.raises(TypeError, match=r"overrides=\['generation_kwargs\.temperature=0\.7'\]"):
        harness.evaluate("toy", project=TOY, **options)


def test_help_describes_every_option_once() -> None:
    text = pydoc.plain(pydoc.render_doc(harness.evaluate))
    arguments = text[text.index("Args:") : text.index("Raises:")]
    options = [name for name in inspect.signature(harness.evaluate).parameters if name not in ("self", "options")]
    assert {*NAMES} < {*options}
    for name in options:
        assert arguments.count(f"\n        {name}: ") == 1, name
