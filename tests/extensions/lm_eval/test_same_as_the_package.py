"""The options of the task `lm_eval`: prompts, values, errors and groups against the package's own evaluation.

`tests/extensions/lm_eval/test_lm_eval_parity.py` compares every kind of task as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.lm_eval.package_kit import Oracle, evaluated, played

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("multiturn", {"apply_chat_template": True, "system_instruction": "Be brief."}),
    ("multiturn", {"apply_chat_template": True, "fewshot_as_multiturn": False}),
    ("multiturn", {"num_fewshot": 2, "system_instruction": "Be brief."}),
    ("chat", {"apply_chat_template": True}),
    ("chat", {}),
    ("group", {"limit": 5}),
    ("majority", {}),
    ("choice_list", {"apply_chat_template": True}),
    ("delimiter", {"num_fewshot": 1, "fewshot_seed": 7}),
    ("pronouns", {"apply_chat_template": True}),
    ("last_word", {"limit": 0.5}),
    ("undeclared", {}),
    ("hub_metric", {}),
    ("topics", {"samples": {"local_group_rivers": [3, 0]}}),
]


def named(kind: str, options: dict[str, Any]) -> Any:
    letters = "".join(word[0] for name in options for word in name.split("_"))
    return pytest.param(kind, options, id=f"{kind}-{letters}" if letters else kind)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "options"), [named(*one) for one in KINDS])
def test_the_same_prompts_and_numbers(
    kind: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISABLE_MULTIPROC", "1")
    theirs, ours = Oracle(), Oracle()
    asked = {"fewshot_as_multiturn": bool(options.get("apply_chat_template")), **options}
    if "fewshot_seed" in asked:
        asked["fewshot_random_seed"] = asked.pop("fewshot_seed")
    package = evaluated([f"local_{kind}"], theirs, **asked)
    run = played({"task": f"local_{kind}", **options}, ours, tmp_path)
    assert ours.asked == theirs.asked
    assert not run.failed
    table = run.tables[0]
    cells = {
        (row.names[0], column.metric): cell
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.value is not None
    }
    expected = {
        (task, name): (value, results[f"{metric}_stderr,{filter}"])
        for task, results in package["results"].items()
        for name, value in results.items()
        for metric, _, filter in [name.partition(",")]
        if filter and not metric.endswith("_stderr")
    }
    assert expected
    for (task, name), (value, stderr) in expected.items():
        alias = package["results"][task]["alias"]
        titles = [task] if task not in package.get("groups", {}) else [alias, f"{alias} (by size)", f"{alias} (equal)"]
        [cell] = [cells[title, name] for title in titles if (title, name) in cells]
        assert cell.value == pytest.approx(value, rel=1e-12, abs=1e-15), (task, name)
        assert cell.stderr == (None if stderr == "N/A" else pytest.approx(stderr, rel=1e-9, abs=1e-15)), (task, name)
