"""`harness report --format html`: one page with everything about runs, which fetches nothing and runs no text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import harness
from harness.engines.mock import Mock
from tests.helpers.commands import ROOT, invoke
from tests.helpers.hostile import HOSTILE

VOID = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """A page as a browser reads it: its tags must nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)

    @property
    def headings(self) -> list[str]:
        return [heading for heading in SECTIONS if heading in self.texts]


SECTIONS = ["Headline", "Charts", "Tables", "Example episodes", "Run record"]


PAGES: dict[tuple[Path, ...], str] = {}
"""A page takes over a second: tests that look at the same runs share one."""


def report(capsys: pytest.CaptureFixture[str], folder: Path, *runs: Path) -> str:
    """The page on these runs."""
    if runs not in PAGES:
        file = folder / "report.html"
        code, out, err = invoke(capsys, "report", *map(str, runs), "--format", "html", "-o", str(file))
        assert (code, out) == (0, f"report: {file}\n"), err
        PAGES[runs] = file.read_text("utf-8")
    return PAGES[runs]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("folders", "charts"),
    [
        (["small", "hostile"], ["Accuracy by Terms", "Accuracy by cost", "How episodes ended, by Model"]),
        (["panel"], ["Stated confidence and right answers"]),
        (["network"], ["Who sent messages to whom"]),
    ],
    ids=["two", "panel", "network"],
)
def test_a_page_has_all_that_the_runs_have(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], folders: list[str], charts: list[str]
) -> None:
    text = report(capsys, tmp_path, *(runs / folder for folder in folders))
    page = Page(text)
    assert page.headings == SECTIONS
    titles = {attrs["id"]: attrs for tag, attrs in page.tags if tag in ("title", "desc") and attrs.get("id")}
    drawn = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert len(drawn) >= len(charts)
    for svg in drawn:
        assert svg["role"] == "img" and set((svg["aria-labelledby"] or "").split()) <= set(titles)
    assert [chart for chart in charts if chart not in page.texts] == []
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_a_page_fetches_nothing_and_runs_its_own_script_only(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Page(report(capsys, tmp_path, runs / "small", runs / "hostile"))
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; ")
    [script] = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    for tag, attrs in page.tags:
        assert tag not in ("img", "link", "iframe", "object", "image", "form")
        for name, value in attrs.items():
            assert not name.startswith("on") and name != "src"
            assert name not in ("href", "xlink:href") or (value or "").startswith("#")
    assert not re.search(r"@import|url\((?!#)", json.dumps(page.tags))


def test_hostile_text_stays_text(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = report(capsys, tmp_path, runs / "small", runs / "hostile")
    assert "\u202e" not in text and "\x1b" not in text
    page = Page(text)
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert sum(shown in said for said in page.texts) > 10  # names, replies, reasoning
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 1


def test_examples_show_prompts_replies_and_actions(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = report(capsys, tmp_path, runs / "small")
    page = Page(text)
    badges = re.findall(r'<b class="badge \w+">([^<]+)</b>', text)
    assert badges == ["solved", "solved", "not solved", "not solved", "the shortest"]
    said = " ".join(page.texts)
    assert "End your reply with a line like this" in said and "Confidence: 0." in said and "reasoning" in page.texts


@pytest.mark.slow
def test_a_long_episode_is_shown_in_part(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(Page(report(capsys, tmp_path, runs / "network")).texts)
    assert re.search(r"… \d+ turns are left out", said)


@pytest.mark.slow
def test_the_record_says_how_to_run_it_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["eval", "--spec", "agentsnet_quick", "--limit", "1", "--output_path", str(tmp_path / "r"), "--quiet"]
    made = [sys.executable, "-m", "harness", *command]
    subprocess.run(made, check=True, capture_output=True, cwd=ROOT)
    said = Page(report(capsys, tmp_path, tmp_path / "r")).texts
    assert " ".join(["harness", *command]) in said
    assert {"versions", "hardware", "duration", "spec.yaml, resolved"} <= set(said)


@pytest.mark.slow
def test_without_matplotlib_the_data_stand_in_the_charts_place(runs: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from harness.cli import main\n"
        f"raise SystemExit(main(['report', {str(runs / 'small')!r}, '--format', 'html', '-o', 'r.html']))"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=tmp_path, env=environment)
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert page.headings == SECTIONS
    assert 'pip install "mas-eval-harness[plots]" draws these charts.' in page.texts
    assert "svg" not in {tag for tag, _ in page.tags}


def test_reports_of_several_runs_merge_their_tables(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "report", str(runs / "small"), str(runs / "hostile"), "--format", "json")
    [first, *_] = json.loads(out)
    assert code == 0 and [row["names"] for row in first["rows"]] == [["small"], [HOSTILE]]


def test_a_damaged_journal_is_an_error_of_one_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.copytree(runs / "small", tmp_path / "run")
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"k":"end"', b'"k":"eNd"', 1))
    code, _, err = invoke(capsys, "report", str(tmp_path / "run"), "--format", "html", "-o", str(tmp_path / "r.html"))
    assert code == 2 and "the file is damaged" in err and "Traceback" not in err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.slow
def test_long_texts_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reply = "long " * 100_000 + "#### 1"
    model = Mock(model="m" * 50_000, text=reply)
    overrides = ["task.size=3", "matrix.terms=[2]"]
    harness.evaluate("arithmetic", model, overrides=overrides, output_path=tmp_path / "r")
    text = report(capsys, tmp_path, tmp_path / "r")
    assert "more characters" in text and len(text) < 300_000
