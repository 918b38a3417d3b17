"""`harness leaderboard --format site`: pages, addresses, hostile names, what is written and where."""

from __future__ import annotations

import csv
import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import evaluate
from harness.engines.mock import Mock
from harness.extensions.site import addresses, drawings
from harness.extensions.viewer import standalone
from tests.helpers.commands import invoke
from tests.helpers.finished import calculator
from tests.helpers.hostile import HOSTILE

Capsys = pytest.CaptureFixture[str]
VOID = {"meta", "link", "br", "input"}
PATHS = "../../../outside"
SUMS = ["task.size=4", "matrix.terms=[2,3]"]


class Page(HTMLParser):
    """A page: its elements, with what they say, and what is wrong with its shape."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.wrong: list[str] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)
        self.wrong += [f"{tag} is not closed" for tag, _, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements += [(tag, dict(attrs), "")] if tag in VOID else []
        if tag not in VOID:
            self._open.append((tag, dict(attrs), []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        opened, attributes, said = self._open.pop()
        if opened != tag:
            self.wrong.append(f"{opened} is closed as {tag}")
        text = "".join(said)
        self.elements.append((opened, attributes, text))
        if self._open:
            self._open[-1][2].append(text)

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][2].append(data)

    def all(self, *tags: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for tag, attributes, text in self.elements if tag in tags]


def site(capsys: Capsys, *arguments: object) -> tuple[int, str, str]:
    return invoke(capsys, "leaderboard", *map(str, arguments), "--format", "site")


def pages(folder: Path) -> dict[str, Page]:
    """Address → page."""
    return {file.relative_to(folder).as_posix(): Page(file.read_text("utf-8")) for file in folder.rglob("*.html")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two benchmarks: a hostile model, one with a path for a name, policies."""
    top = tmp_path_factory.mktemp("results")
    for folder, name, wrong_from in (("hostile", HOSTILE, 3), ("path", PATHS, 9), ("plain", "qwen2.5-7b", 2)):
        model = Mock(model=name, function=calculator(wrong_from, 10))
        evaluate("arithmetic", model, overrides=SUMS, output_path=top / folder)
    evaluate("arithmetic", overrides=[*SUMS, "baseline=calculator"], output_path=top / "policy")
    evaluate("arithmetic_votes", overrides=["baseline=calculator"], limit=1, output_path=top / "alone")
    for policy in ("random", "dpbench/polite"):
        own = top / f"dp {policy.replace('/', ' ')} <b>"
        evaluate("dpbench_quick", overrides=[f"baseline={policy}", "matrix.condition=[sim3nc]"], output_path=own)
    return top


