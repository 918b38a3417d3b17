"""Views draw every shipped task, whatever its agents do, and what they draw is what the journal says."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.cli import main
from harness.config import resolve
from harness.config.project import Project, builtin
from harness.config.spec import load
from harness.engines.likelihoods import likelihoods_of
from harness.engines.mock import Mock
from harness.extensions.viewer.views import Views, as_json
from harness.extensions.yaml_tasks.conformance import check_view
from harness.transcripts.reader import Transcripts
from harness.transcripts.view_api import Scene, Transcript, View

SPECS = [
    "agentsnet_quick", "agentsnet_byzantine", "agentsnet_camoc", "dpbench_quick", "dpbench_ablations",
    "dpbench_release02",
    "worlds/trading", "worlds/four_way_stop", "worlds/telephone",
    "networks/matching", "networks/shared_rooms", "cross/crowd", "cross/links",
    "silo_quick", "silo_silence", "silo_rcc", "silo_panel", "mas_quick", "darkforest_quick", "arithmetic",
    "teams/tree", "teams/importance", "hanabi", "repeated_dilemmas",
]  # fmt: skip


@pytest.fixture(scope="module")
def views() -> Views:
    return Views(builtin())


def drawn(folder: Path) -> Iterator[tuple[Transcript, list[Scene], View]]:
    """Every episode of a run with its scenes."""
    transcripts, views = Transcripts(folder), Views(builtin())
    assert transcripts.plan is not None
    conditions = {condition.id: condition for condition in transcripts.plan.conditions}
    for transcript in transcripts:
        condition = conditions[transcript.condition]
        scenes, note = views.scenes(transcript, condition.task, condition.protocol)
        assert note is None
        yield transcript, scenes, views.choose(condition.task, condition.protocol)


def test_scored_options_are_drawn_as_answers(tmp_path: Path) -> None:
    choices = ["--set", "task.data_files=tests/data/mmlu_pro.jsonl", "--set", "task.num_fewshot=0"]
    play = ["eval", "--spec", "mmlu_pro", *choices, "--set", "prompts=panels/standard", "--quiet", "--limit", "2"]
    play += ["--set", "baseline={use: simulated, accuracy: 0.9}"]
    protocols = {"vote": "{use: vote, agents: 3}", "sure": "{use: darkforest, agents: 3, confidence: likelihood}"}
    for name, protocol in protocols.items():
        scored = ["--set", "task.scoring=loglikelihood"] if name == "vote" else []
        folder = tmp_path / name
        assert main([*play, *scored, "--set", f"protocol={protocol}", "--output_path", str(folder)]) == 0
        for transcript, scenes, _ in drawn(folder):
            last = scenes[-1]
            letters = {node.text for node in last.nodes if node.id.startswith("Agent")}
            assert letters <= {"A", "B", "C"} and "[[" not in str(last)
            [shares] = [bars.values for bars in last.bars if bars.title == "Confidence"]
            assert set(shares) == {"Agent-0", "Agent-1", "Agent-2"} and all(0.3 < n < 1 for n in shares.values())
            asked = {turn.name: turn.reply for turn in transcript.turns}
            reply = asked["answer" if name == "vote" else "confidence"]
            form = likelihoods_of(reply) if reply is not None else None
            assert form is not None and [one.text for one in form.continuations] == ["A", "B", "C"]
            outcome = transcript.outcome
            assert outcome is not None and ("[[" in str(outcome.group)) == (name == "vote")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPECS)
def test_shipped_views_draw_every_condition(name: str, views: Views) -> None:
    plan = resolve.plan(load(name, builtin()), builtin(), Mock())
    seen: set[tuple[str, str]] = set()
    for condition in plan.conditions:
        key = (repr(condition.task)[:400], repr(condition.protocol)[:400])
        if key not in seen and len(seen) < 12:
            seen.add(key)
            assert (
                check_view(views.choose(condition.task, condition.protocol), condition.task, condition.protocol) == []
            )
    assert not views.problems


def test_a_game_ends_with_the_last_board_of_each_seat_and_who_has_won(tmp_path: Path) -> None:
    ends: dict[str, Scene] = {}
    for game, more in (
        ("tic_tac_toe", {}),
        ("kuhn_poker", {}),
        ("matrix_pd", {"talk_rounds": 1, "channel": "neighbors"}),
    ):
        source = {
            "name": "x",
            "task": {"use": "openspiel", "game": game, "instances": 1},
            "protocol": {"use": "steps", **more},
        }
        harness.evaluate(source, output_path=tmp_path / game)
        [(transcript, scenes, _)] = drawn(tmp_path / game)
        ends[game] = scenes[-1]
        returns = transcript.outcome.facts["returns"]  # type: ignore[union-attr]
        assert (f"{max(returns, key=returns.get)} has " in ends[game].caption) == (len({*returns.values()}) > 1)
    board, *_ = ends["tic_tac_toe"].sheets
    assert board.title == "The end, as Player-0, Player-1 saw it" and board.rows[0][0].startswith("0 ")
    assert [sheet.title for sheet in ends["kuhn_poker"].sheets][:2] == [
        "The end, as Player-0 saw it",
        "The end, as Player-1 saw it",
    ]
    assert not ends["tic_tac_toe"].nodes  # the board says more
    assert [node.id for node in ends["matrix_pd"].nodes] == ["Player-0", "Player-1"]


AUCTION = {
    "name": "auction",
    "task": {
        "use": "world", "agents": ["Ann", "Bob"], "instances": 1, "rules": "Bid.", "state": {"lot": 1},
        "own": {"purse": 0}, "sees": {"lot": "lot", "your_gain": "mine.purse"}, "noop": "PASS", "end": "lot > 2",
        "actions": {
            "BID": {"parameters": {"coins": {"integer": [1, 9]}}, "effects": {"mine.purse": "mine.purse + coins"}},
            "PASS": {},
        },
        "each_round": {"lot": "lot + 1"}, "scores": {"score": "purse", "all": "sum(values(purse))"},
    },
    "protocol": {"use": "steps", "max_timesteps": 5},
    "prompts": "world/standard",
    "metrics": [{"use": "grade", "of": "all"}],
}  # fmt: skip


def bidder(request: Request) -> str:
    return "ACTION: BID coins=3" if "Ann" in request.thread.messages[0]["content"].split(",")[0] else "no idea"


def auction(folder: Path, **task: Any) -> Scene:
    """The last scene of an auction in which Bob cannot be read."""
    source = {**AUCTION, "task": {**AUCTION["task"], **task}}  # type: ignore[dict-item]
    harness.evaluate(source, Mock(function=bidder), output_path=folder, max_error_rate=1.0)
    [(_, scenes, _)] = drawn(folder)
    return scenes[-1]


def test_a_world_shows_what_was_played_for_an_unread_reply_and_what_each_agent_got(tmp_path: Path) -> None:
    end = auction(tmp_path / "run")
    assert end.caption == "Step 2: Ann BID 3, Bob unread → PASS. The game is over."
    assert [(node.id, node.text) for node in end.nodes] == [("Ann", "BID 3"), ("Bob", "PASS")]
    actions, scores, seen = end.sheets
    assert actions.rows == (("Ann", "BID 3", "BID 3"), ("Bob", "unread → PASS", "unread → PASS"))
    assert (scores.title, scores.rows) == ("Scores", (("Ann", "6"), ("Bob", "0")))
    assert (seen.title, seen.rows) == ("What they see in the end", (("Ann", "6"), ("Bob", "0")))
    assert end.facts == {"lot": "3", "all": "6"}


def test_a_world_whose_end_cannot_be_seen_shows_what_was_seen_before(tmp_path: Path) -> None:
    end = auction(tmp_path / "run", noop=None, sees={"lot": "['first', 'second'][lot - 1]", "your_gain": "mine.purse"})
    assert end.caption == "Step 2: Ann BID 3, Bob unread. The game is over."
    assert end.sheets[-1].title == "What they saw before they acted" and end.sheets[-1].rows[0] == ("Ann", "3")
    assert end.facts == {"lot": "second", "all": "6"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["protocol.deadlock=non_terminal", "baseline=dpbench/always_left"],
        ["protocol.backoff_threshold=1", "baseline=dpbench/always_left"],
        ["task.rules=dpbench-0.2", "protocol.ends=turn", "baseline=random"],
    ],
)
def test_the_table_is_stepped_as_it_was_played(changes: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    harness.evaluate("dpbench_quick", overrides=changes, output_path=folder)
    for transcript, scenes, view in drawn(folder):
        assert type(view).__name__ == "RoundTable"
        meals = {node.id: int(node.text) for node in scenes[-1].nodes if node.kind == "agent"}
        assert meals == transcript.outcome.facts["eaten"], transcript.id
        deadlocks = [i for i, scene in enumerate(scenes) if any("conflict" in node.marks for node in scene.nodes)]
        played = transcript.outcome.facts["deadlocks"]
        # Where agents act one after another, a deadlock that one of them resolves within the turn does not count.
        assert len(deadlocks) == len(played) or ("seq" in transcript.condition and len(deadlocks) > len(played))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["coloring", "dominating_set", "matching", "shared_rooms", "two_hop_coloring"])
def test_declared_networks_show_which_constraints_fail(name: str, tmp_path: Path) -> None:
    harness.evaluate(f"networks/{name}", output_path=tmp_path / "run", overrides=["matrix.size=[4, 6]"], limit=2)
    drawn_solved = set()
    for transcript, scenes, view in drawn(tmp_path / "run"):
        assert type(view).__name__ == "Networks"
        last = scenes[-1]
        marks = {mark for node in last.nodes for mark in node.marks} | {edge.state for edge in last.edges}
        assert ("conflict" in marks) == (transcript.grade["solved"] == 0), transcript.id
        drawn_solved.add(transcript.grade["solved"])
        if name == "matching":
            chosen = sum(edge.state == "chosen" for edge in last.edges)
            answers = transcript.outcome.answers
            assert chosen == sum(answers.get(answers[agent]) == agent for agent in answers) / 2
    assert 0 in drawn_solved


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "changes"),
    [("agentsnet_quick", []), ("agentsnet_quick", ["baseline=random"]), ("agentsnet_byzantine", ["baseline=random"])],
)
def test_networks_show_what_decides_their_grade(name: str, changes: list[str], tmp_path: Path) -> None:
    harness.evaluate(name, output_path=tmp_path / "run", overrides=changes, limit=1)
    for transcript, scenes, _ in drawn(tmp_path / "run"):
        last, problem = scenes[-1], transcript.labels["problem"]
        marks = {mark for node in last.nodes for mark in node.marks} | {edge.state for edge in last.edges}
        assert ("byzantine" in marks) == (name == "agentsnet_byzantine")
        if "no answer" not in marks:
            faults = marks & {"conflict", "not needed"}
            if problem == "leader_election":
                faults = faults or (set() if "leader" in marks else {"no leader"})
            assert bool(faults) == (transcript.grade["solved"] == 0), transcript.id
        if problem == "coloring" and name == "agentsnet_quick":
            bad = sum(edge.state == "conflict" for edge in last.edges)
            assert transcript.grade["score"] == pytest.approx(1 - bad / len(last.edges))
        assert sum(len(scene.messages) for scene in scenes) == transcript.outcome.facts["messages"]


@pytest.mark.slow
def test_the_same_answer_has_the_same_color_at_each_agent(tmp_path: Path) -> None:
    own = ["task.known={licence: 'sample(range(1, 6), 3)'}", "task.answer={choice: 'licence[agent]'}"]
    harness.evaluate("networks/coloring", output_path=tmp_path / "run", overrides=[*own, "matrix.size=[8]"])
    for transcript, scenes, _ in drawn(tmp_path / "run"):
        shown = {(transcript.outcome.answers[node.id], node.color) for node in scenes[-1].nodes}
        answers = {answer for answer, _ in shown}
        assert len(shown) == len(answers) == len({color for _, color in shown})


@pytest.mark.slow
def test_boards_count_messages_and_right_answers(tmp_path: Path) -> None:
    task = {"use": "sharded", "problem": "any", "question": "Name a number.", "truth": "max(data)",
            "draw": {"data": "[randint(1, 99) for _ in range(agents * per_agent)]"},
            "right": "answer in data"}  # fmt: skip
    rounds = {"use": "action_rounds", "channel": "mailbox"}
    several = {
        "name": "several",
        "task": task,
        "protocol": rounds,
        "prompts": "sharded/standard",
        "metrics": ["rounds"],
    }
    harness.evaluate({**several, "baseline": "silo/silent"}, output_path=tmp_path / "several")
    for name in ("silo_quick", "mas_quick"):
        harness.evaluate(name, output_path=tmp_path / name)
    for name in ("silo_quick", "mas_quick", "several"):
        for transcript, scenes, _ in drawn(tmp_path / name):
            right = sum("right" in node.marks for node in scenes[-1].nodes)
            assert right / len(transcript.agents) == pytest.approx(transcript.grade["success"]), transcript.id
            facts = transcript.outcome.facts
            sent_messages = sum(len(scene.messages) for scene in scenes[facts["final_from"] + 1 :])
            sent = sum(n for line in facts["sent"].values() for n, _ in line.values())
            later = " ".join(scene.caption for scene in scenes[facts["final_from"] + 1 :])
            read = sum(int(n) for n in re.findall(r"reads? (\d+) file", later))
            if facts["reads"] is None:
                assert sent_messages == sent and read == 0
            else:  # who reads a file gets no message from its writer, who may have left
                assert sent_messages == 0 and read == sum(sum(line.values()) for line in facts["reads"].values())
            assert all(scene.caption.startswith(f"Round {i}") for i, scene in enumerate(scenes) if i)


@pytest.mark.slow
def test_panels_show_the_verdict(tmp_path: Path) -> None:
    harness.evaluate("darkforest_quick", output_path=tmp_path / "run", limit=1)
    for transcript, scenes, _ in drawn(tmp_path / "run"):
        bars = {bar.title: bar for bar in scenes[-1].bars}
        facts = transcript.outcome.facts
        if "clusters" in facts:
            top = bars["Belief (posterior)"]
            assert top.values[top.highlight] == max(cluster["posterior"] for cluster in facts["clusters"])
        elif "votes" in facts:
            assert sorted(bars["Votes"].values.values()) == sorted(facts["votes"].values())
        assert ("Solved" in scenes[-1].caption) == (transcript.grade["score"] == 1)


def test_a_discussion_shows_who_hears_whom_and_who_is_who(tmp_path: Path) -> None:
    protocol = {
        "use": "discussion", "agents": 4, "topology": "chain", "order": "moderator", "max_rounds": 2,
        "personas": ["an accountant", {"name": "Skeptic", "text": "You doubt every sum."}],
    }  # fmt: skip
    spec = {"name": "x", "task": "arithmetic", "prompts": "panels/standard", "metrics": ["score"]}
    players = {"use": "simulated", "accuracy": 0.5}
    harness.evaluate({**spec, "protocol": protocol, "baseline": players}, output_path=tmp_path / "run", limit=1)
    [(_, scenes, _)] = drawn(tmp_path / "run")
    sent_messages = {(message.sender, message.receiver) for scene in scenes for message in scene.messages}
    chain = {("Agent-0", "Agent-1"), ("Agent-1", "Agent-2"), ("Agent-2", "Agent-3")}
    assert sent_messages == chain | {(f"Agent-{i}", "Moderator") for i in range(4)}
    sheets = {sheet.title: sheet for sheet in scenes[-1].sheets}
    assert sheets["Answers"].columns == ("", "answer", "talk", "talk"), "a column a round, though each speaks alone"
    assert [row[0] for row in sheets["Personas"].rows] == ["Agent-0", "Agent-1"]
    assert [node.label for node in scenes[-1].nodes][:2] == ["Agent-0: an accountant", "Agent-1: Skeptic"]


def test_a_team_stands_in_levels_and_shows_who_reads_whom(tmp_path: Path) -> None:
    harness.evaluate("teams/tree", Mock(text="Seven.\nThe answer is 7."), limit=1, output_path=tmp_path / "run")
    [(_, scenes, view)] = drawn(tmp_path / "run")
    assert type(view).__name__ == "Teams" and len(scenes) == 6
    columns = {node.id.partition("-")[0]: node.x for node in scenes[0].nodes}
    assert columns["lead"] < columns["head"] < columns["worker"]
    pairs = {(edge.source, edge.target) for edge in scenes[0].edges}
    assert ("lead", "head-1") in pairs and ("worker-3", "head-1") in pairs and ("worker-3", "lead") not in pairs
    assert {(message.sender, message.receiver) for message in scenes[2].messages} == {
        ("lead", "head-0"),
        ("lead", "head-1"),
    }
    assert scenes[-1].caption.startswith("lead answers after 4 messages. The team answers 7.")


@pytest.mark.slow
def test_scenes_are_sent_as_changes(tmp_path: Path) -> None:
    """The page puts them together again as `whole` does (`static/scenes.js`)."""
    harness.evaluate("silo_quick", output_path=tmp_path / "run")
    for _, scenes, _ in drawn(tmp_path / "run"):
        now: dict[str, Any] = {}
        sent = as_json(scenes)
        assert sent[0].keys() == {"caption", "nodes", "edges", "messages", "bars", "sheets", "facts"}
        for scene, changes in zip(scenes, sent, strict=True):
            now = {name: whole(now.get(name), changes[name]) if name in changes else now[name] for name in sent[0]}
            assert now["caption"] == scene.caption
            assert [node["id"] for node in now["nodes"]] == [node.id for node in scene.nodes]
            assert [node["marks"] for node in now["nodes"]] == [list(node.marks) for node in scene.nodes]
            assert [s["rows"] for s in now["sheets"]] == [[list(row) for row in s.rows] for s in scene.sheets]


def whole(old: Any, new: Any) -> Any:
    """A part of a scene, from the one before and what changed."""
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [one if other is None else sheet(one, other) for one, other in zip(old, new, strict=True)]
    return new


def sheet(old: Any, new: Any) -> Any:
    if not isinstance(new, dict) or "rows" not in new:
        return new
    if new.get("grown"):
        rows = [before + more for before, more in zip(old["rows"], new["rows"], strict=True)]
        return {**new, "rows": rows, "grown": False}
    return {**new, "rows": whole(old["rows"], new["rows"]) if old["title"] == new["title"] else new["rows"]}


VIEW = """
from harness.api import plugin
from harness.transcripts.view_api import Node, Scene, View

