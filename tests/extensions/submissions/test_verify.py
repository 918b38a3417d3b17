"""What `harness verify` finds: forged runs of many kinds; those that it cannot find are listed with the reason."""

import json
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Completion, Request
from harness.api.errors import DataError, RequestError
from harness.cli import main
from harness.config.project import find
from harness.engines.mock import Mock
from harness.extensions.submissions.archive import pack, unpack
from harness.extensions.submissions.check import ASKED_AGAIN, CLAIMED, CONSISTENT, Verification, verify

SPEC: dict[str, Any] = {
    "name": "ring",
    "matrix": {"size": [4]},
    "task": {"use": "agentsnet/leader_election", "instances": 1, "source": "seeded", "size": "${size}"},
    "protocol": {"use": "local_rounds", "rounds": 2, "channel": "neighbors", "parse_retries": 1},
    "prompts": "agentsnet/standard",
    "repeats": 3,
    "generation_kwargs": {"temperature": 0.0},
    "metrics": ["solved", {"use": "tokens", "kind": "total", "name": "tokens"}, "parse_failures"],
    "tables": [{"title": "Solved", "rows": "model", "metrics": "solved"}],
}


def answer(request: Request) -> Completion:
    """A model that answers by the call's seed; now and then it fails, or writes what cannot be read."""
    rng = random.Random(request.seed)
    if rng.random() < 0.05:
        raise RequestError("bad gateway")
    neighbors = re.findall(r"Your neighbors are: (.*)\.", request.thread.messages[-1]["content"])
    message = json.dumps(dict.fromkeys(neighbors[-1].split(", "), str(rng.random()))) if neighbors else "No"
    text = rng.choice([message, message, message, "### Final Answer ###\nYes", "what?"])
    return Completion(text, input_tokens=50, output_tokens=len(text) // 4 + rng.randint(1, 3))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "run"
    harness.evaluate(SPEC, Mock(model="m", function=answer), output_path=folder, max_error_rate=1.0)
    return folder


def check(folder: Path, **how: Any) -> Verification:
    return verify(folder, find(), **how)


# ------------------------------------------------------------------------------------ forging


class Forged:
    """A run's folder to be changed, with checksums that fit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = [line for _, line in storage.lines(folder / "journal.jsonl")]
        for line in self.lines:
            del line["crc"]

    def write(self) -> None:
        data = b"".join(storage.sealed(json.dumps(line).encode()) for line in self.lines)
        (self.folder / "journal.jsonl").write_bytes(data)
        self.meta(lambda meta: meta.update(journals={"journal.jsonl": len(data)}))

    def meta(self, change: Callable[[dict[str, Any]], object]) -> None:
        path = self.folder / "run.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    def text(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def rows(self, name: str, change: Callable[[list[Any]], object]) -> None:
        path = self.folder / name
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        change(rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def moves(self, **having: Any) -> list[dict[str, Any]]:
        return [m for m in self.lines if m["k"] == "move" and all(m.get(k) == v for k, v in having.items())]

    def ends(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["k"] == "end"]

    def read(self) -> dict[str, Any]:
        """A move that was read, in a first round."""
        return next(move for move in self.moves(b=0) if move.get("calls") and not move.get("error_kind"))


FORGERIES: dict[str, Callable[[Forged], object]] = {}


def forgery(function: Callable[[Forged], object]) -> Callable[[Forged], object]:
    FORGERIES[function.__name__] = function
    return function


@forgery
def a_reply_that_others_have_read(run: Forged) -> None:
    move = run.read()
    move["a"] = dict.fromkeys(move["a"], "vote for me")
    move["calls"][-1]["text"] = json.dumps(move["a"])


@forgery
def a_move(run: Forged) -> None:
    move = run.read()
    move["a"] = dict.fromkeys(move["a"], "what was not said")


@forgery
def an_outcome(run: Forged) -> None:
    run.ends()[0]["outcome"]["answers"] = {"Lea": "Yes"}


@forgery
def a_grade(run: Forged) -> None:
    run.ends()[0]["grade"]["solved"] = 0.875


@forgery
def numbers_of_an_episode(run: Forged) -> None:
    run.ends()[0]["numbers"]["solved"] = 0.875


@forgery
def labels_of_an_episode(run: Forged) -> None:
    run.ends()[0]["labels"]["size"] = 16


@forgery
def groups_of_an_episode(run: Forged) -> None:
    run.ends()[0]["roles"] = {"Lea": "other"}


@forgery
def an_error_of_an_episode(run: Forged) -> None:
    run.ends()[0]["error"] = "the task raised"


@forgery
def a_score(run: Forged) -> None:
    run.rows("scores.jsonl", lambda rows: rows[0]["numbers"].update(solved=0.875))


@forgery
def a_missing_score(run: Forged) -> None:
    run.rows("scores.jsonl", lambda rows: rows.pop())


@forgery
def an_additional_score(run: Forged) -> None:
    run.rows("scores.jsonl", lambda rows: rows.append({**rows[0], "id": "size=4/invented/0"}))


@forgery
def result_rows(run: Forged) -> None:
    run.text("results.json", '"value"', '"value": 1.0, "old"')


@forgery
def a_table(run: Forged) -> None:
    run.text("tables.md", "Solved", "Solved!")


@forgery
def the_headline(run: Forged) -> None:
    run.text("tables.json", '"title"', '"value": 1, "title"')


@forgery
def no_tables(run: Forged) -> None:
    (run.folder / "tables.md").unlink()


@forgery
def a_failed_repeat_is_left_out(run: Forged) -> None:
    name = run.ends()[0]["e"]
    run.lines = [line for line in run.lines if line.get("e") != name]
    run.rows("scores.jsonl", lambda rows: rows.__delitem__([row["id"] for row in rows].index(name)))
    run.meta(lambda meta: meta.update(planned=2))


@forgery
def an_episode_without_its_end(run: Forged) -> None:
    run.lines.remove(run.ends()[0])


@forgery
def an_episode_too_many(run: Forged) -> None:
    name = run.ends()[0]["e"]
    copies = [{**line, "e": "size=4/invented/0"} for line in run.lines if line.get("e") == name]
    run.lines += [{**line, "case": "invented"} if line["k"] == "end" else line for line in copies]


@forgery
def the_best_repeat_in_place_of_another(run: Forged) -> None:
    first, second = sorted(end["e"] for end in run.ends())[:2]
    kept = [line for line in run.lines if line.get("e") != second]
    best = [{**line, "e": second} for line in run.lines if line.get("e") == first]
    run.lines = kept + [{**line, "repeat": 1} if line["k"] == "end" else line for line in best]


@forgery
def repeats_that_changed_places(run: Forged) -> None:
    first, second = sorted(end["e"] for end in run.ends())[:2]
    swap = {first: second, second: first}
    for line in run.lines:
        if line.get("e") in swap and line["k"] != "end":
            line["e"] = swap[line["e"]]


@forgery
def another_order_of_moves(run: Forged) -> None:
    one, two = run.moves(b=1, e=run.ends()[0]["e"])[:2]
    one["p"], two["p"] = two["p"], one["p"]


@forgery
def another_seed_in_the_spec(run: Forged) -> None:
    run.text("spec.yaml", "seed: 0", "seed: 7")


@forgery
def another_seed_everywhere(run: Forged) -> None:
    run.text("spec.yaml", "seed: 0", "seed: 7")
    run.meta(lambda meta: meta["identity"]["spec"].update(seed=7))


@forgery
def another_model(run: Forged) -> None:
    run.meta(lambda meta: meta["identity"]["engine"].update(model="better"))
    run.meta(lambda meta: meta.update(model="better"))


@forgery
def another_engine(run: Forged) -> None:
    run.meta(lambda meta: meta["identity"]["engine"].update(engine="VLLM"))


@forgery
def another_temperature(run: Forged) -> None:
    run.text("spec.yaml", "temperature: 0.0", "temperature: 0.7")
    run.meta(lambda meta: meta["identity"]["spec"]["generation_kwargs"].update(temperature=0.7))


@forgery
def more_retries(run: Forged) -> None:
    run.text("spec.yaml", "parse_retries: 1", "parse_retries: 0")
    run.meta(lambda meta: meta["identity"]["spec"]["protocol"].update(parse_retries=0))


@forgery
def other_prompts(run: Forged) -> None:
    run.meta(lambda meta: meta["identity"].update(prompts={"agentsnet/standard": "0" * 64}))


@forgery
def prompts_of_another_set(run: Forged) -> None:
    run.text("spec.yaml", "agentsnet/standard", "agentsnet/minimal")


@forgery
def other_code(run: Forged) -> None:
    run.meta(lambda meta: [files.update(dict.fromkeys(files, "0" * 64)) for files in meta["code"].values()])


@forgery
def other_cases(run: Forged) -> None:
    run.meta(lambda meta: meta.update(cases={"questions": "0" * 64, "right answers": "0" * 64}))


@forgery
def another_digest_of_the_spec(run: Forged) -> None:
    run.meta(lambda meta: meta.update(spec_digest="0" * 64))


@forgery
def another_version(run: Forged) -> None:
    run.meta(lambda meta: meta["versions"].update(harness="9.0.0"))


@forgery
def calls_that_do_not_say_what_was_asked(run: Forged) -> None:
    for move in run.moves():
        for call in move.get("calls", ()):
            call.pop("request_digest")


@forgery
def one_digest_for_all(run: Forged) -> None:
    for move in run.moves():
        for call in move.get("calls", ()):
            call["request_digest"] = "0" * 32


@forgery
def a_failure_turned_into_a_reply(run: Forged) -> None:
    move = next(move for move in run.moves() if move.get("error_kind") not in (None, "parse"))
    digest = run.read()["calls"][0]["request_digest"]
    move["calls"] = [*move.get("calls", ()), {"text": "### Final Answer ###\nYes", "request_digest": digest}]
    del move["error"], move["error_kind"]


@forgery
def one_reply_more(run: Forged) -> None:
    move = run.read()
    move["calls"] = [*move["calls"], move["calls"][-1]]


@forgery
def a_move_of_nobody(run: Forged) -> None:
    run.lines.insert(0, {**run.read(), "s": "Mallory", "p": 99})


@forgery
def two_runs_in_one(run: Forged) -> None:
    run.lines += [{**line, "p": line["p"] + 10} for line in run.moves(b=0)]


@forgery
def fewer_tokens(run: Forged) -> None:
    for move in run.moves():
        for call in move.get("calls", ()):
            call["output_tokens"] = 1


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_run_is_claimed_and_no_more(honest: Path, tmp_path: Path, name: str) -> None:
    run = Forged(Path(shutil.copytree(honest, tmp_path / "run")))
    FORGERIES[name](run)
    run.write()
    try:
        verdict = check(run.folder)
    except DataError as error:
        assert str(error)
        return
    assert verdict.level == CLAIMED and verdict.differences, name
    assert all(len(line) < 600 and line.isprintable() for line in verdict.differences)


def test_an_honest_run_is_consistent(honest: Path) -> None:
    verdict = check(honest)
    assert (verdict.level, verdict.differences, verdict.remarks) == (CONSISTENT, [], [])
    assert any("requests, made again, are those that were asked" in line for line in verdict.confirmed)


def test_scores_of_a_version_that_named_no_problems_are_consistent(honest: Path, tmp_path: Path) -> None:
    run = Forged(Path(shutil.copytree(honest, tmp_path / "run")))
    run.rows("scores.jsonl", lambda rows: [row.pop("problem") for row in rows])
    for end in run.ends():
        del end["problem"]
    run.write()
    assert check(run.folder).level == CONSISTENT


def forge_consistently(honest: Path, folder: Path) -> Path:
    """A run that never was: another program answered in the model's place, through the harness itself."""

    def better(request: Request) -> Completion:
        return Completion("### Final Answer ###\nNo", input_tokens=50, output_tokens=5)

    harness.evaluate(SPEC, Mock(model="m", function=better), output_path=folder)
    facts = json.loads((honest / "run.json").read_text())["identity"]["engine"]
    assert facts["function"] == "answer"
    return folder


def test_invented_replies_are_found_by_asking_again(honest: Path, tmp_path: Path) -> None:
    """What cannot be found otherwise: whoever runs the harness with another program in the model's place."""
    model = Mock(model="m", function=answer)
    invented = forge_consistently(honest, tmp_path / "run")
    assert check(invented).level == CONSISTENT
    verdict = check(invented, model=model, calls=20)
    assert verdict.level == CLAIMED and "at least 90%" in verdict.differences[0]
    verdict = check(honest, model=model, calls=20)
    assert verdict.level == ASKED_AGAIN and "20 of 20 calls, asked again, have the same answer" in verdict.confirmed[-1]


def test_requests_that_fail_are_no_disagreement(honest: Path) -> None:
    def failing(share: float) -> Verification:
        def replies(request: Request) -> Completion:
            if random.Random(request.seed + 1).random() < share:
                raise RequestError("bad gateway")
            return answer(request)

        return check(honest, model=Mock(model="m", function=replies), calls=20)

    verdict = failing(0.3)
    assert (verdict.level, verdict.differences) == (ASKED_AGAIN, [])
    same, asked, failed = map(int, re.findall(r"\d+", verdict.confirmed[-1]))
    assert same == asked == 20 - failed < 18
    verdict = failing(1.0)
    assert (verdict.level, verdict.differences) == (CONSISTENT, [])
    assert "20 of 20 calls, asked again at temperature 0, failed" in verdict.remarks[-1]


def test_what_no_model_gives_is_remarked(tmp_path: Path) -> None:
    def copies(request: Request) -> Completion:
        return Completion("the same words again and again " * 20, output_tokens=2, input_tokens=9, latency=0.001)

    spec = {**SPEC, "generation_kwargs": {"temperature": 1.0, "max_tokens": 1}}
    harness.evaluate(spec, Mock(model="m", function=copies), output_path=tmp_path / "run")
    remarks = " ".join(check(tmp_path / "run").remarks)
    for sign in ("equal to another one", "impossible numbers of tokens", "longer than max_tokens"):
        assert sign in remarks


def test_from_one_machine_to_another(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["submit", str(honest), "-o", "r.zip", "--author", "A. Turing"]) == 0
    assert "harness verify r.zip" in capsys.readouterr().out
    names = zipfile.ZipFile("r.zip").namelist()
    assert "engine.log" not in names and "journal.jsonl" in names and "submission.json" in names
    assert main(["verify", "r.zip"]) == 0
    assert capsys.readouterr().out.startswith("r.zip: consistent\n")
    assert main(["verify", "r.zip", "--ask", "3"]) != 0
    assert "--model is missing" in capsys.readouterr().err
    harness.evaluate("agentsnet_quick", output_path=tmp_path / "scripted", overrides=["matrix.problem=[consensus]"])
    assert main(["verify", "scripted"]) == 0
    assert main(["verify", "scripted", "--ask", "3", "--model", "mock"]) == 2
    assert "no model under test played scripted" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/run.json", "journal-x.jsonl", "harness.yaml", "run.json\n"]
)
def test_a_file_of_a_stranger_writes_nothing_outside(tmp_path: Path, honest: Path, name: str) -> None:
    source = tmp_path / "bad.zip"
    with zipfile.ZipFile(source, "w") as file:
        file.writestr(name, "{}")
    (tmp_path / "in").mkdir()
    with pytest.raises(DataError, match="no file of a submission"):
        unpack(source, tmp_path / "in")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.zip", "in"]


def test_damaged_files(tmp_path: Path, honest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "r.zip"
    pack(honest, target, {})
    whole = target.read_bytes()
    rng = random.Random(0)
    for i in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        target.write_bytes(bytes(data[: rng.randrange(len(data))] if i % 3 == 0 else data))
        folder = tmp_path / str(i)
        folder.mkdir()
        try:
            unpack(target, folder)
        except DataError:
            continue
        assert (folder / "journal.jsonl").read_bytes() == (honest / "journal.jsonl").read_bytes()
    zeros = tmp_path / "zeros.zip"
    with zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("journal.jsonl", bytes(3_000_000))
    monkeypatch.setattr("harness.extensions.submissions.archive.MAX_BYTES", 1_000_000)
    (tmp_path / "z").mkdir()
    with pytest.raises(DataError, match="more than 1,000,000 bytes"):
        unpack(zeros, tmp_path / "z")