@pytest.fixture(scope="module")
def made(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of these runs."""
    from harness.cli import main

    target = tmp_path_factory.mktemp("made") / "site"
    assert main(["leaderboard", str(runs), "--format", "site", "-o", str(target), "--author", "A. <i>Turing"]) == 0
    return target


@pytest.fixture(scope="module")
def shown(made: Path) -> dict[str, Page]:
    """Its pages, read once for all tests."""
    return pages(made)


def test_every_link_leads_to_a_file_of_the_site(made: Path, shown: dict[str, Page]) -> None:
    for address, page in shown.items():
        for attributes, _ in page.all("a", "link", "script"):
            target = attributes.get("href") or attributes.get("src")
            if target is None:
                continue
            parts = urlsplit(target)
            assert not parts.scheme and not parts.netloc, (address, target)
            if parts.path:
                file = (made / address).parent / unquote(parts.path)
                assert file.is_file() and file.resolve().is_relative_to(made.resolve()), (address, target)


def test_pages_have_the_structure_that_a_screen_reader_needs(shown: dict[str, Page]) -> None:
    for address, page in shown.items():
        assert page.wrong == [], address
        assert len(page.all("h1")) == 1 and len(page.all("main")) == 1, address
        assert page.all("title")[0][1].strip(), address
        levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert all(b - a <= 1 for a, b in pairwise(levels)), (address, levels)
        assert all(attributes.get("scope") for attributes, _ in page.all("th")), address
        assert all(text.strip() for attributes, text in page.all("th")), address
        assert all(a.get("aria-hidden") == "true" or a.get("role") == "img" for a, _ in page.all("svg")), address
        ids = [attributes["id"] for _, attributes, _ in page.elements if attributes.get("id")]
        assert len(ids) == len({*ids}), address
        named = [a["aria-labelledby"] for _, a, _ in page.elements if a.get("aria-labelledby")]
        assert {one for names in named for one in str(names).split()} <= {*ids}, address
        labels = {attributes.get("for") for attributes, _ in page.all("label")}
        assert {attributes.get("id") for attributes, _ in page.all("select")} <= labels, address
        assert page.all("nav")[0][0].get("aria-label"), address


def test_hostile_names_and_replies_are_text(shown: dict[str, Page]) -> None:
    for address, page in shown.items():
        assert not page.all("img", "i", "b", "iframe", "object"), address
        for attributes, body in page.all("script"):
            assert attributes.get("src") or attributes.get("type") == "application/json", address
            assert "<" not in body, address
        assert not [a for _, attributes, _ in page.elements for a in attributes if a.startswith("on") or a == "style"]
        policy = next(a["content"] for a, _ in page.all("meta") if a.get("http-equiv"))
        assert "default-src 'none'" in str(policy) and "unsafe" not in str(policy)
    said = " ".join(text for page in shown.values() for _, text in page.all("h1"))
    assert "<script>alert(1)</script>" in said and PATHS in said and "\u202e" not in said


def test_files_lie_in_the_folder_under_plain_names(made: Path) -> None:
    assert [entry.name for entry in made.parent.iterdir()] == ["site"]
    for file in made.rglob("*"):
        parts = file.relative_to(made).parts
        assert all(re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", part) for part in parts), parts
        assert not file.is_symlink()


def test_data_stand_beside_pages_and_agree_with_the_board(
    made: Path, runs: Path, capsys: Capsys, shown: dict[str, Page]
) -> None:
    code, out, _ = invoke(capsys, "leaderboard", str(runs), "--format", "json")
    assert code == 0
    boards = {table["title"]: table for table in json.loads(out)}
    for name in ("arithmetic", "dpbench_quick"):
        folder = made / "benchmarks" / name
        data = json.loads((folder / "data.json").read_text())
        assert data["parts"][0]["standings"] == boards[f"{name}: standings"]
        page = Page((folder / "index.html").read_text())
        for row in data["parts"][0]["standings"]["rows"]:
            assert any(f"{100 * row['cells'][0]['value']:.1f}%" in text for _, text in page.all("td"))
    for file in made.rglob("data.json"):
        json.loads(file.read_text())
        assert [*csv.reader(file.with_name("data.csv").read_text().splitlines())], file
    first = json.loads((made / "data.json").read_text())
    assert {one["page"] for key in ("benchmarks", "models", "runs") for one in first[key]} <= shown.keys()


def test_all_is_there_without_scripts(made: Path, shown: dict[str, Page]) -> None:
    first = shown["index.html"]
    text_of_first = " ".join(text for _, text in first.all("main"))
    for word in ("arithmetic", "dpbench_quick", "qwen2.5-7b", "dpbench/polite", "rank 1"):
        assert word in text_of_first
    assert [a for a, _ in first.all("svg") if a.get("class") == "strip"]
    episodes = [page for address, page in shown.items() if "/episodes/" in address]
    assert len(episodes) >= len([*(made / "runs").glob("*/index.html")])
    for page in episodes:
        assert [text for _, text in page.all("pre") if text.strip()]
    run = next(page for page in shown.values() if any("A run of" in text for _, text in page.all("p")))
    said = " ".join(text for _, text in run.all("main"))
    for word in ("What was played", "Play it again", "harness eval --spec spec.yaml", "digest", "harness verify"):
        assert word in said


def test_models_lead_and_policies_are_called_what_they_are(shown: dict[str, Page]) -> None:
    """A policy that knows the answers is ahead of all models, and leads none of them."""
    rows = {text.split()[0]: text for _, text in reversed(shown["index.html"].all("tr")) if text.strip()}
    assert "calculator" not in rows["arithmetic"] and "scripted" not in rows["arithmetic"]
    assert "scripted policy" in rows["dpbench_quick"]
    assert "the only one that was run" in rows["arithmetic_votes"] and "may be first" not in rows["arithmetic_votes"]
    assert "3 models and 3 scripted policies" in shown["index.html"].all("p")[0][1]
    listed = [text for _, text in shown["models/index.html"].all("th")]
    assert "calculatorscripted policy" in listed and "qwen2.5-7b" in listed
    [board, *_] = [text for _, text in shown["benchmarks/arithmetic/index.html"].all("table")]
    assert "calculator (ceiling)scripted policy" in board.replace("\n", "")


def test_charts_show_the_numbers_of_plot(made: Path, runs: Path, capsys: Capsys) -> None:
    data = json.loads((made / "benchmarks" / "arithmetic" / "data.json").read_text())["parts"][0]
    charts = {chart["kind"]: chart for chart in data["charts"]}
    assert {*charts} == {"pareto", "scaling", "failures"}
    page = Page((made / "benchmarks" / "arithmetic" / "index.html").read_text())
    assert [text.strip() for _, text in page.all("h2")][:4] == [
        "Standings", "Cost against quality", "Scaling", "How episodes ended"
    ]  # fmt: skip
    assert {row[0] for row in charts["failures"]["rows"]} == {HOSTILE, PATHS, "qwen2.5-7b", "calculator"}
    assert {row[6] for row in charts["pareto"]["rows"]} == {"yes", "no"}


@pytest.mark.slow
def test_more_runs_change_no_address(runs: Path, made: Path, tmp_path: Path, capsys: Capsys) -> None:
    more = Path(shutil.copytree(runs, tmp_path / "deeper" / "runs")).parent
    again = Mock(model="qwen2.5-7b", function=calculator(9, 20))
    evaluate("arithmetic", again, overrides=SUMS, output_path=more / "another")
    evaluate("arithmetic", Mock(model="new", function=calculator(9, 20)), overrides=SUMS, output_path=more / "new")
    target = tmp_path / "site"
    assert site(capsys, more, "-o", target)[0] == 0
    before, after = ({*pages(one)} for one in (made, target))
    assert before < after
    rows = json.loads((target / "benchmarks" / "arithmetic" / "data.json").read_text())["parts"][0]["standings"]["rows"]
    assert sum(row["key"]["model"].startswith("qwen2.5-7b (") for row in rows) == 2  # two runs, one page
    assert len([one for one in after if one.startswith("models/qwen2.5-7b")]) == 1


@pytest.mark.slow
def test_the_same_runs_give_the_same_files_and_old_pages_go(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    some = Path(shutil.copytree(runs, tmp_path / "runs"))
    target = tmp_path / "site"
    assert site(capsys, some, "-o", target)[0] == 0
    (target / "CNAME").write_text("example.org")
    before = {file: file.read_bytes() for file in target.rglob("*") if file.is_file()}
    times = {file: file.stat().st_mtime_ns for file in before}
    assert site(capsys, some, "-o", target)[0] == 0
    assert {file: file.read_bytes() for file in target.rglob("*") if file.is_file()} == before
    assert {file for file in before if file.stat().st_mtime_ns != times[file]} == set()
    shutil.rmtree(some / "plain")
    assert site(capsys, some, "-o", target)[0] == 0
    assert not (target / "models" / "qwen2.5-7b").exists() and (target / "CNAME").read_text() == "example.org"


def test_a_folder_of_something_else_is_left_alone(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    other = tmp_path / "work"
    other.mkdir()
    (other / "thesis.tex").write_text("years")
    for mark in (None, "[]", '{"files": ["thesis.tex"]}', "{" * 10_000):
        if mark is not None:
            (other / "site.json").write_text(mark)
        before = {file.name: file.read_bytes() for file in other.iterdir()}
        code, _, err = site(capsys, runs, "-o", other)
        assert code != 0 and "is no site" in err and "-o a new or an empty folder" in err
        assert {file.name: file.read_bytes() for file in other.iterdir()} == before
    code, _, err = site(capsys, runs, "-o", other / "thesis.tex")
    assert code != 0 and "is a file" in err
    code, _, err = site(capsys, runs)
    assert code != 0 and "a site needs a folder" in err
    code, _, err = invoke(capsys, "leaderboard", str(runs), "--verify")
    assert code != 0 and "--format site" in err


@pytest.mark.slow
def test_nothing_is_written_or_removed_through_links(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    target, outside = tmp_path / "site", tmp_path / "outside"
    outside.mkdir()
    (outside / "index.html").write_text("mine")
    target.mkdir()
    names = ["../outside/index.html", "models/index.html", str(outside / "index.html")]
    mark = {"made_by": "harness leaderboard --format site", "schema": 1, "files": names}
    (target / "site.json").write_text(json.dumps(mark))
    (target / "models").symlink_to(outside)
    code, _, err = site(capsys, runs, "-o", target)
    assert code != 0 and "symbolic link" in err
    (target / "models").unlink()
    (target / "index.html").unlink(missing_ok=True)
    (target / "index.html").symlink_to(outside / "index.html")
    assert site(capsys, runs, "-o", target)[0] == 0
    assert (outside / "index.html").read_text() == "mine" and not (target / "index.html").is_symlink()


@pytest.mark.slow
def test_verify_says_on_each_page_what_was_found(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    some = Path(shutil.copytree(runs / "dp random <b>", tmp_path / "runs" / "good")).parent
    forged = Path(shutil.copytree(runs / "dp dpbench polite <b>", some / "forged"))
    lines = [json.loads(line) for line in (forged / "scores.jsonl").read_text().splitlines()]
    for line in lines:
        line["numbers"]["dpbench/success"] = 1.0
    (forged / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert site(capsys, some, "-o", tmp_path / "site", "--verify")[0] == 0
    found = json.loads((tmp_path / "site" / "data.json").read_text())["runs"]
    assert {one["models"]: one["verified"] for one in found} == {"random": "consistent", "dpbench/polite": "claimed"}
    shown = " ".join(text for page in pages(tmp_path / "site").values() for _, text in page.all("li"))
    assert "differs: " in shown and "holds: " in shown


@pytest.mark.slow
def test_runs_whose_episodes_cannot_be_read_have_pages_that_say_so(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    some = Path(shutil.copytree(runs, tmp_path / "runs"))
    for journal in (some / "plain").glob("journal*"):
        journal.write_text(journal.read_text().replace('"k"', '"x"', 1))
    code, _, err = site(capsys, some, "-o", tmp_path / "site")
    assert code == 0 and "no charts" in err
    shown = [text for page in pages(tmp_path / "site").values() for _, text in page.all("li") if "not shown" in text]
    assert shown


# ------------------------------------------------------------------------------------ rules

TEXTS = st.text(max_size=80) | st.sampled_from(
    ["../..", "con", "data.json", "index", "a/b", "A", "a", "", "..", "a..b"]
)


@given(TEXTS, TEXTS)
def test_addresses_are_plain_and_no_two_names_share_one(one: str, other: str) -> None:
    for name in (one, other):
        part = addresses.slug(name)
        assert re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", part) and ".." not in part and not part.endswith((".", "-"))
        assert addresses.slug(part) != part or part == name  # the address of a name is no name with that address
    assert (addresses.slug(one) == addresses.slug(other)) == (one == other)


PARTS = st.lists(st.sampled_from(["a", "b", "models"]), max_size=3)


@given(PARTS, PARTS)
def test_relative_addresses_lead_there(one: list[str], other: list[str]) -> None:
    here, there = "/".join([*one, "index.html"]), "/".join([*other, "x.html"])
    path: list[str] = []
    for part in (PurePosixPath(here).parent / addresses.relative(here, there)).parts:
        path = path[:-1] if part == ".." else [*path, part]
    assert "/".join(path) == there


@given(st.lists(st.floats(16, 268), max_size=8))
def test_names_beside_lines_are_apart_and_within(places: list[float]) -> None:
    moved = drawings.apart(places, 15, 16, 268)
    assert all(16 - 1e-6 <= y <= 268 + 1e-6 for y in moved)
    assert all(b - a >= 15 - 1e-6 for a, b in pairwise(sorted(moved)))


@pytest.mark.parametrize("unit", [None, "percent"])
@given(low=st.floats(1e-6, 1e6), share=st.floats(1e-9, 2))
def test_no_two_ticks_are_called_the_same(unit: str | None, low: float, share: float) -> None:
    numbers = [number for number, _ in drawings.Scale(low, low * (1 + share), 64, 632).ticks()]
    assert len({*drawings.shown(numbers, unit)}) == len({*numbers})


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_an_axis_of_costs_is_not_filled_by_a_difference_of_a_thousandth(costs: list[float]) -> None:
    axis, _ = drawings.axes(costs, [0.5], True, drawings.WIDE)
    assert abs(axis(costs[0] * 1.001) - axis(costs[0])) <= 0.011 * (drawings.WIDE - drawings.LEFT)


def test_a_name_keeps_clear_of_the_front_and_of_points() -> None:
    front = (70.0, 99.0, 300.0, 101.0)  # from the point to the right; on the left the picture ends
    assert drawings.placed_names([("name", 70, 100)], 632, [front]) == [(78, 93, "start")]
    everywhere = (0.0, 0.0, 640.0, 320.0)
    assert drawings.placed_names([("name", 70, 100)], 632, [everywhere]) == [(78, 104, "start")]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0, 1))
def test_ticks_and_places_lie_within_an_axis(low: float, size: float, share: float) -> None:
    axis = drawings.Scale(low, low + size, 5, 155)
    assert all(5 <= place <= 155 for _, place in axis.ticks()) and len(axis.ticks()) <= 12
    assert 5 <= axis(low + share * size * 3) <= 155


def test_the_viewer_becomes_one_script_without_imports() -> None:
    script = standalone.script()
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE) and "fetch(" not in script
    assert "EpisodePage" in script and '"embedded' not in script


def size(value: Any) -> int:
    return len(json.dumps(value))


def test_an_episode_page_holds_its_data_once(made: Path, shown: dict[str, Page]) -> None:
    for address, page in shown.items():
        if "/episodes/" in address:
            [data] = [json.loads(body) for attributes, body in page.all("script") if "src" not in attributes]
            assert data["finished"] and data["scenes"] and data["up"] == "../index.html"
            assert (made / address).stat().st_size < 3 * size(data) + 20_000
