"""A folder of someone else whose code shows that it ran, and what approves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from harness.cli import main
from harness.config.project import find

TASK = {
    "task": "foreign",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "DATA"}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "FUNCTION",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"]},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


class Stranger:
    """A folder of someone else; all that runs of it leaves a file in `ran`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran = folder, folder.parent / "ran"
        folder.mkdir(parents=True)
        (folder / "rows.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')

    def code(self, name: str) -> str:
        """Python that shows that it ran."""
        return f"import pathlib\npathlib.Path({str(self.ran)!r}).mkdir(exist_ok=True)\n" + (
            f"pathlib.Path({str(self.ran)!r}, {name!r}).touch()\n"
        )

    def task(self, name: str = "foreign", text: str = "!function utils.text", **more: Any) -> Path:
        """A task of lm-eval whose YAML names Python beside it."""
        (self.folder / "utils.py").write_text(
            self.code("utils") + "def text(doc):\n    return 'Q: ' + doc['question']\n"
        )
        body = yaml.safe_dump({**TASK, "task": name, **more})
        body = body.replace("DATA", str(self.folder / "rows.jsonl")).replace("FUNCTION", text)
        file = self.folder / f"{name}.yaml"
        file.write_text(body)
        return file

    def spec(self, **more: Any) -> Path:
        """A spec that plays it."""
        task = {"use": "lm_eval", "task": "foreign", "include_path": str(self.folder)}
        file = self.folder / "spec.yaml"
        file.write_text(yaml.safe_dump({"name": "foreign", "task": task, "protocol": "single", **more}))
        return file

    @property
    def did(self) -> list[str]:
        """What ran."""
        return sorted(path.name for path in self.ran.iterdir()) if self.ran.is_dir() else []


def trust(*words: str) -> int:
    return main(["trust", *words, "--yes"])


def needed_by(file: Path, project: Any = None) -> list[str]:
    """What a spec's models would send and what is not approved, with all variables set."""
    from harness.config.needed_approvals import approvals_of
    from harness.config.spec import load

    return [one.what for one in approvals_of(load(str(file), project or find()), find())]


def find_with(parent: Path) -> Any:
    (Path.cwd() / "harness.yaml").write_text(f"parents: [{parent}, harness_builtin]\n")
    return find()
