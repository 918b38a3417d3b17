"""Old names of keys, values, options and commands: each is refused with the new one."""

from pathlib import Path

import pytest

from harness.api.errors import PluginError, SpecError
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.plugins.installed import checked
from harness.plugins.renamed import KEYS, SINCE, new_key
from tests.helpers.commands import invoke


def problem(spec: str, change: str) -> str:
    with pytest.raises(SpecError) as caught:
        resolve.plan(load(spec, builtin(), [change]), builtin())
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "change", "old", "new"),
    [
        ("arithmetic", "calls=tools", "calls", "reply_via"),
        ("arithmetic", "calls.default=tools", "calls", "reply_via"),
        ("arithmetic", "constrained=true", "constrained", "structured_output"),
        ("arithmetic", "share_calls=true", "share_calls", "dedupe_calls"),
        ("arithmetic", "fit={limit: 3}", "fit", "calibrate"),
        ("arithmetic", "fit.limit=3", "fit", "calibrate"),
        ("arithmetic", "headline={cell: score}", "cell", "metric"),
        ("arithmetic", "headline={metric: score, beside: [answered]}", "beside", "also_show"),
        ("arithmetic", "tables=[{title: T, rows: model, cell: score}]", "cell", "metrics"),
        ("arithmetic", "tables=[{title: T, rows: model, metrics: score, error: sem}]", "error", "uncertainty"),
        ("arithmetic", "tables=[{title: T, rows: model, metrics: x, loss: {x: [a, b]}}]", "loss", "relative_drop"),
        ("arithmetic", "tables=[{title: T, rows: a, metrics: score, split: {model: {m: {a: 1}}}}]", "split", "relabel"),
        (
            "arithmetic",
            "tables=[{title: T, rows: model, metrics: score, groups: [{title: G, of: [m], cells: [score]}]}]",
            "cells",
            "metrics",
        ),
        ("game_suite", "task.samples=3", "samples", "instances"),
        ("agentsnet_quick", "task.samples=3", "samples", "instances"),
        ("mmlu_pro", "task.scored=loglikelihood", "scored", "scoring"),
        ("silo_quick", "protocol.calls=tools", "calls", "reply_via"),
        ("discussion_space", "protocol.hears=ring", "hears", "topology"),
        ("arithmetic", "protocol={use: reconcile, agents: 3, unstated: 2}", "unstated", "default_confidence"),
        ("agentsnet_byzantine", "matrix.size=[{like: 4, adversaries: 1}]", "like", "inherits"),
    ],
)
def test_an_old_key_is_refused(spec: str, change: str, old: str, new: str) -> None:
    assert f"`{old}:` is called `{new}:` since {SINCE}." in problem(spec, change)


def test_a_key_of_that_name_elsewhere_is_no_old_one() -> None:
    assert new_key("samples", ["tasks", "limit"]) is None
    assert "since" not in problem("arithmetic", "task.samples=3")
    assert all(old not in names for old, names in KEYS.items())


def test_a_swept_mapping_may_have_a_key_of_an_old_name() -> None:
    changes = ["matrix.terms=[{name: a, n: 2, like: another word}]", "task.terms=${terms.n}"]
    plan = resolve.plan(load("arithmetic", builtin(), changes), builtin())
    assert {condition.labels["terms"] for condition in plan.conditions} == {"a"}


def test_an_old_value_is_refused_with_the_new_one() -> None:
    assert "must be text or tool_calls, found 'tools'" in problem("arithmetic", "reply_via=tools")
    assert "tool_calls" in problem("silo_quick", "protocol.reply_via=tools")


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (("fit", "--spec", "arithmetic"), "fit", "calibrate"),
        (("score", "run", "--readers", "all"), "--readers", "--parsers"),
        (("stress", "--spec", "arithmetic", "--least", "0.9"), "--least", "--min_parse_rate"),
        (("stress", "--spec", "arithmetic", "--forms_only"), "--forms_only", "--parse_only"),
        (
            ("eval", "--spec", "arithmetic", "--one_engine_at_a_time"),
            "--one_engine_at_a_time",
            "--sequential_engines",
        ),
    ],
)
def test_an_old_word_of_a_command_is_refused(
    words: tuple[str, ...], old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = invoke(capsys, *words)
    assert code == 2 and err.splitlines()[-1].startswith("error: ")
    assert err.splitlines()[-1].endswith(f"`{old}` is called `{new}` since {SINCE}.")


def test_an_option_of_that_name_elsewhere_stays(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "plot", "--help")
    assert code == 0 and "--by LABEL" in out


def test_an_old_table_of_a_manifest_is_refused_with_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "extension.toml"
    file.write_text('name = "mine"\nsummary = "Mine."\n\n[after.mine]\nrun = "after:Mine"\n', "utf-8")
    with pytest.raises(PluginError, match="`after:` is called `post_run:` since"):
        checked("mine", file)
