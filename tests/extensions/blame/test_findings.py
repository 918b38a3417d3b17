"""What `harness blame` found is kept beside the run, and shown and exported as long as the moves are those."""

import contextlib
import json
import shutil
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import DataError
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.extensions.blame import findings
from harness.extensions.blame.findings import FILE, keep, kept_of, of_episode, verdicts_of
from harness.extensions.exports import export
from harness.transcripts.findings import findings as findings_of
from harness.transcripts.view_api import Finding, Transcript
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving

BY = "{use: coin, bias: 1.0}"


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("coins") / "run", overrides=("baseline.bias=0.5", "agents=null"))


@pytest.fixture
def blamed_run(coins: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(TOY.root)
    shutil.copytree(coins.folder, tmp_path / "run")
    assert invoke(capsys, "blame", str(tmp_path / "run"), "--reference", BY, "--quiet")[0] == 0
    return load_run(tmp_path / "run", TOY)


def found_in(done: Run) -> dict[str, list[Finding]]:
    return {one.id: [*one.findings] for one in done.transcripts()}


def test_a_failed_episode_has_a_finding_with_its_decisive_turn(blamed_run: Run) -> None:
    found = found_in(blamed_run)
    blamed = [one for own in found.values() for one in own if one.facts["finding"] == "blamed"]
    assert blamed and all(len(own) <= 1 for own in found.values())
    for one in blamed:
        decisive = [number for number, turn in one.turns.items() if "decisive" in turn.words]
        assert decisive and [move["turn"] for move in one.facts["decisive"]] == decisive
        assert one.shares == one.facts["shares"] and "“coin (bias: 1.0)”" in one.text


def test_findings_of_other_moves_are_left_out(blamed_run: Run) -> None:
    file = blamed_run.folder / FILE
    data = json.loads(file.read_text())
    [entry] = data["found"].values()
    name = next(iter(entry["episodes"]))
    entry["episodes"][name]["moves"] = "0" * 16
    file.write_text(json.dumps(data))
    found = found_in(blamed_run)
    assert found[name] == [] and any(found.values())


def test_a_second_look_adds_to_the_first(blamed_run: Run) -> None:
    before = json.loads((blamed_run.folder / FILE).read_text())["found"]
    [(key, entry)] = before.items()
    first, *others = entry["episodes"].values()
    other = {"metric": entry["metric"], "by": "someone", "policy": {"use": "someone"}, "episodes": [first]}
    coin = {**other, "by": entry["by"], "policy": entry["policy"]}
    keep(blamed_run.folder, other)
    keep(blamed_run.folder, {**coin, "episodes": [{**first, "last_chance": 0}]})
    after = json.loads((blamed_run.folder / FILE).read_text())["found"]
    assert {len(one["episodes"]) for one in after.values()} == {1, 1 + len(others)}
    assert after[key]["episodes"][first["episode"]]["last_chance"] == 0
    assert len(found_in(blamed_run)[first["episode"]]) == 2
    keep(blamed_run.folder, {**other, "episodes": [{**first, "finding": "no_better"}]})
    assert verdicts_of(blamed_run.folder)[first["episode"]] == []  # "someone" was the last reference
    keep(blamed_run.folder, {**coin, "episodes": [first]})
    decisive = [move["turn"] for move in first["decisive"]]
    assert decisive and verdicts_of(blamed_run.folder)[first["episode"]] == (decisive if first["alone"] else [])
    keep(blamed_run.folder, {**coin, "episodes": [{**first, "alone": not first["alone"]}]})
    assert verdicts_of(blamed_run.folder)[first["episode"]] == ([] if first["alone"] else decisive)


def test_the_same_policy_with_other_parameters_is_another_reference(blamed_run: Run) -> None:
    [entry] = json.loads((blamed_run.folder / FILE).read_text())["found"].values()
    first = next(iter(entry["episodes"].values()))
    more = {"metric": entry["metric"], "by": "coin", "policy": {"use": "coin", "bias": 0.9}, "episodes": [first]}
    keep(blamed_run.folder, more)
    found = found_in(blamed_run)[first["episode"]]
    assert [one.facts["by"] for one in found] == ["coin (bias: 1.0)", "coin (bias: 0.9)"]
    keep(blamed_run.folder, {**more, "by": "fair", "policy": {**more["policy"], "label": "fair"}})
    assert [one.facts["by"] for one in found_in(blamed_run)[first["episode"]]][2:] == ["fair"]


def test_two_that_look_at_once_lose_nothing(blamed_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    [entry] = json.loads((blamed_run.folder / FILE).read_text())["found"].values()
    first = next(iter(entry["episodes"].values()))
    load, waits = findings._load, threading.Event()

    def kept_by(name: str) -> None:
        keep(blamed_run.folder, {"metric": "agreed", "by": name, "policy": {"use": name}, "episodes": [first]})
        waits.set()

    other = threading.Thread(target=kept_by, args=("other",))

    def meanwhile(file: Path) -> Any:
        found = load(file)
        if not other.ident:  # this one has read, and has not written yet
            other.start()
            assert waits.wait(60)
        return found

    monkeypatch.setattr(findings, "_load", meanwhile)
    monkeypatch.setattr(findings, "sleep", lambda seconds: waits.set())
    monkeypatch.setattr(findings, "_TRIES", 10**7)
    kept_by("one")
    other.join()
    after = json.loads((blamed_run.folder / FILE).read_text())["found"].values()
    assert [one["by"] for one in after] == ["coin", "one", "other"]


def test_rows_have_a_column_only_where_something_was_found(blamed_run: Run, coins: Run) -> None:
    assert "blame" not in next(iter(coins.episodes())) and "blame" not in next(iter(coins.turns()))
    episodes = {row["episode"]: row for row in blamed_run.episodes()}
    turns = [row for row in blamed_run.turns() if row["blame"]]
    assert turns and all(list(row)[-1] == "blame" for row in (*episodes.values(), *turns))
    for row in turns:
        [of_episode_], [of_turn] = episodes[row["episode"]]["blame"], row["blame"]
        assert of_turn["decisive"] == (row["turn"] in {move["turn"] for move in of_episode_["decisive"]})
    assert [column.name for column in blamed_run.tidy.turn_columns][-1] == "blame"


def test_inspect_logs_carry_it(blamed_run: Run, tmp_path: Path) -> None:
    export(blamed_run, "inspect", tmp_path / "logs")
    [log] = (tmp_path / "logs").glob("*.eval")
    with zipfile.ZipFile(log) as archive:
        samples = [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]
    told = [sample for sample in samples if "found: blame" in sample["metadata"]]
    assert told
    for sample in told:
        [facts] = sample["metadata"]["found: blame"]
        events = [one["data"] for one in sample["events"] if one.get("source") == "found: blame"]
        assert sum(one["decisive"] for one in events) == len(facts["decisive"])
        shares = [
            one["metadata"]["shares"] for one in sample["events"] if one["event"] == "span_begin" and "metadata" in one
        ]
        assert sorted(value for own in shares for value in own.values()) == sorted(facts["shares"].values())


@pytest.mark.slow
def test_the_viewer_gets_it_also_where_it_came_later(coins: Run, blamed_run: Run) -> None:
    shutil.copytree(coins.folder, later := blamed_run.folder.parent / "later")
    with serving(blamed_run.folder.parent) as client:
        name = next(name for name, own in found_in(blamed_run).items() if own and own[0].facts["finding"] == "blamed")
        assert get(client, "/later/episode", episode=name)["findings"] == []
        shutil.copy(blamed_run.folder / FILE, later / FILE)
        [found] = get(client, "/later/episode", episode=name)["findings"]
    assert found["name"] == "blame" and any("decisive" in turn["words"] for turn in found["turns"])
    assert set(found["shares"]) <= {"S0", "S1", "S2"} and sum(found["shares"].values()) == 1


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@pytest.fixture(scope="module")
def fine(coins: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Transcript, Any]:
    """A folder with a finding of one episode, the episode, and what its file holds."""
    folder, transcript = tmp_path_factory.mktemp("fine"), next(iter(coins.transcripts()))
    shutil.copy(coins.folder / "journal.jsonl", folder)
    one: dict[str, Any] = {"episode": transcript.id, "finding": "blamed", "value": 0.0, "reference": 1.0}
    one |= {"alone": True, "decisive": [], "effects": [], "messages": {}, "shares": {}, "last_chance": None}
    keep(folder, {"metric": "m", "by": "p", "policy": {"use": "p"}, "episodes": [one]})
    assert len([*of_episode(folder, transcript)]) == 1
    return folder, transcript, json.loads((folder / FILE).read_text())


def test_a_message_that_matters_is_no_deviation(fine: tuple[Path, Transcript, Any]) -> None:
    folder, transcript, whole = fine
    whole = json.loads(json.dumps(whole))
    one = whole["found"]["m by p"]["episodes"][transcript.id]
    one["messages"], one["effects"] = {"1": -0.5, "2": None}, [{"turn": 2, "agent": "S0", "effect": 0.0}]
    (folder / FILE).write_text(json.dumps(whole))
    [found] = of_episode(folder, transcript)
    told = {number: (turn.facts["deviates"], turn.facts["effect_of_message"]) for number, turn in found.turns.items()}
    assert told == {1: (False, -0.5), 2: (True, None)}


FIELDS = ["decisive", "effects", "messages", "shares", "value", "finding", "last_chance"]


@given(data=ODD, field=st.sampled_from(FIELDS))
def test_a_file_of_someone_else_never_raises(fine: tuple[Path, Transcript, Any], data: Any, field: str) -> None:
    folder, transcript, whole = fine
    whole = json.loads(json.dumps(whole))
    whole["found"]["m by p"]["episodes"][transcript.id][field] = data
    for odd in (whole, {"format": 1, "found": data}, data):
        (folder / FILE).write_text(json.dumps(odd))
        assert len([*findings_of(folder, transcript)]) <= 1
        with contextlib.suppress(DataError):
            verdicts_of(folder)
            kept_of(folder, "m", {transcript.id})


@pytest.mark.parametrize("content", [b"\xff{", b"[]", b'{"format": 2, "found": {}}', b"[" * 100_000], ids=range(4))
def test_a_damaged_file_is_named_and_stays(fine: tuple[Path, Transcript, Any], content: bytes) -> None:
    folder, transcript, whole = fine
    (folder / FILE).write_bytes(content)
    for read in (
        lambda: [*of_episode(folder, transcript)],
        lambda: verdicts_of(folder),
        lambda: kept_of(folder, "m", {}),
    ):
        with pytest.raises(DataError, match=r"blame\.json: not what `harness blame`"):
            read()
    assert [*findings_of(folder, transcript)] == [], "a transcript is shown without"
    with pytest.raises(DataError, match="Remove it"):
        keep(folder, {"metric": "m", "by": "p", "policy": {"use": "p"}, "episodes": []})
    assert (folder / FILE).read_bytes() == content
    (folder / FILE).write_text(json.dumps(whole))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("decisive", [{"turn": float("inf"), "agent": "S0"}]),
        ("effects", [{"turn": float("nan"), "effect": 1}]),
        ("last_chance", float("inf")),
        ("value", 10**400),
        ("shares", {"S0": {"share": -(10**400)}}),
    ],
)
def test_numbers_that_no_turn_and_no_share_can_be_are_left_out(
    fine: tuple[Path, Transcript, Any], field: str, value: Any
) -> None:
    folder, transcript, whole = fine
    whole = json.loads(json.dumps(whole))
    whole["found"]["m by p"]["episodes"][transcript.id][field] = value
    (folder / FILE).write_text(json.dumps(whole))
    assert [*of_episode(folder, transcript)] == []
    assert not verdicts_of(folder).get(transcript.id)
