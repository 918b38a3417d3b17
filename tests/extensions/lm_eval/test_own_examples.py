"""Few-shot examples that hold the question itself: counted in `validate`, `plan` and below tables; left out on wish."""

import json
from pathlib import Path

import pytest

import harness
from harness.engines.mock import Mock
from tests.helpers.commands import invoke

TASK = """\
task: own
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{file}"}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{q}}}}\\nA:"
doc_to_target: "{{{{a}}}}"
num_fewshot: {shots}
generation_kwargs: {{until: ["\\n"]}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
{more}
"""
SPEC = "name: own\ntask: {{use: lm_eval, task: own, include_path: {folder}{more}}}\nprotocol: single\n"
SAID = "prompts hold their own question with its answer among the examples"


def written(folder: Path, *, task: str = "", spec: str = "", shots: int = 3) -> str:
    rows = [{"q": f"What is {i} and {i}?", "a": str(2 * i)} for i in range(12)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "own.yaml").write_text(TASK.format(file=folder / "rows.jsonl", shots=shots, more=task))
    (folder / "spec.yaml").write_text(SPEC.format(folder=folder, more=spec))
    return str(folder / "spec.yaml")


def prompts(spec: str, folder: Path) -> tuple[list[str], harness.Run]:
    asked: list[str] = []

    def answer(request: object) -> str:
        asked.append(request.thread.messages[-1]["content"])  # type: ignore[attr-defined]
        return "0"

    return asked, harness.evaluate(spec, Mock(function=answer), output_path=folder / "run")


def shows_itself(prompt: str) -> bool:
    return prompt.count(prompt.rpartition("Q: ")[2]) > 1


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_the_number_is_in_the_command(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = written(tmp_path)
    asked, run = prompts(spec, tmp_path)
    count = sum(map(shows_itself, asked))
    assert 0 < count < len(asked) == 12
    code, out, _ = invoke(capsys, command, *(["--spec"] if command == "plan" else []), spec)
    assert code == 0 and f"own: {count} of 12 {SAID}" in out and "leave_own_out: true" in out
    assert any(f"{count} of 12 {SAID}" in note for table in run.tables for note in table.notes)


@pytest.mark.parametrize(
    ("more", "in_spec"),
    [("", ", leave_own_out: true"), ("fewshot_split: test", ""), ("fewshot_config: {samples: [{q: Who, a: I}]}", "")],
)
def test_nothing_is_said_where_no_prompt_holds_its_own(
    more: str, in_spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = written(tmp_path, task=more, spec=in_spec, shots=1 if "samples" in more else 3)
    code, out, _ = invoke(capsys, "validate", spec)
    assert code == 0 and "among the examples" not in out
    asked, _ = prompts(spec, tmp_path)
    assert len(asked) == 12 and not any(map(shows_itself, asked))


def test_without_examples_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "validate", written(tmp_path, shots=0))
    assert code == 0 and "warning" not in out
