"""`team`: who acts when, who reads whom, when it ends, and what it makes of failures and of mistakes in a spec."""

import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api.errors import PluginError, RequestError
from harness.cli import main
from tests.extensions.panels.exchange_kit import MARK, mark, read
from tests.extensions.panels.team_kit import facts, idle, order, roles, scripted, team
from tests.helpers.samples import examples

GOLDEN = Path(__file__).parents[2] / "golden"
SHAPES: dict[str, dict[str, Any]] = {
    "star": {"roles": roles(planner=1, worker=2), "edges": "star"},
    "chain": {"roles": roles(link={"agents": 3, "asks": "answer", "conversation": "new"}), "edges": "chain"},
    "tree": {"roles": roles(lead=1, head=2, worker=2), "edges": "tree"},
    "graph": {"roles": roles(member=2), "edges": "graph"},
}

WITHIN: list[Any] = [
    *("chain", "star", "tree", "mesh", "layered", "random", "small_world", "scale_free", "delaunay", "grid", "ring"),
    {"random": "gnp_random_graph", "parameters": {"p": "0.3"}},
]


def works(seat: str, number: int, prompt: str) -> str:
    """Work, with an answer where one is wanted."""
    end = "\nThe answer is 495." if "The answer is <number>" in prompt else ""
    return f"{seat} writes message {number + 1}.{end}"


def transcript(shape: str) -> str:
    """Every conversation in the order in which they began, and what came out."""
    played = scripted(works, **SHAPES[shape])
    lines = [
        f"═══ {seat} · {message['role']} ═══\n{message['content']}\n"
        for seat, thread in played.threads
        for message in thread.messages
    ]
    facts = "\n".join(f"{name}: {json.dumps(value)}" for name, value in played.outcome.facts.items())
    return "\n".join([*lines, f"group: {played.outcome.group}", facts, ""])


@pytest.mark.parametrize("shape", SHAPES)
def test_golden_transcripts(shape: str) -> None:
    """To look at a wanted change: write `transcript(shape)` over the file and read the difference."""
    assert transcript(shape) == (GOLDEN / f"team_{shape}.txt").read_text("utf-8")


# -------------------------------------------------------------------------------- who acts when


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (SHAPES["star"], "p ww p"),
        ({**SHAPES["star"], "rounds": 2}, "p ww p ww p"),
        (SHAPES["chain"], "l l l"),
        ({**SHAPES["chain"], "rounds": 5}, "l l l"),  # no one has news
        (SHAPES["tree"], "l hh ww hh l"),
        ({**SHAPES["tree"], "rounds": 2}, "l hh ww hh l hh ww hh l"),
        (SHAPES["graph"], "mm mm"),
        ({"roles": roles(solver=3)}, "sss"),
        ({"roles": roles(a=1, b=1), "edges": ["a > b", "b > a"], "answers": "a", "rounds": 3}, "a b a b a b a"),
        ({"roles": roles(a=1, b=1), "edges": [("a", "b"), ("b", "a")], "rounds": 3}, "a b a b a b"),
        ({"roles": roles(a=2, b=1), "edges": ["a > a", "a > b"], "rounds": 2}, "aa b aa b"),
        ({"roles": roles(s={"agents": 4, "within": "tree"}, z=1), "edges": ["s > z"]}, "s ss s z"),
        ({"roles": roles(s={"agents": 9, "within": "layered"}, z=1), "edges": ["s > z"]}, "sss sss sss z"),
    ],
)  # fmt: skip
def test_seats_act_level_by_level_and_only_with_news(parameters: dict[str, Any], expected: str) -> None:
    assert " ".join("".join(seat[0] for seat in batch) for batch in order(idle(**parameters))) == expected
    played = scripted(works, **parameters)
    assert played.order == order(idle(**parameters)), "idle agents play as long as it lasts"


