"""`harness replay`: the same episode with one thing changed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api.errors import DataError, SpecError, UserError
from harness.config import building
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.replay import replayed
from harness.extensions.replay.base_run import BaseRun
from harness.extensions.replay.replay_run import ReplayCount, count
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError
from harness.transcripts.view_api import RecordedTurn
from tests.helpers.commands import invoke
from tests.helpers.samples import examples
from tests.helpers.toy import TOY, run

EPISODE = "agents=3/c1/1"


def dice() -> Any:
    """A model that is at times unreadable, at times fails, and always says the same to the same call."""
    return building.engine({"use": "dice"}, TOY)


def moves(folder: Path) -> list[Any]:
    """All moves and ends of a run, without what processes counted, who was asked for each reply, and when."""
    lines = []
    for _, line in storage.lines(folder / "journal.jsonl"):
        if line["k"] in ("move", "end"):
            for call in line.get("calls", ()):
                del call["request_digest"], call["began"]
            lines.append({key: value for key, value in line.items() if key not in ("asked", "crc", "engine")})
    return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Played by a model."""
    return run(tmp_path_factory.mktemp("spoken") / "run", dice(), repeats=2)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Played by policies."""
    return run(tmp_path_factory.mktemp("scripted") / "run", repeats=2)


def again(parent: Run, folder: Path, **changes: Any) -> Run:
    options = Options(output_path=folder, max_calls=changes.pop("max_calls", None))
    return replayed(parent, EPISODE, options=options, project=TOY, **changes)


def counted(done: Run) -> ReplayCount:
    parent = done.folder / done.spec.data["replay"]["run"]
    return count(BaseRun.open(parent, TOY), done)


def own(parent: Run) -> list[Any]:
    return [line for line in moves(parent.folder) if line["e"] == EPISODE]


def turns(parent: Run, episode: str = EPISODE) -> list[RecordedTurn]:
    [found] = [one for one in parent.transcripts() if one.id == episode]
    return list(found.turns)


def texts(parent: Run) -> list[str]:
    """What to write to change each turn to what it is."""
    return [turn.move.text or str(turn.move.action) for turn in turns(parent) if turn.move is not None]


def test_a_turn_changed_to_its_own_text_changes_nothing(spoken: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    said = [(i, turn.move.text) for i, turn in enumerate(turns(spoken)) if turn.move and not turn.move.error]
    assert len(said) < 9, "a turn that failed is among them"

    @given(st.sampled_from(said))
    @settings(max_examples=examples(3))
    def check(turn: tuple[int, str]) -> None:
        done = again(spoken, tmp_path_factory.mktemp("own") / "run", change=dict([turn]))
        assert moves(done.folder) == own(spoken)
        assert counted(done).asked == counted(done).changed == 0
        assert [s.to_json() for s in done.scores] == [s.to_json() for s in spoken.scores if s.id == EPISODE]

    check()


def test_from_a_turn_on_a_deterministic_model_says_the_same(spoken: Run, tmp_path: Path) -> None:
    done = again(spoken, tmp_path / "run", since=4, model=dice())
    assert moves(done.folder) == own(spoken)
    assert counted(done).asked >= 5 and counted(done).kept >= 3


def test_other_seeds_are_other_samples(spoken: Run, tmp_path: Path) -> None:
    first, second = (again(spoken, tmp_path / str(n), since=4, sample=n, model=dice()) for n in (1, 2))
    assert texts(first)[:4] == texts(second)[:4] == texts(spoken)[:4] and texts(first) != texts(second)


def test_only_prompts_that_change_are_asked_again(spoken: Run, tmp_path: Path) -> None:
    before = turns(spoken)
    number = next(i for i, turn in enumerate(before) if turn.round == 1 and turn.move and turn.move.action)
    other = "b" if texts(spoken)[number] == "a" else "a"
    model = dice()
    done = again(spoken, tmp_path / "run", change={number: other}, model=model)
    after = turns(done)
    assert after[number].move is not None and after[number].move.text == other
    same = [one.prompt == other.prompt for one, other in zip(before, after, strict=True)]
    assert same == [True] * 6 + [False] * 3, "all hear it in the last round"
    assert {name.rsplit("/", 2)[0][-2:] + name.split("/")[-2] for name in model.asked} == {"S02", "S12", "S22"}
    kept = [turn.move for i, turn in enumerate(before[:6]) if i != number]
    assert [turn.move for i, turn in enumerate(after[:6]) if i != number] == kept
    assert counted(done).changed == 1 and counted(done).asked == len(model.asked)
    assert done.meta["identity"]["spec"]["replay"]["episodes"] == [EPISODE]


@pytest.mark.slow
def test_a_run_goes_on_where_its_budget_ended(spoken: Run, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(RunStoppedError, match=r"max_calls 2 is reached.*; 2 calls count as asked"):
            again(spoken, tmp_path / "run", since=0, model=dice(), max_calls=2)
    done = again(spoken, tmp_path / "run", since=0, model=dice())
    assert moves(done.folder) == own(spoken)
    whole = again(spoken, tmp_path / "whole", since=0, model=dice())
    assert counted(done).asked == counted(whole).asked


def test_a_run_that_was_killed_asks_no_more_than_it_may(spoken: Run, tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="max_calls 2 is reached"):
        again(spoken, tmp_path / "run", since=0, model=dice(), max_calls=2)
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**meta, "engines": {}, "earlier": []}))
    model = dice()
    with pytest.raises(RunStoppedError, match="max_calls 3 is reached"):
        again(spoken, tmp_path / "run", since=0, model=model, max_calls=3)
    assert len(model.asked) == 1


def test_the_spec_of_a_replayed_run_is_not_played_by_hand(spoken: Run, scripted: Run, tmp_path: Path) -> None:
    other = "b" if texts(spoken)[8] == "a" else "a"
    done = again(spoken, tmp_path / "run", change={8: other})
    with pytest.raises(SpecError, match="would be asked again"):
        harness.evaluate(done.folder / "spec.yaml", dice(), output_path=tmp_path / "hand", project=TOY)
    assert rescored(done.folder, TOY).scores == done.scores
    by_policies = again(scripted, tmp_path / "policies", change={8: other})
    by_hand = harness.evaluate(by_policies.folder / "spec.yaml", output_path=tmp_path / "by_hand", project=TOY)
    assert own(by_hand) == own(by_policies), "policies make the changed moves wherever they play"


def test_without_a_model_a_changed_prompt_stops_the_run(spoken: Run, tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match=r"S1 is asked something else in its own turn 1 than .*, and no model"):
        again(spoken, tmp_path / "run", since=4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("turn", [0, 4, 8])
def test_policies_choose_again_by_the_same_chance(scripted: Run, tmp_path: Path, turn: int) -> None:
    acts = texts(scripted)
    for act in "ab":
        done = again(scripted, tmp_path / act, change={turn: act})
        assert texts(done) == [*acts[:turn], act, *acts[turn + 1 :]], "coins do not listen"
        if act == acts[turn]:
            assert moves(done.folder) == own(scripted)


def test_a_swapped_agent_is_another_player(scripted: Run, tmp_path: Path) -> None:
    swap = {"S1": {"use": "coin", "bias": 0.0}}
    done = again(scripted, tmp_path / "run", swap=swap)
    acts = [turn.move.action if turn.move else None for turn in turns(done)]
    assert acts[1::3] == ["b", "b", "b"] and acts[::3] == texts(scripted)[::3]
    by_model = again(scripted, tmp_path / "model", swap={"S1": "model"}, model=dice())
    assert {turn.agent for turn in turns(by_model) if turn.move and turn.move.calls} == {"S1"}
    scored = rescored(by_model.folder, TOY)
    assert [score.to_json() for score in scored.scores] == [score.to_json() for score in by_model.scores]


def test_all_episodes_are_played_with_a_swap(scripted: Run, tmp_path: Path) -> None:
    how = Options(output_path=tmp_path / "run")
    done = replayed(scripted, swap={"S1": {"use": "coin", "bias": 0.0}}, options=how, project=TOY)
    assert [score.id for score in done.scores] == [score.id for score in scripted.scores]


@pytest.mark.slow
def test_a_dropped_message_is_heard_by_nobody(tmp_path: Path) -> None:
    only = ("matrix.condition=[seq3c]", "repeats=1")
    speaks = Mock(text="MESSAGE: I wait for you.\nACTION: WAIT")
    parent = harness.evaluate("dpbench_quick", speaks, overrides=only, limit=1, output_path=tmp_path / "run")
    done = replayed(parent, drop=[0], model=speaks, options=Options(output_path=tmp_path / "silent"))
    first, second = turns(done, "condition=seq3c/n3/0")[:2]
    assert first.move is not None and first.move.action == {"act": "WAIT", "message": None}
    assert "I wait for you" in str(turns(parent, "condition=seq3c/n3/0")[1].prompt)
    assert "I wait for you" not in str(second.prompt)


@pytest.mark.slow
def test_it_is_compared_scored_and_shown_as_any_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    only = ("matrix.condition=[seq3nc]", "repeats=2")
    parent = harness.evaluate("dpbench_quick", overrides=only, limit=1, output_path=tmp_path / "run")
    folder, name = str(tmp_path / "again"), "condition=seq3nc/n3/1"
    code, out, err = invoke(
        capsys,
        *("replay", str(parent.folder), "--episode", name, "--change", "2=WAIT", "--output_path", folder, "--quiet"),
    )
    assert (code, err) == (0, "") and out.startswith("turns: policies made ")
    code, out, _ = invoke(capsys, "compare", str(parent.folder), folder)
    assert code == 0 and "replay.changes" in out
    assert invoke(capsys, "score", folder)[0] == 0
    assert invoke(capsys, "report", folder)[0] == 0
    assert [transcript.problem for transcript in load_run(folder).transcripts()] == [None]


def test_without_a_change_it_lists_the_turns(
    scripted: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY.root)
    code, out, _ = invoke(capsys, "replay", str(scripted.folder), "--episode", EPISODE)
    assert code == 0 and [line.split() for line in out.splitlines()] == [
        [str(turn.number), "round", str(turn.round), turn.agent, "say", text]
        for turn, text in zip(turns(scripted), texts(scripted), strict=True)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--change", "999=a"], "the episode has turns 0 to ", id="turn"),
        pytest.param(["--change", "x=a"], "--change takes TURN=TEXT", id="number"),
        pytest.param(["--change", "1"], "--change takes TURN=TEXT", id="no-text"),
        pytest.param(["--change", "1=z"], "Legal are such as: ", id="illegal"),
        pytest.param(["--change", "1=a", "--change", "1=b"], "turn 1 is changed twice", id="twice"),
        pytest.param(["--drop", "1"], "No turn of this episode sends one; --change", id="message"),
        pytest.param(["--swap", "S9=coin"], "there is no agent 'S9'", id="agent"),
        pytest.param(["--swap", "S1=coyn"], "Did you mean coin?", id="policy"),
        pytest.param(["--swap", "S1=coin", "--swap", "S1=coin"], "agent 'S1' is swapped twice", id="swapped-twice"),
        pytest.param(["--swap", "S1={a: 1}"], "{use: NAME, …}", id="reference"),
        pytest.param(["--from", "1000"], "the episode has turns 0 to ", id="from"),
        pytest.param(["--episode", "agents=3/c1/7", "--from", "1"], "has no episode", id="episode"),
        pytest.param(["--model", "mock", "--change", "1=a"], "no agent uses it", id="model"),
    ],
)
def test_mistakes_say_what_to_do(
    scripted: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(TOY.root)
    chosen = [] if "--episode" in arguments else ["--episode", EPISODE]
    code, _, err = invoke(capsys, "replay", str(scripted.folder), *chosen, *arguments)
    assert code == 2 and message in " ".join(err.split()) and "Traceback" not in err


def test_other_code_is_refused_and_named(scripted: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(scripted.folder, folder)
    meta = json.loads((folder / "run.json").read_text())
    name = next(iter(meta["code"]["play"]))
    meta["code"]["play"][name] = "0" * 64
    (folder / "run.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match=f"changed since the run in .*: {name}"):
        replayed(folder, EPISODE, since=0, project=TOY)


def test_another_spec_is_refused_and_says_what_differs(scripted: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(scripted.folder, folder)
    text = (folder / "spec.yaml").read_text()
    assert "rounds: 3" in text
    (folder / "spec.yaml").write_text(text.replace("rounds: 3", "rounds: 4"))
    with pytest.raises(DataError, match=r"spec.yaml: the spec is another one than that of the run: protocol"):
        replayed(folder, EPISODE, since=0, project=TOY)


def test_a_run_that_is_gone_or_was_played_again_is_refused(scripted: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder not found"):
        replayed(tmp_path / "none", EPISODE, since=0, project=TOY)
    done = again(scripted, tmp_path / "run", since=0)
    with pytest.raises(DataError, match="is itself a replay"):
        again(done, tmp_path / "twice", since=0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        pytest.param(("changes", 0, "move"), "no JSON", 'A move is JSON with an "action"', id="move"),
        pytest.param(("swaps",), {"S1": "nobody"}, "there is no group 'nobody'", id="group"),
        pytest.param(("episodes",), ["agents=9/c1/1"], "there is nothing to play", id="episode"),
    ],
)
def test_a_spec_that_was_edited_is_refused(
    scripted: Run, tmp_path: Path, path: tuple[Any, ...], value: Any, message: str
) -> None:
    data = json.loads(json.dumps(again(scripted, tmp_path / "run", change={1: "a"}).spec.data))
    at = data["replay"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(UserError, match=message):
        harness.evaluate(data, output_path=tmp_path / "edited", project=TOY)