@plugin
class Mine(View):
    \"\"\"Draws everything in one word.\"\"\"

    word: str = "mine"

    def draws(self, task, protocol):
        return {draws}

    def scenes(self, transcript, task):
        for _ in range(len(transcript.rounds) + {more}):
            yield Scene(self.word)
"""


def own(folder: Path, **views: str) -> Project:
    (folder / "registry" / "views").mkdir(parents=True)
    (folder / "harness.yaml").write_text("name: mine\nparents: [harness_builtin]\n", "utf-8")
    for name, text in views.items():
        (folder / "registry" / "views" / f"{name}.py").write_text(text, "utf-8")
    from harness.config.project import find

    return find(folder)


def test_the_nearest_projects_view_comes_first(tmp_path: Path) -> None:
    harness.evaluate("arithmetic", output_path=tmp_path / "run", limit=1)
    project = own(tmp_path / "mine", zz_mine=VIEW.format(draws="True", more=1))
    transcripts = Transcripts(tmp_path / "run")
    [condition] = transcripts.plan.conditions[:1]
    [transcript] = [transcript for transcript in transcripts if transcript.condition == condition.id][:1]
    scenes, note = Views(project).scenes(transcript, condition.task, condition.protocol)
    assert {scene.caption for scene in scenes} == {"mine"}
    assert note is None


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (VIEW.format(draws="True", more=0), "gave 1 scenes for 1 rounds"),
        (VIEW.format(draws="True", more="10**12"), "gave too many scenes for 1 rounds"),
        (VIEW.format(draws="True", more="None"), "TypeError"),
    ],
)
def test_a_broken_view_gives_way(view: str, says: str, tmp_path: Path) -> None:
    harness.evaluate("arithmetic", output_path=tmp_path / "run", limit=1)
    views = Views(own(tmp_path / "mine", broken=view, not_python="import nothing_of_that_name"))
    transcripts = Transcripts(tmp_path / "run")
    [condition] = transcripts.plan.conditions[:1]
    [transcript] = list(transcripts)[:1]
    scenes, note = views.scenes(transcript, condition.task, condition.protocol)
    assert len(scenes) == 2
    assert says in note and "generic" in note and "nothing_of_that_name" in note


def test_a_broken_view_is_not_named_where_another_draws(tmp_path: Path) -> None:
    harness.evaluate("arithmetic", output_path=tmp_path / "run", limit=1)
    views = Views(own(tmp_path / "mine", broken=VIEW.format(draws="1 / 0", more=1), not_python="import nothing"))
    transcripts = Transcripts(tmp_path / "run")
    [condition] = transcripts.plan.conditions[:1]
    [transcript] = list(transcripts)[:1]
    scenes, note = views.scenes(transcript, condition.task, condition.protocol)
    assert len(scenes) == 2 and note is None
    assert len(views.problems) == 2
    note = views.scenes(replace(transcript, case=None), condition.task, condition.protocol)[1]
    assert "ZeroDivisionError" in note and "nothing" in note


@pytest.mark.slow
def test_boards_show_the_links_of_a_network_and_judge_no_single_answer_of_it(tmp_path: Path) -> None:
    small = ["matrix.graphs=[ring]", "matrix.liars=[1]", "matrix.prompts=[network/aware]", "task.instances=1"]
    harness.evaluate("cross/crowd", output_path=tmp_path / "run", overrides=small)
    scenes = {transcript.condition: scenes for transcript, scenes, _ in drawn(tmp_path / "run")}
    [sparse] = [found for condition, found in scenes.items() if "P2P" in condition]
    [wide] = [found for condition, found in scenes.items() if "Broadcast" in condition]
    for found in (sparse, wide):
        assert len(found[0].edges) == 8 and "right" not in found[-1].facts
        assert not any({"right", "wrong"} & {*node.marks} for node in found[-1].nodes)
        assert found[-1].facts["submitted"] == "8 of 8"
    assert len(sparse[1].messages) == 16 and {message.receiver for message in wide[1].messages} == {"*"}


def test_a_broadcast_in_a_network_flies_to_neighbors(tmp_path: Path) -> None:
    small = ["matrix.topology=[ring]", "matrix.loss=[0]", "task.instances=1"]
    harness.evaluate("cross/links", output_path=tmp_path / "run", overrides=small)
    [scenes] = [found for transcript, found, _ in drawn(tmp_path / "run") if "Broadcast" in transcript.condition]
    assert len(scenes[1].messages) == 16 and all(message.receiver != "*" for message in scenes[1].messages)
    assert scenes[-1].facts["right"] == "8"