@settings(max_examples=examples(40))
@given(n=st.integers(2, 12), data=st.data())
def test_levels_are_the_generations_of_the_graph(n: int, data: st.DataObject) -> None:
    place = st.integers(0, n - 1)
    pairs = data.draw(st.sets(st.tuples(place, place)))
    forward = sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})
    edges = [f"s-{i} > s-{j}" for i, j in forward] + ["s > last"]
    graph = nx.DiGraph([(f"s-{i}", f"s-{j}") for i, j in forward])
    graph.add_edges_from((f"s-{i}", "last") for i in range(n))
    generations = [sorted(level, key=lambda seat: (len(seat), seat)) for level in nx.topological_generations(graph)]
    assert order(idle(roles=roles(s=n, last=1), edges=edges)) == generations


@pytest.mark.sampled
@pytest.mark.parametrize("within", WITHIN, ids=lambda within: str(within)[:12])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 64])
def test_a_graph_within_a_role_joins_sources_and_sinks(within: Any, n: int) -> None:
    made = team(roles=roles(first=1, s={"agents": n, "within": within}, last=1), edges=["first > s > last"])
    graph = nx.DiGraph([(one, other) for one, heard in made.graph.heard_by.items() for other in heard])
    assert nx.is_directed_acyclic_graph(graph)
    assert [seat for seat, degree in graph.in_degree if not degree] == ["first"]
    assert [seat for seat, degree in graph.out_degree if not degree] == ["last"]
    assert made.graph == team(roles=made.roles, edges=made.edges).graph, "the same graph each time"


# -------------------------------------------------------------------------------- who reads whom

NAMES = ("red", "green", "blue")


@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_word_stands_in_the_prompts_of_successors_and_nowhere_else(data: st.DataObject) -> None:
    shape = {name: data.draw(st.integers(1, 2), label=name) for name in NAMES[: data.draw(st.integers(1, 3))]}
    names = [*shape]
    pairs = [(a, b) for a in names for b in names if a != b or shape[a] > 1]
    chosen = sorted(data.draw(st.sets(st.sampled_from(pairs)), label="edges")) if pairs else []
    edges = sorted({*chosen, *((name, names[-1]) for name in names[:-1])})
    kept = data.draw(st.booleans(), label="kept")
    style = {"conversation": "kept" if kept else "new"}
    bodies = {name: {"agents": count, **style} for name, count in shape.items()}

    def say(seat: str, number: int, prompt: str) -> str:
        return f"{mark(seat, number)} The answer is {number}."

    played = scripted(say, roles=roles(**bodies), edges=edges, rounds=data.draw(st.integers(1, 3)))
    role = {seat: seat.partition("-")[0] for batch in played.order for seat in batch}
    written: list[list[tuple[str, int]]] = []
    before: dict[str, int] = {}
    for now, batch in enumerate(played.batches):
        for seat, number, prompt in batch:
            audible = [[m for m in done if (role[m[0]], role[seat]) in edges and m[0] != seat] for done in written]
            if kept:  # what came since its last turn
                expected = [m for done in audible[before.get(seat, 0) :] for m in done]
            else:  # the last message of each, and its own
                expected = [*{m[0]: m for done in audible for m in done}.values()]
                expected += [(seat, number - 1)] if number else []
            assert sorted(map(read, MARK.findall(prompt))) == sorted(f"{who}.{n}" for who, n in expected)
            before[seat] = now
        written.append([(seat, number) for seat, number, _ in batch])
    sent = {(one, other): n for one, heard in facts(played)["sent"].items() for other, (n, _) in heard.items()}
    assert all(other == "*" or (role[one], role[other]) in edges for one, other in sent)


def test_a_seat_knows_its_brief_and_a_role_may_do_without_the_question() -> None:
    parts = roles(solver=1, checker={"question": False})
    played = scripted(works, roles=parts, edges=["solver > checker > solver"], answers="solver")
    systems = [thread.messages[0]["content"] for _, thread in played.threads]
    assert "You are solver, one of a team. You are a solver." in systems[0] and "read by: checker" in systems[0]
    assert "You are checker, one of a team." in systems[1]
    assert "What is" in played.prompt("solver", 0) and "What is" not in played.prompt("checker", 0)
    assert "What is" not in played.prompt("solver", 1), "its conversation has the question"


