"""The process in which `harness view` plays episodes again: what it may take, and when it starts again."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import find
from harness.extensions.viewer._reader_process import Reader
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving

Dice = TOY.load("engines", "dice")


@pytest.mark.slow
def test_a_spec_of_someone_else_does_no_harm(tmp_path: Path) -> None:
    values = ", ".join(f"a{i}: [1, 2, 3, 4]" for i in range(20))
    specs = {
        "no_plugin": "name: toy\ntask: {use: none}\nprotocol: talk\n",
        "no_yaml": "a: [",
        "nothing": "",
        "endless": "name: x\nextends: /dev/zero\n",
        "huge": f"name: toy\ntask: pick\nmatrix: {{{values}}}\n",
    }
    for name, spec in specs.items():
        run(tmp_path / name)
        (tmp_path / name / "spec.yaml").write_text(spec)
    with serving(tmp_path) as client:
        for name in specs:
            episode = get(client, f"/{name}/episodes")["episodes"][0]["id"]
            shown = get(client, f"/{name}/episode", episode=episode)
            assert "prompts cannot be shown" in shown["problem"] and shown["turns"] and shown["outcome"]
        while (page := get(client, "/huge"))["tables_pending"]:
            pass
        assert page["tables"] == [] and page["tables_problem"].startswith("no tables: ")


@pytest.mark.slow
def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    with serving(tmp_path, seconds=0) as client:
        for _ in range(2):
            name = get(client, "/r/episodes")["episodes"][0]["id"]
            shown = get(client, "/r/episode", episode=name)
            assert shown["problem"] == "prompts cannot be shown: it took longer than 0 s" and shown["turns"]
        text = client.get("/api/runs/r/text", params={"episode": name, "turn": 0, "part": "call.0.text"})
        assert text.text == shown["turns"][0]["calls"][0]["text"]


@pytest.mark.slow
def test_a_run_that_takes_too_long_leaves_other_runs_alone(tmp_path: Path) -> None:
    for name in ("endless", "other"):
        run(tmp_path / name)
    spec = tmp_path / "endless" / "spec.yaml"
    original = spec.read_text()
    with serving(tmp_path, seconds=2) as client:
        ids = [row["id"] for row in get(client, "/endless/episodes")["episodes"]]
        assert ids == [row["id"] for row in get(client, "/other/episodes")["episodes"]]
        spec.write_text(re.sub(r"(\n +)(use: pick\n)", r"\1\2\1cases_made: 1000000000000\n", original))
        endless = get(client, "/endless/episode", episode=ids[0])
        assert endless["problem"] == "prompts cannot be shown: it took longer than 2 s" and endless["turns"]
        assert get(client, "/other/episode", episode=ids[0])["problem"] is None
        spec.write_text(original)  # another spec is another try
        assert get(client, "/endless/episode", episode=ids[0])["problem"] is None


VIEW = '''from harness.transcripts.view_api import Scene, View
from harness.api import plugin


@plugin
class Sketch(View):
    """A caption."""

    def draws(self, task, protocol):
        return True

    def scenes(self, transcript, task):
        for _ in range(len(transcript.rounds) + 1):
            yield Scene("{caption}")
'''


@pytest.mark.slow
def test_plugins_and_prompts_that_change_are_read_again(tmp_path: Path) -> None:
    shutil.copytree(TOY.root, tmp_path / "toy", ignore=shutil.ignore_patterns("__pycache__"))
    project = find(tmp_path / "toy")
    harness.evaluate("toy", output_path=tmp_path / "results" / "r", project=project)
    view, prompt = project.root / "registry" / "views" / "sketch.py", project.root / "prompts/toy/base/system.j2"
    with serving(tmp_path / "results", project.root) as client:
        name = get(client, "/r/episodes")["episodes"][0]["id"]

        def shown() -> Any:
            return get(client, "/r/episode", episode=name)

        assert shown()["scenes"][0]["caption"] == "2 agents before the first turn." and shown()["problem"] is None
        view.parent.mkdir()
        view.write_text(VIEW.format(caption="drawn"))
        assert shown()["scenes"][0]["caption"] == "drawn"
        view.write_text(VIEW.format(caption="drawn otherwise"))
        prompt.write_text("Your name is {{ name }}.")
        now = shown()
        assert now["scenes"][0]["caption"] == "drawn otherwise"
        assert now["turns"][0]["prompt"][0]["text"] == f"Your name is {now['turns'][0]['agent']}."
        assert "changed since the run: prompts/toy/base" in now["problem"]


@pytest.mark.slow
def test_the_child_imports_what_it_needs_before_its_first_job() -> None:
    reader = Reader(Path(__file__).parents[3])
    try:
        assert reader.do("nothing") is None  # `warm` asks it too, and leaves its mistakes to the first job
    finally:
        reader.close()
