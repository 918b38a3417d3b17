"""Runs: resume from any point, order of completion, failures as data."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Request
from harness.api.errors import DataError, SetupError, SpecError
from harness.config import spec
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from tests.helpers.journals import as_killed
from tests.helpers.toy import TOY, results, run

ROOT = Path(__file__).parents[2]
Dice = TOY.load("engines", "dice")


def test_a_run_leaves_everything_a_reader_needs(tmp_path: Path) -> None:
    done = run(tmp_path / "r", Dice(), log_samples=True, log_requests=True)
    assert {f.name for f in (tmp_path / "r").iterdir()} == {
        ".lock", "run.json", "spec.yaml", "journal.jsonl", "scores.jsonl", "results.json", "tables.md",
        "tables.json", "samples.jsonl", "requests.jsonl",
    }  # fmt: skip
    assert len(done.scores) == 8 and not done.failed
    assert [s.id for s in done.scores] == [f"agents={n}/c{i}/0" for n in (2, 3) for i in range(4)]
    assert {row["metric"] for row in done.rows} == {"agreed", "parse_retries"}
    sample = json.loads((tmp_path / "r" / "samples.jsonl").read_text().splitlines()[0])
    assert sample["threads"]["S0"][0] == {"role": "system", "content": "You are S0."}
    assert "target" not in sample["case"]
    loaded = harness.load_run(tmp_path / "r", TOY)
    assert loaded.rows == done.rows and loaded.tables == done.tables
    frame = done.to_pandas()
    assert list(frame[(frame.metric == "agreed") & (frame.agents == 3)].n) == [4]


def test_without_a_model_the_baseline_sits(tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    assert {s.labels["model"] for s in done.scores} == {"coin"}
    assert done.meta["policies_only"] is True


def test_a_specs_file_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: toy\n")
    by_path = harness.evaluate(file, None, limit=1, output_path=tmp_path / "a", project=TOY)
    by_name = harness.evaluate(str(file), None, limit=1, output_path=tmp_path / "b", project=TOY)
    assert by_path.scores == by_name.scores


@pytest.mark.parametrize("width", [1, 2, 64])
def test_concurrency_and_order_change_nothing(tmp_path: Path, width: int) -> None:
    run(tmp_path / "one", Dice(), max_concurrency=1)
    run(tmp_path / "many", Dice(latency=0.003), max_concurrency=width)
    assert results(tmp_path / "one")["scores.jsonl"] == results(tmp_path / "many")["scores.jsonl"]


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    one, two = run(tmp_path / "a", Dice(), seed=1), run(tmp_path / "b", Dice(), seed=2)
    assert [s.numbers for s in one.scores] != [s.numbers for s in two.scores]
    assert one.meta["spec_digest"] != two.meta["spec_digest"]


@pytest.mark.parametrize("count", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_a_run_can_be_cut_anywhere_and_goes_on_to_the_same_end(tmp_path: Path, count: int) -> None:
    whole = tmp_path / "whole"
    first = Dice()
    run(whole, first, max_concurrency=4)
    journal = (whole / "journal.jsonl").read_bytes()
    expected = results(whole)
    cuts = [*random.Random(0).sample(range(len(journal)), count), 0, len(journal)]
    for i, cut in enumerate(cuts):
        part = tmp_path / "whole" / f"cut{i}" / "whole"  # same run id, hence same rows
        part.mkdir(parents=True)
        for name in ("run.json", "spec.yaml"):
            (part / name).write_bytes((whole / name).read_bytes())
        (part / "journal.jsonl").write_bytes(journal[:cut])
        as_killed(part)
        recorded = [line for _, line in storage.lines(part / "journal.jsonl") if line["k"] == "move"]
        again = Dice()
        run(part, again, max_concurrency=3)
        assert results(part) == expected
        failed = {(line["e"], line["s"], line["i"]) for line in recorded}
        items = {tuple(name.rsplit("/", 3)[:3]) for name in again.asked}
        assert not {(e, s, str(i)) for e, s, i in failed} & items, "a recorded move was asked again"


def test_a_journal_that_was_cut_after_the_run_is_noticed(tmp_path: Path) -> None:
    """Else it would be played again without a word, or scored without what is gone."""
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "stopped", Dice(), max_calls=5)
    run(tmp_path / "whole", Dice())
    for name in ("stopped", "whole"):
        os.truncate(tmp_path / name / "journal.jsonl", 0)
        with pytest.raises(DataError, match=r"journal\.jsonl was cut: 0 of [\d,]+ bytes are there(.|\n)*`journals`"):
            run(tmp_path / name, Dice())
    with pytest.raises(DataError, match="was cut"):
        rescored(tmp_path / "whole", TOY)
    as_killed(tmp_path / "stopped")
    run(tmp_path / "stopped", Dice())


def test_a_finished_run_asks_nothing_and_does_not_even_start_its_engine(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    expected = results(tmp_path / "r")
    again = Dice(broken_start=True)
    run(tmp_path / "r", again)
    assert again.asked == [] and results(tmp_path / "r") == expected


def test_a_fatal_engine_stops_the_run_which_then_goes_on(tmp_path: Path) -> None:
    calm = tmp_path / "calm" / "r"
    wild = tmp_path / "wild" / "r"
    run(calm, Dice())
    engine = Dice(fatal_after=17)
    with pytest.raises(RunStoppedError, match=r"the dice are gone(.|\n)*give the same command again"):
        run(wild, engine)
    assert engine.closed == 1
    with pytest.raises(DataError, match="not finished"):
        harness.load_run(wild, TOY)
    second = Dice()
    run(wild, second)
    assert results(wild) == results(calm)
    assert len(second.asked) < len(engine.asked) + len(second.asked) - 10


def test_an_engine_that_cannot_start_is_the_users_problem(tmp_path: Path) -> None:
    engine = Dice(broken_start=True)
    with pytest.raises(SetupError, match="Buy some"):
        run(tmp_path / "r", engine)
    assert engine.closed == 1


def test_an_engine_that_finds_a_mistake_in_what_it_is_asked_stops_the_run(tmp_path: Path) -> None:
    def refuse(request: Request) -> str:
        raise SetupError("no such thing as regex", hint="Say structured=vllm.")

    with pytest.raises(SetupError, match="no such thing as regex"):
        run(tmp_path / "r", Mock(function=refuse))
    assert {line["k"] for _, line in storage.lines(tmp_path / "r" / "journal.jsonl")} == {"asked"}, "no episode is lost"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("task.broken=grade",), "grade: RuntimeError: cannot grade"),
        (("task.broken=context",), "RuntimeError: no context for S1 (registry/tasks/pick.py:"),
        (("baseline=illegal",), "Illegal chose 'z'"),
    ],
)
def test_failure_is_data(tmp_path: Path, overrides: tuple[str, ...], says: str) -> None:
    done = run(tmp_path / "r", None, overrides)
    assert len(done.failed) == len(done.scores) == 8
    assert all(says in str(s.error) for s in done.failed)
    assert all(row["n"] == 0 and row["failed"] == 4 and row["value"] is None for row in done.rows)
    assert "failed" in (tmp_path / "r" / "tables.md").read_text()


def test_another_spec_in_the_same_folder_is_refused_with_the_difference(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    with pytest.raises(DataError) as caught:
        run(tmp_path / "r", Dice(), ("protocol.rounds=2",))
    assert "-    rounds: 3" in str(caught.value) and "+    rounds: 2" in str(caught.value)
    with pytest.raises(DataError, match="model: other"):
        run(tmp_path / "r", Dice(name="other"))
    run(tmp_path / "r", Dice(latency=0.001), resume=True)  # how fast is not what


def test_another_engine_behind_the_same_name_is_another_run(tmp_path: Path) -> None:
    """Unless only how fast it is has changed."""
    run(tmp_path / "r", Mock(model="m", text="a"))
    with pytest.raises(DataError, match=r"-  text: a\n\+  text: b"):
        run(tmp_path / "r", Mock(model="m", text="b"))
    with pytest.raises(DataError, match=r"-  engine: Mock"):
        run(tmp_path / "r", Dice(name="m"))


def test_a_default_said_in_so_many_words_goes_on_with_the_run(tmp_path: Path) -> None:
    run(tmp_path / "r")
    run(tmp_path / "r", seed=0, repeats=1, resume=True)


def test_tables_may_change_and_reports_show_the_new_ones(tmp_path: Path) -> None:
    run(tmp_path / "r")
    table = "{title: Other, rows: agents, metrics: agreed}"
    run(tmp_path / "r", overrides=(f"tables=[{table}]",))
    assert [t.title for t in harness.load_run(tmp_path / "r", TOY).tables] == ["Other"]


def test_a_table_that_cannot_be_made_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"overrides=.*tables.*unknown label 'sets'. Did you mean agents"):
        run(tmp_path / "r", overrides=("tables=[{title: T, rows: sets, metrics: agreed}]",))
    assert not (tmp_path / "r").exists()


def test_a_model_that_no_agent_uses_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no agent uses it: dice"):
        run(tmp_path / "r", Dice(broken_start=True), ("agents={default: {policy: coin}}",))


@pytest.mark.parametrize("name", ["journal.jsonl", "spec.yaml", "results.json"])
def test_files_that_are_no_runs_are_not_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("name: mine\n")
    with pytest.raises(DataError, match=f"holds {name} and no run.json"):
        run(tmp_path)
    assert (tmp_path / name).read_text() == "name: mine\n"
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "format None, this harness reads 4"),
        ('{"schema": 99}', "format 99, this harness reads 4"),
        ('{"schema": 4, "run": "r"}', "missing required keys 'spec', 'spec_digest', 'model', 'identity'"),
        (
            '{"schema": 4, "run": "r", "spec": "", "spec_digest": "", "model": "", "identity": ""}',
            "record: 'identity' must be a mapping, found text ''",
        ),
        ("[", "not a JSON object"),
    ],
)
def test_a_damaged_or_foreign_record_is_reported_by_every_reader(tmp_path: Path, text: str, says: str) -> None:
    run(tmp_path / "r")
    (tmp_path / "r" / "run.json").write_text(text)
    readers: list[Any] = [lambda: run(tmp_path / "r"), lambda: harness.load_run(tmp_path / "r", TOY)]
    for reader in (*readers, lambda: rescored(tmp_path / "r", TOY)):
        with pytest.raises(DataError) as caught:
            reader()
        assert says in str(caught.value) and "run.json" in str(caught.value)


def test_a_loaded_spec_is_taken_as_it_is(tmp_path: Path) -> None:
    loaded = spec.load("toy", TOY)
    with pytest.raises(SpecError, match="taken as it is"):
        harness.evaluate(loaded, None, seed=3, output_path=tmp_path, project=TOY)
    done = harness.evaluate(
        {"extends": "toy", "name": "x"}, overrides=["matrix.agents=[2]"], output_path=tmp_path, project=TOY
    )
    assert len(done.scores) == 4


def test_no_file_of_a_run_holds_a_key(tmp_path: Path) -> None:
    models = {"helper": {"use": "dice", "name": "https://me:sk-1@host", "log": str(tmp_path / "log")}}
    body = {"extends": "toy", "name": "x", "models": models, "agents": {"o": {"count": 1, "model": "helper"}}}
    harness.evaluate(body, Dice(name="api_key=sk-1"), output_path=tmp_path / "r", project=TOY, log_samples=True)
    harness.evaluate(body, Dice(name="api_key=sk-1"), output_path=tmp_path / "r", project=TOY, resume=True)
    for name in ("run.json", "spec.yaml"):
        text = (tmp_path / "r" / name).read_text().replace('"model": "api_key=sk-1"', "")
        assert "//…@host" in text.replace("\\u2026", "…") and "sk-1" not in text, name


def test_resume_may_be_insisted_on_or_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to resume"):
        run(tmp_path / "r", resume=True)
    run(tmp_path / "r")
    with pytest.raises(DataError, match="already contains a run"):
        run(tmp_path / "r", resume=False)


def test_the_cache_answers_the_second_time_and_never_merges_repeats(tmp_path: Path) -> None:
    first, second = Dice(), Dice()
    run(tmp_path / "a" / "r", first, use_cache=tmp_path / "cache", repeats=2)
    assert len(set(first.asked)) == len(first.asked)
    run(tmp_path / "b" / "r", second, use_cache=tmp_path / "cache", repeats=2)
    failures = second.asked  # errors are not kept, so they are asked again
    assert len(failures) < len(first.asked) / 4
    assert results(tmp_path / "a" / "r")["scores.jsonl"] == results(tmp_path / "b" / "r")["scores.jsonl"]


def test_what_engines_report_is_kept_through_stops_and_repeats(tmp_path: Path) -> None:
    def report() -> Any:
        return json.loads((tmp_path / "r" / "run.json").read_text())

    def go_on(engine: Any, **more: Any) -> Any:
        again = {"use_cache": tmp_path / "cache", **more}
        return harness.evaluate("toy", engine, output_path=tmp_path / "r", project=TOY, **again).meta

    with pytest.raises(BudgetReachedError):
        go_on(Dice(), max_calls=5)
    first = report()
    assert first["engines"] == {"model": {"cache_hits": 0, "cache_misses": first["engines"]["model"]["cache_misses"]}}
    assert first["engines"]["model"]["cache_misses"] >= 5 and "earlier" not in first
    with pytest.raises(RunStoppedError, match="dice are gone"):
        go_on(Dice(fatal_after=3), max_concurrency=1)
    second = report()
    assert second["earlier"] == [{"engines": first["engines"]}] and second["status"] == "stopped"
    done = go_on(Dice())
    assert done["earlier"] == [{"engines": first["engines"]}, {"engines": second["engines"]}]
    assert done["engines"]["model"]["cache_misses"] > 10
    assert report() == done and done["status"] == "finished"
    go_on(Dice(broken_start=True))
    assert report() == done and done["status"] == "finished"


def test_a_full_disk_says_once_what_to_do(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        (tmp_path / "r" / "journal.jsonl").unlink(missing_ok=True)
        return "a"

    with pytest.raises(RunStoppedError) as caught:
        harness.evaluate("toy", Mock(function=answer), output_path=tmp_path / "r", project=TOY)
    assert str(caught.value).count("the same command again") == 1 and "something else has removed it" in str(
        caught.value
    )


def test_groups_of_agents(tmp_path: Path) -> None:
    overrides = ("agents={default: model, others: {policy: coin, count: 1, scored: false}}",)
    engine = Dice()
    done = run(tmp_path / "r", engine, overrides)
    assert len(done.scores) == 8
    agents = {name.rsplit("/", 3)[1] for name in engine.asked}
    assert agents == {"S0", "S1", "S2"}  # who is the other is drawn case by case
    for _, line in storage.lines(tmp_path / "r" / "journal.jsonl"):
        if line["k"] == "end":
            assert list(line["roles"].values()) == ["others"]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("agents={other: {model: model}}",), "needs share:, count: or agents:"),
        (("agents={other: {share: 1.5}}",), "'share' must be ≤ 1, found 1.5"),
        (("agents={other: {count: x}}",), "'count' must be an integer, found text 'x'"),
        (("agents={other: {count: 1, model: gtp}}",), "there is no model 'gtp'"),
        (("agents={other: {count: 1, model: model, policy: coin}}",), "either a model or a policy"),
        (("task.agents=0", "matrix={}"), "'agents' must be ≥ 1, found 0"),
        (("task=pikc", "matrix={}"), "Did you mean pick"),
        (("metrics=[agreed, agreed]",), "two metrics are called 'agreed'"),
        (("baseline={use: coin, bais: 1}",), "Did you mean bias"),
        (("prompts=toy/bass",), "Did you mean toy/base"),
    ],
)
def test_plans_that_do_not_hold_together(tmp_path: Path, overrides: tuple[str, ...], says: str) -> None:
    with pytest.raises((SpecError, harness.api.errors.PluginError)) as caught:
        run(tmp_path / "r", None, overrides)
    assert says in str(caught.value)
    assert not (tmp_path / "r").exists()


def test_more_agents_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(harness.api.errors.UserError, match="wants 9 agents; 2 are free"):
        run(tmp_path / "r", None, ("agents={others: {count: 9}}",))


def test_no_model_and_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no model was given"):
        run(tmp_path / "r", None, ("baseline=",))


def test_evaluate_works_where_a_loop_is_already_running(tmp_path: Path) -> None:
    import asyncio

    async def notebook() -> harness.Run:
        return run(tmp_path / "r", Dice())

    assert len(asyncio.run(notebook()).scores) == 8


def test_a_wrong_generation_word_is_found_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"generation_kwargs(.|\n)*temperature"):
        run(tmp_path / "r", Dice(), ("generation_kwargs={temprature: 0}",))
    with pytest.raises(SpecError, match="max_tokens"):
        run(tmp_path / "r", Dice(), ("generation_kwargs={max_tokens: -1}",))
    assert not (tmp_path / "r").exists()


def test_words_of_lm_eval_win_over_the_specs_own(tmp_path: Path) -> None:
    from harness.config import resolve, spec

    loaded = spec.load("toy", TOY, ["agents={default: {model: model, generation_kwargs: {max_gen_toks: 3}}}"])
    plan = resolve.plan(loaded, TOY, Dice())
    assert plan.conditions[0].groups[0].sampling == {"temperature": 1.0, "max_tokens": 3}


def test_a_run_may_go_on_at_another_address_but_not_with_another_model(tmp_path: Path) -> None:
    from tests.helpers.fake_openai import FakeOpenAI

    with FakeOpenAI(lambda body: "a") as one:
        run(tmp_path / "r", "openai", model_args={"model": "fake", "base_url": one.url})
    with FakeOpenAI(lambda body: "b") as two:
        again = run(tmp_path / "r", "openai", model_args={"model": "fake", "base_url": two.url, "timeout": 9})
        assert {score.numbers["agreed"] for score in again.scores} == {1.0}
        with pytest.raises(DataError, match="other"):
            run(tmp_path / "r", "openai", model_args={"model": "other", "base_url": two.url})