# ------------------------------------------------------------------------------------- the end


def test_a_signal_in_the_last_line_stops_the_team() -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        if seat == "critic":
            return "Say approved, then:\nno" if number == 0 else "All is well.\n**Approved.**"
        return f"The answer is {number}."

    parts: Any = {"roles": roles(worker=1, critic=1), "edges": ["worker > critic > worker"], "answers": "worker"}
    played = scripted(say, **parts, rounds=9, stop={"role": "critic", "says": "APPROVED"})
    assert played.order == [["worker"], ["critic"], ["worker"], ["critic"]]
    assert (played.outcome.group, facts(played)["exit"], facts(played)["rounds"]) == (1, "stopped", 2)
    assert facts(played)["turns"] == {"worker": 2, "critic": 2} and facts(played)["history"] == [[0], [1]]
    assert "approved" in played.prompt("critic", 0).casefold()


def test_a_planner_that_is_stopped_still_answers() -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        return "done" if seat.startswith("worker") else f"The answer is {number}."

    played = scripted(say, **SHAPES["star"], rounds=5, stop={"role": "worker", "says": "done"})
    assert played.order == [["planner"], ["worker-0", "worker-1"], ["planner"]] and played.outcome.group == 1


@pytest.mark.parametrize(("share", "rounds"), [(0.66, 1), (1.0, 2)])
def test_agreement_stops_the_team(share: float, rounds: int) -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        return f"The answer is {7 if seat != 'm-2' or number else 8}."

    played = scripted(say, roles=roles(m=3), edges="graph", rounds=5, stop={"agree": share})
    assert (facts(played)["rounds"], facts(played)["exit"], played.outcome.group) == (rounds, "agreed", 7)


@pytest.mark.parametrize("edges", ["star", "tree"])
def test_another_answering_role_of_a_shape_is_asked_in_every_round(edges: str) -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        return "The answer is 7." if "answer the question" in prompt else "I plan."

    parts = roles(planner=1, worker=2)
    played = scripted(say, roles=parts, edges=edges, answers="worker", rounds=3, stop={"agree": 1.0})
    assert played.order == [["planner"], ["worker-0", "worker-1"]]
    assert (facts(played)["exit"], facts(played)["history"], played.outcome.group) == ("agreed", [[7, 7]], 7)


def test_a_failed_seat_sends_nothing_and_the_others_go_on() -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        if seat == "worker-0" or (seat == "planner" and number == 2):
            raise RequestError("down")
        return f"{mark('w', 0)} {works(seat, number, prompt)}"

    played = scripted(say, **{**SHAPES["star"], "rounds": 2, "roles": roles(planner={"asks": "answer"}, worker=2)})
    assert played.order == [["planner"], ["worker-0", "worker-1"]] * 2 + [["planner"]]
    assert "worker-0 ===" not in played.prompt("planner", 1) and "worker-1 ===" in played.prompt("planner", 1)
    assert played.outcome.group == 495, "the last answer that could be read"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_team_that_fails_altogether_has_no_answer(shape: str) -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        raise RequestError("down")

    played = scripted(say, **SHAPES[shape], rounds=3)
    assert played.outcome.group is None and facts(played)["exit"] in ("no answer", "no candidate")


# ----------------------------------------------------------------------------------------- pruning


@pytest.mark.parametrize("by", ["peers", "ranker"])
def test_the_seats_rated_best_go_on(by: str) -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        if "Rate each" in prompt:
            rated = re.findall(r"The answer is (\d)\.", prompt)
            return json.dumps({str(place + 1): {"0": 1, "1": 5, "2": 3, "3": 5}[n] for place, n in enumerate(rated)})
        return f"The answer is {seat[-1]}."

    more = roles(ranker=1) if by == "ranker" else {}
    prune = {"role": "m", "keep": 2, "by": by}
    played = scripted(say, roles={**roles(m=4), **more}, edges="graph", rounds=2, prune=prune)
    raters = ["ranker"] if by == "ranker" else ["m-0", "m-1", "m-2", "m-3"]
    assert played.order == [["m-0", "m-1", "m-2", "m-3"], raters, ["m-1", "m-3"], ["m-1", "m-3"]]
    assert facts(played)["pruned"] == {
        "round": 1, "ratings": {"m-0": 1.0, "m-1": 5.0, "m-2": 3.0, "m-3": 5.0}, "kept": ["m-1", "m-3"],
    }  # fmt: skip
    later = played.prompt("m-1", 1 if by == "ranker" else 2)
    assert "From m-3" in later and "From m-0" not in later, "who left is not read any more"
    assert played.outcome.group == 1 and set(facts(played)["votes"]) == {"1", "3"}


