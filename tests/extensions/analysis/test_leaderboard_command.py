"""`harness leaderboard` over folders of runs: what it finds, what it lists apart, and what it never trips over."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from harness import evaluate
from harness.api.run_files import META
from harness.config.project import find
from tests.helpers.commands import invoke
from tests.helpers.journals import edited

PLAYED = ("random", "agentsnet/classical")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two benchmarks, two players each, in folders below one another."""
    top = tmp_path_factory.mktemp("runs")
    for player in PLAYED:
        name = player.rpartition("/")[2]
        evaluate("agentsnet_quick", overrides=[f"baseline={player}"], output_path=top / "nets" / name)
    for player in ("random", "calculator"):
        overrides = [f"baseline={player}", "task.size=20"]
        evaluate("arithmetic", overrides=overrides, output_path=top / player, project=find())
    return top


@pytest.fixture
def copy(runs: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(runs, tmp_path / "runs"))


Capsys = pytest.CaptureFixture[str]


def board(capsys: Capsys, *arguments: object) -> tuple[int, str, str]:
    return invoke(capsys, "leaderboard", *map(str, arguments))


def test_a_folder_of_runs_gives_one_page_and_a_section_a_benchmark(runs: Path, capsys: Capsys) -> None:
    code, out, _ = board(capsys, runs)
    assert code == 0
    titles = ["All benchmarks", "arithmetic: standings", "agentsnet_quick: standings"]
    assert all(f"{title}\n" in out for title in titles)
    assert out.startswith("All benchmarks")
    assert "arithmetic: Right answers by number of terms" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["random", "0.0%", "[0.0%,", "6.0%]", "0.0%", "[0.0%,", "56.1%]"] in lines
    assert "No average: it runs from floor to ceiling of each benchmark" in out
    # The spec's own ceiling is called so, also as a run that is ranked; and a row says what it pools.
    assert any(line[:4] == ["1", "calculator", "(ceiling)", "100.0%"] for line in lines)
    assert "no ceiling" not in out
    assert re.search(r"A row takes in \d+ conditions: problem \(", out)
    assert any(line[:4] == ["1–2", "agentsnet/classical", "(ceiling)", "86.7%"] for line in lines)


def test_a_title_that_begins_with_the_benchmark_does_not_name_it_twice(tmp_path: Path, capsys: Capsys) -> None:
    pool = [{"policy": "random"}, {"label": "first", "policy": {"use": "expression", "act": "options[0]"}}]
    for name, game in (("kuhn", "kuhn_poker"), ("dice", "liars_dice")):
        task = {"use": "openspiel", "game": game, "instances": 2}
        body = {"name": name, "task": task, "protocol": "steps", "tournament": {"pool": pool}}
        evaluate(body, output_path=tmp_path / name)
    code, out, err = board(capsys, tmp_path)
    assert code == 0, err
    assert "\nkuhn: ratings\n" in out and "\ndice: ratings\n" in out


def test_runs_of_one_spec_stand_side_by_side_below_their_standings(runs: Path, capsys: Capsys) -> None:
    code, out, _ = board(capsys, runs / "random", runs / "calculator")
    assert (code, "All benchmarks" in out) == (0, False)
    assert out.startswith("arithmetic: standings\n")
    assert "\nRight answers by number of terms\n" in out
    code, out, _ = board(capsys, runs / "random", runs / "calculator", "--table", "Run statistics per question")
    assert (code, out.splitlines()[0]) == (0, "Run statistics per question")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json", "html"])
