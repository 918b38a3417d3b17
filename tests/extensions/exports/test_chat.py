"""`harness export --to chat`: conversations and pairs of replies to train on."""

import contextlib
import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.config.project import Project, find
from harness.engines.mock import Mock
from tests.helpers.commands import ROOT, invoke
from tests.helpers.toy import TOY, run

BUILTIN = find(ROOT)
Rows = list[dict[str, Any]]


@pytest.fixture
def rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[Rows, str]]:
    """Exports runs by the command; returns the rows of the file and what the command says."""

    def export(*arguments: Any, kind: str = "sft") -> tuple[Rows, str]:
        folder = tmp_path / f"chat{len([*tmp_path.iterdir()])}"
        code, out, err = invoke(
            capsys, "export", *map(str, arguments), "--to", "chat", "--kind", kind, "-o", str(folder)
        )
        assert code == 0, err
        return [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text("utf-8").splitlines()], out

    return export


@pytest.fixture(scope="module")
def sure(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A run of the toy spec in which everybody always says the same."""
    return run(tmp_path_factory.mktemp("sure") / "r", overrides=("baseline.bias=1.0",))


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """The error of an export that must write nothing."""

    def export(*arguments: Any) -> str:
        code, _, err = invoke(capsys, "export", *map(str, arguments), "--to", "chat", "-o", str(tmp_path / "none"))
        assert code == 2 and not (tmp_path / "none").exists()
        return err

    return export


def key(messages: Any, tools: Iterable[Any] = ()) -> str:
    """A conversation, apart from the ids of calls."""
    return json.dumps([[m["role"], m["content"], called(m)] for m in messages] + sorted(tools))


def prompt_of(row: Mapping[str, Any]) -> str:
    return key(row["prompt"], [tool["function"]["name"] for tool in json.loads(row.get("tools", "[]"))])


def called(message: Mapping[str, Any]) -> list[Any]:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return [[one["name"], json.loads(a) if isinstance(a := one["arguments"], str) else a] for one in calls]


def by_heart(rows: Rows) -> Mock:
    """A model that has learned `replies.jsonl` by heart, and knows nothing else."""
    known = {prompt_of(row): row["completion"][0] for row in rows}

    def answer(request: Request) -> Completion:
        message = known[key(request.thread.messages, [tool["name"] for tool in request.tools])]
        calls = [
            {"id": call["id"], "name": call["function"]["name"], "arguments": json.dumps(call["function"]["arguments"])}
            for call in message.get("tool_calls", ())
        ]
        return Completion(message["content"], tool_calls=calls or None)

    return Mock(function=answer)


def by_prompt(rows: Rows) -> list[tuple[str, str]]:
    """(prompt, reply) of each row; runs finish episodes in any order."""
    return sorted((prompt_of(row), key(row["completion"])) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agentsnet_quick", "silo_calls", "mas_calls", "negotiation", "tiny"])
def test_who_learns_a_policys_rows_by_heart_plays_as_it_does(
    name: str, rows: Callable[..., tuple[Rows, str]], tmp_path: Path
) -> None:
    """Prompts, written replies, calls of tools and their results are those that a model gets and gives."""
    with contextlib.chdir(ROOT):
        policy = harness.evaluate(name, None, output_path=tmp_path / "p", project=BUILTIN, limit=1)
        learned, out = rows(policy.folder, kind="replies")
        assert "turns" not in out
        model = harness.evaluate(name, by_heart(learned), output_path=tmp_path / "m", project=BUILTIN, limit=1)
        again, _ = rows(model.folder, kind="replies")
    assert not model.failed
    headline = policy.headline.metric
    assert [s.number(headline) for s in model.scores] == [s.number(headline) for s in policy.scores]
    assert by_prompt(again) == by_prompt(learned)
    assert {row["player"] for row in again} == {"mock"}


def test_a_policys_conversations(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    written, out = rows(done.folder)
    turns = list(done.turns())
    assert f"reward: {done.headline.metric}" in out
    scores = {score.id: score for score in done.scores}
    assert [(row["episode"], row["agent"]) for row in written] == unique(
        ((turn["episode"], turn["agent"]) for turn in turns), {(row["episode"], row["agent"]) for row in written}
    )
    for row in written:
        own = [t for t in turns if (t["episode"], t["agent"]) == (row["episode"], row["agent"])]
        sent = [m for t in own for m in (*t["prompt"], {"role": "assistant", "content": t["action"], "weight": 1})]
        assert row["messages"] == sent
        assert row["reward"] == scores[row["episode"]].numbers["agreed"]
        assert (row["player"], row["group"], row["run"]) == ("coin", "default", done.meta["run"])
        assert (row["condition"], row["case"]) == (scores[row["episode"]].condition, scores[row["episode"]].case)
    texts = [json.dumps([row["messages"], row["reward"]]) for row in written]
    assert len(set(texts)) == len(texts) < len({(t["episode"], t["agent"]) for t in turns})
    assert f"{20 - len(texts)} rows that are there already" in out


def test_a_row_is_written_as_often_as_it_was_played(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    written, out = rows(done.folder, "--keep_duplicates")
    assert len(written) == 20 and "already" not in out
    assert {(row["episode"], row["agent"]) for row in written} == {(t["episode"], t["agent"]) for t in done.turns()}


def unique(names: Iterable[Any], among: set[Any]) -> list[Any]:
    return [name for name in dict.fromkeys(names) if name in among]


def hesitant(request: Request) -> Completion:
    """Is unreadable at first; S0's second turn fails."""
    _, agent, index, attempt = request.id.rsplit("/", 3)
    if (agent, index) == ("S0", "1"):
        raise RequestError("the line is dead")
    return Completion("?" if attempt == "0" else random.Random(request.seed).choice("ab"), reasoning="Hm.")


def test_a_models_replies_weigh_what_was_read_of_them(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    done = run(tmp_path / "r", Mock(function=hesitant))
    written, out = rows(done.folder)
    for row in written:
        replies = [m for m in row["messages"] if m["role"] == "assistant"]
        assert [m["role"] for m in row["messages"]][:3] == ["system", "user", "assistant"]
        failed = [0] if row["agent"] == "S0" else [0, 1]
        assert [m["weight"] for m in replies] == [0, 1, *failed, 0, 1]
        assert all((m["content"] in "ab") == (m["weight"] == 1) for m in replies if m["content"])
        assert all(m["reasoning_content"] == "Hm." for m in replies if m["content"])
        assert [m["content"] for m in row["messages"] if m["content"].startswith("Again")] == [
            "Again: say one of a, b."
        ] * (2 if row["agent"] == "S0" else 3)
    assert "0 replies" not in out and " of weight 0, from 8 episodes" in out
    single, _ = rows(done.folder, kind="replies")
    assert all(row["completion"][0]["content"] in "ab" and "weight" not in row["completion"][0] for row in single)
    assert any(row["prompt"][2]["content"] == "?" for row in single)


def pairs_of(*runs: harness.Run) -> set[tuple[str, str, str, float, float]]:
    """(prompt, better, worse, rewards) by another way: from the turns of the runs."""
    given: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for done in runs:
        rewards = {score.id: score.number("agreed") for score in done.scores}
        said: dict[tuple[str, str], list[list[str]]] = {}
        for turn in done.turns():
            heard = said.setdefault((turn["episode"], turn["agent"]), [])
            heard += [[m["role"], m["content"]] for m in turn["prompt"]]
            prompt: tuple[str, ...] = (turn["episode"].rpartition("/")[0], turn["agent"], json.dumps(heard))
            reward = rewards[turn["episode"]]
            assert reward is not None
            given.setdefault(prompt, {}).setdefault(turn["action"], []).append(reward)
            heard.append(["assistant", turn["action"]])
    found = set()
    for (*_, asked), replies in given.items():
        means = sorted(((sum(all_) / len(all_), reply) for reply, all_ in replies.items()), reverse=True)
        if len(means) == 2 and means[0][0] > means[1][0]:  # there are only two letters
            found.add((asked, means[0][1], means[1][1], means[0][0], means[1][0]))
    return found


def test_pairs_are_better_and_worse_replies_to_one_prompt(
    rows: Callable[..., tuple[Rows, str]], tmp_path: Path
) -> None:
    fair = ("baseline.bias=0.6", "matrix.agents=[2]", "task.cases_made=2", "protocol.rounds=2", "repeats=8")
    one, two = (run(tmp_path / f"r{seed}", overrides=(*fair, f"seed={seed}")) for seed in (0, 1))
    for runs in ([one], [one, two]):
        pairs, out = rows(*(done.folder for done in runs), kind="dpo")
        found = {
            (
                json.dumps([[m["role"], m["content"]] for m in row["prompt"]]),
                row["chosen"][0]["content"],
                row["rejected"][0]["content"],
                row["chosen_reward"],
                row["rejected_reward"],
            )
            for row in pairs
        }
        expected = pairs_of(*runs)
        assert found <= expected and {pair[:3] for pair in found} == {pair[:3] for pair in expected}
        assert len(pairs) == len(found) >= 4
        assert "prompts, with one reply alone" in out and "prompts, with replies of equal reward" in out
        labelled, _ = rows(*(done.folder for done in runs), kind="kto")
        for reply, label in (("chosen", True), ("rejected", False)):
            own = [json.dumps((row["prompt"], row["completion"])) for row in labelled if row["label"] is label]
            assert sorted(own) == sorted({json.dumps((row["prompt"], row[reply])) for row in pairs})


def test_chosen_episodes_and_seats(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    half = ("agents={default: model, others: {agents: [S1], policy: {use: coin, bias: 0.5}}}",)
    done = run(tmp_path / "r", Mock(text="a"), overrides=half)
    agreed = {score.id for score in done.scores if score.number("agreed") == 1}
    assert 0 < len(agreed) < len(done.scores)
    solved, out = rows(done.folder, "--where", "agreed == 1 and number < 3", kind="replies")
    assert {row["episode"] for row in solved} <= agreed and {row["case"] for row in solved} <= {"c0", "c1", "c2"}
    assert "episodes that --where does not choose" in out
    seats, _ = rows(done.folder, "--group", "others")
    assert {(row["agent"], row["group"], row["player"]) for row in seats} == {("S1", "others", "Coin")}
    named, _ = rows(done.folder, "--agent", "S0", "--agent", "S2", "--reward", "parse_retries")
    assert {row["agent"] for row in named} == {"S0", "S2"} and {row["reward"] for row in named} == {0.0}
    fewer, out = rows(done.folder, "--where", "agents == 2 and repeat == 0 and condition == 'agents=2'")
    assert {row["condition"] for row in fewer} == {"agents=2"}


def test_less_of_the_headline_may_be_better(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    done = run(tmp_path / "r", overrides=("headline={metric: agreed, better: lower}",))
    written, out = rows(done.folder)
    assert {row["reward"] for row in written} == {0.0, -1.0} and "reward: −agreed (lower is better)" in out


@pytest.mark.parametrize(
    "arguments, error",
    [
        pytest.param(["--where", "agred == 1"], "--where: agred: unknown name. Did you mean agreed?", id="name"),
        pytest.param(["--where", "agreed ="], "--where: agreed =: no expression", id="expression"),
        pytest.param(["--where", "number + 1.5"], "and neither true nor false", id="number"),
        pytest.param(["--where", "number < 'x'"], "(at the episode agents=2/c0/0)", id="types"),
        pytest.param(["--where", "agreed == 7"], "none of its 8 episodes meets 'agreed == 7'", id="none"),
        pytest.param(["--reward", "agred"], "--reward: ", id="reward"),
        pytest.param(
            ["--agent", "S9"], "--agent: no condition has an agent 'S9'\n  Available: S0, S1, S2.", id="agent"
        ),
        pytest.param(["--group", "judges"], "--group: no condition has a group 'judges'", id="group"),
        pytest.param(["--kind", "rlhf"], "--kind: there is no kind 'rlhf'", id="kind"),
        pytest.param(["--kind", "kto", "--keep_duplicates"], "--keep_duplicates: a pair counts", id="duplicates"),
        pytest.param(["--kind", "dpo"], "there is no pair of replies to learn from; left out: ", id="pairs"),
        pytest.param(["--holdout", "tooy"], "there is no spec 'tooy'", id="holdout"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(
    arguments: list[str], error: str, refused: Callable[..., str], sure: harness.Run
) -> None:
    found = refused(sure.folder, *arguments)
    assert error in found and found.startswith("error: ")


def test_an_episode_without_a_reward_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    folder = run(tmp_path / "r").folder
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    lines[2]["numbers"]["agreed"] = None
    (folder / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert f"scores.jsonl:3:1: the episode {lines[2]['id']} has no number for the reward agreed" in refused(folder)


def test_forms_of_tables_take_one_run_and_no_condition(capsys: pytest.CaptureFixture[str], sure: harness.Run) -> None:
    one = sure.folder
    code, _, err = invoke(capsys, "export", str(one), str(one), "--to", "csv")
    assert code == 2 and "the form 'csv' takes one run, found 2" in err
    code, _, err = invoke(capsys, "export", str(one), "--to", "csv", "--where", "agreed == 1")
    assert code == 2 and "--where is not for the form 'csv'" in err
    code, _, err = invoke(capsys, "export", str(one), str(one), "--to", "chat")
    assert code == 2 and "a run is given twice" in err


def test_cases_kept_for_evaluation_are_refused(
    rows: Callable[..., tuple[Rows, str]], refused: Callable[..., str], tmp_path: Path
) -> None:
    folder = run(tmp_path / "r").folder
    assert "the same spec, word for word" in refused(folder, "--holdout", "toy")
    other = run(tmp_path / "o", overrides=("protocol.rounds=1", "task.cases_made=2")).folder
    found = refused(folder, "--holdout", other)
    assert "4 of 8 cases to train on are kept for evaluation: agents=2/c0 (c0 of " in found and "agents=3/c1" in found
    written, _ = rows(folder, "--holdout", other, "--where", "number >= 2")
    assert {row["case"] for row in written} <= {"c2", "c3"}
    more = run(tmp_path / "m", overrides=("matrix.agents=[5]",)).folder
    assert rows(folder, "--holdout", more)[0]


SPELL = """
from dataclasses import dataclass
from harness.api import Case, Parsed, Reply, ReplyField, Task, plugin

@dataclass(frozen=True, slots=True)
class Shout(Reply):
    @property
    def options(self):
        return ("a", "b")

    def parse(self, text):
        word = text.strip()
        return Parsed(word[:-1]) if word in ("a!", "b!") else Parsed(error="shout")

@dataclass(frozen=True, slots=True)
class Letter(Shout):
    @property
    def fields(self):
        return (ReplyField("letter", "I say"),)

    def parse(self, text):
        word = text.replace("I say", "").strip()
        return Parsed(word) if word in ("a", "b") else Parsed(error="say a letter")

@plugin
class Spell(Task):
    '''Says a letter.'''

    grades = ("agreed",)
    loud_from: int = 9

    def cases(self, limit, seed):
        return [self.example()]

    def example(self):
        return Case(id="c", agents=("S0",))

    def context(self, case, agent):
        shots = [{"role": "user", "content": "Say z."}, {"role": "assistant", "content": "I say z"}]
        return {"name": agent, "history": shots, "beginning": "I say "}

    def reply(self, case, agent):
        self.asked = getattr(self, "asked", -1) + 1
        return Letter() if self.asked % 4 < self.loud_from else Shout()

    def grade(self, case, outcome):
        return {"agreed": 1.0}
"""


def spelled(folder: Path, loud_from: int) -> harness.Run:
    """A policy in a task whose form of replies, from a turn on, says nothing of how it is written."""
    (folder / "registry" / "tasks").mkdir(parents=True, exist_ok=True)
    (folder / "harness.yaml").write_text(f"name: spelling\nparents: [{TOY.root}]\n")
    (folder / "registry" / "tasks" / "spell.py").write_text(f'"""Letters."""\n{SPELL}')
    project: Project = find(folder)
    changes = [f"task={{use: spell, loud_from: {loud_from}}}", "prompts=toy/opened", "matrix=null", "tables=[]"]
    changes += ["metrics=[agreed]", "protocol.rounds=4"]
    return harness.evaluate("toy", None, overrides=changes, output_path=folder / "r", project=project)


def test_a_turn_whose_form_cannot_write_the_action_ends_its_conversation(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for loud_from, learned in ((4, 4), (2, 2), (0, 0)):
        folder = tmp_path / str(loud_from)
        done = spelled(folder, loud_from)
        with contextlib.chdir(folder):
            code, out, err = invoke(capsys, "export", str(done.folder), "--to", "chat")
        left = "left out: 1 turns whose form Shout reads another action than the policy's"
        if not learned:
            assert code == 2 and f"no reply to learn from; {left}" in err
            continue
        [row] = [json.loads(line) for line in (done.folder / "export/chat/sft.jsonl").read_text().splitlines()]
        assert [m["weight"] for m in row["messages"] if m["role"] == "assistant"] == [0] + [1] * learned
        said = {m["content"] for m in row["messages"] if m["role"] == "assistant"}
        assert said <= {"I say z", "I say a", "I say b"}  # what the prompt began is not said again
        assert (left in out) == (learned < 4)
        assert ("1 turns behind one of these in its conversation" in out) == (learned < 4)


def test_prompts_of_one_text_are_left_out(refused: Callable[..., str], tmp_path: Path) -> None:
    folder = run(tmp_path / "r", overrides=("prompts=toy/text",)).folder
    assert "60 turns whose prompts (toy/text) are one text and no messages" in refused(folder)


@pytest.mark.slow
def test_loaders_of_data_sets_read_every_kind(rows: Callable[..., tuple[Rows, str]], tmp_path: Path) -> None:
    """Rows with and without tools, whose parameters and arguments differ, have columns of one type."""
    from datasets import load_dataset

    with contextlib.chdir(ROOT):
        folder = harness.evaluate("silo_calls", None, output_path=tmp_path / "calls", project=BUILTIN, limit=1).folder
    fair = run(tmp_path / "fair", overrides=("baseline.bias=0.6", "repeats=3")).folder
    for source, kind in ((folder, "sft"), (folder, "replies"), (fair, "dpo"), (fair, "kto")):
        with contextlib.chdir(ROOT if source == folder else TOY.root):
            written, _ = rows(source, kind=kind)
        file = tmp_path / f"{kind}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in written))
        loaded = load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
        assert len(loaded) == len(written) and set(loaded.column_names) == {*written[0]}
        without_null = json.loads(
            json.dumps(loaded[0]), object_hook=lambda o: {k: v for k, v in o.items() if v is not None}
        )
        assert without_null == written[0]
        assert ("tools" in written[0]) == (source == folder)