def test_ratings_that_fail_keep_the_first() -> None:
    def say(seat: str, number: int, prompt: str) -> str:
        return "I would rather not." if "Rate each" in prompt else "The answer is 3."

    played = scripted(say, roles=roles(m=3), edges="graph", prune={"role": "m", "keep": 1})
    assert facts(played)["pruned"]["kept"] == ["m-0"] and played.outcome.group == 3


# ----------------------------------------------------------------------------------------- mistakes

SPEC = """name: t
task: {use: arithmetic, size: 1}
prompts: panels/standard
protocol:
  use: team
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("lines", "place", "says"),
    [
        ("roles: {}", "6:10", "roles is empty"),
        ("roles: {a: {brief: ' '}}", "6:22", "role 'a' has an empty brief"),
        ("roles: {a: {brief: x, agents: 600}, b: {brief: x, agents: 600}}", "6:10", "1,200 seats; at most 1,000"),
        ("roles: {a: {brief: x, agents: 2}, a-1: {brief: x}}", "6:42", "both have a seat 'a-1'"),
        ("roles: {two words: {brief: x}}", "6:22", "'two words' is not a name"),
        ("roles: {a: {brief: x}, b: {brief: x}}", "6:10", "roles without edges"),
        ("edges: [worker > citric]", "7:11", "edges names 'citric', which is not a role Did you mean critic?"),
        ("edges: [worker]", "7:11", "'worker' is not an edge"),
        ("edges: [worker > worker, worker > critic]", "7:11", "does not hear itself"),
        ("edges: [critic > worker]", "7:10", "no path of edges leads from 'worker' to 'critic'"),
        ("edges: [worker > critic]\n  answers: writer", "8:12", "answers names 'writer', which is not a role"),
        ("edges: [worker > critic]\n  stop: {role: critics, says: x}", "8:16", "stop names 'critics'"),
        ("edges: [worker > critic]\n  stop: {role: critic}", "8:9", "stop needs a role and what it says"),
        ("edges: [worker > critic]\n  stop: {role: critic, says: ''}", "8:30", "a few words on one line"),
        ("edges: [worker > critic]\n  prune: {role: worker, keep: 1}", "8:31", "all would go on"),
        ("edges: [worker > critic]\n  prune: {role: worker, keep: 1, after: 2}", "8:41", "no seat would be left out"),
        ("edges: [worker > critic]\n  prune: {role: worker, keep: 1, by: worker}", "8:38", "rates itself"),
        ("edges: [worker > critic]\n  prune: {role: worker, keep: 1, by: critic}", "7:11", "critic only rates (prune)"),
        ("edges: star\n  stop: {agree: 1}", "8:17", "'worker' is asked for answers only at the end"),
    ],
)
def test_mistakes_are_taught_at_their_place(
    lines: str, place: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "" if lines.startswith("roles") else "  roles: {worker: {brief: x}, critic: {brief: x}}\n"
    file = tmp_path / "t.yaml"
    file.write_text(f"{SPEC}{head}  {lines}\n")
    assert main(["validate", str(file)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"t.yaml:{place}:" in error and says in error


def test_a_team_cannot_have_more_pairs_than_it_can_hear() -> None:
    with pytest.raises(PluginError, match="more than 100,000 pairs of seats"):
        team(roles=roles(a=500, b=500), edges=["a > b"])