def test_every_format_has_the_page_and_the_sections(form: str, runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "out"
    assert board(capsys, runs, "--format", form, "--output", file)[0] == 0
    text = file.read_text("utf-8")
    if form == "json":
        assert [t["title"] for t in json.loads(text)][:2] == ["All benchmarks", "arithmetic: standings"]
    assert "agentsnet" in text and "calculator" in text


@pytest.mark.slow
def test_floor_and_ceiling_are_played_once(
    runs: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = board(capsys, runs, "--with_baselines")
    assert (code, "no floor" in err, "no ceiling" in err) == (0, False, False)
    assert "calculator plays arithmetic …" in err
    for line in ("calculator (ceiling)", "random (floor)", "agentsnet/classical (ceiling)"):
        assert line in out
    standings = out.partition("arithmetic: standings")[2].partition("\n\nAccuracy")[0]
    assert [line.split()[:3] for line in standings.splitlines() if "calculator" in line] == [
        ["1", "calculator", "(ceiling)"]
    ]
    journals = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("journal.jsonl")}
    assert len(journals) == 4
    _, again, err = board(capsys, runs, "--with_baselines")
    assert (again, "plays" in err) == (out, False)
    assert {path: path.stat().st_mtime_ns for path in journals} == journals


def test_a_headline_without_a_floor_learns_how_to_name_one(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    overrides = ["baseline=random", "task.size=2", "headline={metric: score}"]
    evaluate("arithmetic", overrides=overrides, output_path=tmp_path / "run", project=find())
    code, _, err = board(capsys, tmp_path / "run", "--with_baselines")
    assert code == 0 and "names no floor; its spec can: headline: {metric: …, floor: random}" in err


def test_what_cannot_be_shown_is_listed_in_a_line_each(copy: Path, capsys: Capsys) -> None:
    for name in ("cut", "unfinished", "version", "nothing", "spec", "list"):
        shutil.copytree(copy / "random", copy / name)
    (copy / "cut" / "scores.jsonl").write_text('{"id": "terms=2/0/0"')
    (copy / "unfinished" / "scores.jsonl").unlink()
    meta = json.loads((copy / "version" / META).read_text())
    (copy / "version" / META).write_text(json.dumps({**meta, "schema": 99}))
    (copy / "nothing" / META).write_bytes(b"\x00\xff\x1b[31m")
    (copy / "spec" / "spec.yaml").write_text("name: [")
    (copy / "list" / META).write_text("[]")
    code, out, err = board(capsys, copy)
    assert (code, out.startswith("All benchmarks")) == (0, True)
    listed = [line for line in err.splitlines() if line.startswith("not shown: ")]
    assert len(listed) == 6, err
    assert any(f"{copy}/cut/scores.jsonl:1:1: not JSON" in line for line in listed)
    assert any("unfinished is not finished" in line for line in listed)
    assert any("99" in line and "format" in line for line in listed)
    assert "\x1b" not in err and "Traceback" not in err


def test_a_run_that_is_named_and_cannot_be_read_is_refused(copy: Path, capsys: Capsys) -> None:
    (copy / "random" / "scores.jsonl").unlink()
    code, _, err = board(capsys, copy / "random", copy / "calculator")
    assert (code, "is not finished" in err) == (2, True)


def test_links_are_not_followed_and_hidden_folders_are_left_alone(copy: Path, tmp_path: Path, capsys: Capsys) -> None:
    outside = tmp_path / "outside"
    shutil.move(copy / "nets", outside)
    (copy / "link").symlink_to(outside)
    (copy / "circle").symlink_to(copy)
    shutil.copytree(outside / "random", copy / ".hidden" / "random")
    code, out, _ = board(capsys, copy)
    assert (code, "agentsnet" in out) == (0, False)


def test_runs_of_other_settings_have_a_section_of_their_own(copy: Path, capsys: Capsys) -> None:
    evaluate("arithmetic", overrides=["task.size=5"], output_path=copy / "a-short")
    code, out, _ = board(capsys, copy)
    assert code == 0
    main, _, apart = out.partition("arithmetic, digest ")
    assert "Apart: " not in main
    assert (
        "Apart: run a-short cannot be compared with calculator: they ran different specs (task.size 20 → 5)." in apart
    )
    code, _, err = board(capsys, copy / "random", copy / "a-short")
    assert (code, "cannot be compared" in err, "task.size 20 → 5" in err) == (2, True, True)


@pytest.mark.slow
def test_many_short_runs_do_not_displace_the_long_one(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    for name in ("a", "b"):
        overrides = [f"baseline={'random' if name == 'a' else 'calculator'}", "task.size=20"]
        evaluate("arithmetic", overrides=overrides, limit=1, output_path=tmp_path / name)
    _, out, _ = board(capsys, tmp_path, runs / "random", runs / "nets")
    page, _, rest = out.partition("\n\n\n")
    assert "(part)" not in page and "[0.0%, 6.0%]" in page
    assert "arithmetic, digest " in rest
    assert "Incomplete: at most 1 case per condition." in rest
    _, out, _ = board(capsys, tmp_path, runs / "nets")
    assert "arithmetic (part)" in out.partition("\n\n\n")[0]


def test_two_folders_with_the_same_run_count_it_once(runs: Path, capsys: Capsys) -> None:
    once, twice = board(capsys, runs / "nets"), board(capsys, runs / "nets", runs / "nets")
    assert once == twice


def test_a_run_that_is_named_and_found_again_counts_once(runs: Path, capsys: Capsys) -> None:
    once = board(capsys, runs / "nets")
    assert board(capsys, runs / "nets", runs / "nets" / "random")[1].count("random") == once[1].count("random")
    again = runs / "nets" / "random"
    assert board(capsys, again, again, runs / "nets" / "classical")[0] == 0


def test_a_copy_of_a_run_is_the_same_run(copy: Path, capsys: Capsys) -> None:
    before = board(capsys, copy)
    shutil.copytree(copy / "random", copy / "twin")
    code, out, err = board(capsys, copy)
    assert (code, out) == before[:2]
    assert f"not shown: {copy}/twin: the same run as {copy}/random" in err.splitlines()


@pytest.mark.parametrize("file, what", [("journal.jsonl", "journals"), ("scores.jsonl", "scores")])
def test_a_changed_copy_stands_beside_the_run(file: str, what: str, copy: Path, capsys: Capsys) -> None:
    """Which of the two is true is not known here: the one that is named first must not displace the other."""
    honest, forged = copy / "random", copy / "forged"
    shutil.copytree(honest, forged)
    text = (honest / file).read_text()
    if file == "journal.jsonl":
        edited(forged / file, "0.0", "1.0")
    else:
        (forged / file).write_text(text.replace("0.0", "1.0"))
    assert (forged / file).read_text() != text
    message = f"say that they are the same run, and their {what} differ: one of them was changed since."
    for first, second in ((forged, honest), (honest, forged)):
        code, out, err = board(capsys, first, second)
        assert code == 0 and "not shown" not in err
        assert message in err and message in " ".join(out.split())
        ranked = " ".join(out.partition("\n\n\n")[0].split())
        assert ranked.count("random (") == 2 and "forged" in ranked, "no run is called what two claim to be"
        assert f"{first} and {second} say" in err


def test_a_run_that_lost_scores_is_not_ranked_and_scored_again_it_is(copy: Path, capsys: Capsys) -> None:
    before = board(capsys, copy)
    path = copy / "random" / "scores.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    _, out, err = board(capsys, copy)
    assert f"not shown: the run in {copy}/random has scores of 3 episodes, and its plan has " in err
    assert invoke(capsys, "score", str(copy / "random"))[0] == 0
    assert board(capsys, copy)[:2] == before[:2] != (0, out)


@pytest.mark.slow
def test_published_figures_of_a_whole_benchmark_stand_beside_no_part(tmp_path: Path, capsys: Capsys) -> None:
    evaluate("agentsnet", overrides=["matrix.size=[4]", "matrix.problem=[coloring]"], limit=1, output_path=tmp_path)
    code, out, _ = board(capsys, tmp_path, "--with_published")
    ranked = out.partition("\n\n\n")[0].partition("Solved in")[0]
    assert (code, "Gemini" in ranked) == (0, False)
    assert "Published figures are left out: AgentsNet, Table" in out
    assert "covers size 4, 8, 16; this run size 4" in out
    assert (
        "covers problem coloring, consensus, leader_election, matching, vertex_cover; this run problem coloring" in out
    )
    assert "covers all cases; this run at most 1 per condition" in out


def test_folders_with_runs_of_the_same_name_are_told_apart(copy: Path, capsys: Capsys) -> None:
    evaluate("arithmetic", overrides=["task.size=20", "baseline=random"], output_path=copy / "nets" / "more" / "random")
    shutil.copytree(copy / "random", copy / "other" / "random")
    code, out, _ = board(capsys, copy / "nets" / "more", copy / "other", "--format", "csv")
    assert code == 0
    assert f"random ({copy}/nets/more/random)" in out and f"random ({copy}/other/random)" in out


@pytest.mark.parametrize("name", ["empty", "deep"])
def test_a_folder_without_runs_is_one_line(name: str, tmp_path: Path, capsys: Capsys) -> None:
    folder = tmp_path / name
    (folder / "a" / "b").mkdir(parents=True)
    code, out, err = board(capsys, folder)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: no finished run in {folder}")


def test_a_hostile_name_reaches_no_terminal(copy: Path, capsys: Capsys) -> None:
    path = copy / "random" / "scores.jsonl"
    path.write_text(path.read_text().replace('"model": "random"', '"model": "\\u001b[31m<script>|**"'))
    code, out, _ = board(capsys, copy, "--format", "markdown")
    assert (code, "\x1b" in out) == (0, False)
    assert "\\<script\\>\\|\\*\\*" in out


def test_fixed_policies_have_no_seat_for_a_floor_or_a_ceiling(tmp_path: Path, capsys: Capsys) -> None:
    """The same players would play again, and stand in the table as the ceiling."""
    other = ["models.a={use: mock, text: x}", "agents={g: {share: 1, model: a}}"]
    for i, fixed in enumerate((["agents.default={policy: random}"], other)):
        evaluate("dpbench_quick", overrides=fixed, limit=1, output_path=tmp_path / str(i))
        code, out, err = board(capsys, tmp_path / str(i), "--with_baselines")
        assert code == 0 and "(ceiling)" not in out
        assert "dpbench_quick: no agent takes the model under test: no seat for floor, ceiling" in err
