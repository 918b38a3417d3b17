"""The policy in YAML: what it may name, what it does, and what its mistakes say."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Turn
from harness.api.errors import PluginError, UserError
from harness.config.project import builtin
from harness.extensions.games.actions import ActionForm, ActionParameter, Actions
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.networks.messages import Messages
from harness.replies import Labelled
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from tests.helpers.commands import invoke

ByExpression = builtin().load("policies", "expression")
ACT = Labelled(("GO", "WAIT"), noop="WAIT")
TAKE = Actions((ActionForm("TAKE", (ActionParameter("coins", "integer", 1, 3),)), ActionForm("WAIT")))


def turn(reply: Any = ACT, name: str = "act", **seen: Any) -> Turn:
    return Turn("Ann", name, {"fish": 3, "round": 7, **seen}, reply, {"name": "Ann", "limit": 5})


def chosen(act: str, reply: Any = ACT, name: str = "act", **keys: Any) -> Any:
    return ByExpression(act=act, **keys).choose(turn(reply, name), random.Random(1))


@pytest.mark.parametrize(
    ("act", "action"),
    [
        ("'GO' if fish < limit and name == 'Ann' else 'WAIT'", "GO"),
        ("options[0]", "GO"),
        ("noop", "WAIT"),
        ("None", "WAIT"),
        ("'GO' if facts.round == 7 and turn == 'act' else 'WAIT'", "GO"),
        ("choice([o for o in options if o != 'GO'])", "WAIT"),
    ],
)
def test_what_expressions_name(act: str, action: str) -> None:
    assert chosen(act) == action


def test_actions_with_parameters_and_messages() -> None:
    both = ActionWithMessage(TAKE, MessageLine(max_chars=4))
    assert chosen("{'action': 'TAKE', 'coins': min(fish, 3)}", TAKE) == {"action": "TAKE", "coins": 3}
    assert chosen("{'action': 'WAIT'}", both, say="'hello'") == {"act": {"action": "WAIT"}, "message": "hell"}
    assert chosen("options[1]", both) == {"act": {"action": "TAKE", "coins": 2}, "message": None}
    assert chosen("'WAIT'", TAKE) == {"action": "WAIT"} and chosen("'WAIT'", ACT) == "WAIT"
    assert chosen("1 / 0", MessageLine(), "talk", say="name + '!'") == "Ann!"  # in a turn of talk nothing is done


def test_messages_to_neighbors() -> None:
    letters = Messages(("Bob", "Cid"), max_chars=3)
    assert chosen("{'Bob': 'hi'}", letters) == {"Bob": "hi"} and chosen("None", letters) == {}
    # With `say`, `act` is the answer alone.
    assert chosen("1 / 0", letters, "talk", say="'hello'") == {"Bob": "hel", "Cid": "hel"}
    assert chosen("1 / 0", letters, "talk", say="{'Cid': name + '!'} if fish else None") == {"Cid": "Ann"}
    assert chosen("1 / 0", letters, "talk", say="None") == {}
    assert chosen("'GO'", ACT, "answer", say="{'Cid': 'x'}") == "GO"
    with pytest.raises(PluginError, match=r"say gives \{'Dan': 'x'\} in turn 'talk', where it is a text, or maps"):
        chosen("'GO'", letters, "talk", say="{'Dan': 'x'}")


def test_memory_lasts_from_turn_to_turn() -> None:
    policy = ByExpression(
        act="'WAIT' if seen and seen > fish else 'GO'", remember={"seen": "max(seen or 0, fish)", "did": "action"}
    )
    does = [policy.choose(turn(fish=fish), random.Random(0)) for fish in (3, 5, 4, 6)]
    assert does == ["GO", "GO", "WAIT", "GO"]


@pytest.mark.parametrize(
    ("act", "reply", "message"),
    [
        ("'STOP'", ACT, "act gives 'STOP', which is not an action in turn 'act'\n  Possible: 'GO', 'WAIT'."),
        ("{'action': 'TAKE', 'coins': 4}", TAKE, "TAKE coins=<coins>, coins a whole number from 1 to 3; WAIT."),
        ("'TAKE'", TAKE, "Possible: TAKE coins=<coins>"),
        (
            "'Bob'",
            Messages(("Bob",)),
            "not an action in turn 'act'\n  An action maps neighbors to messages here: {b: 'text' for b in neighbors}.",
        ),
        ("{'Dan': 'x'}", Messages(("Bob",)), "act gives {'Dan': 'x'}, which is not an action"),
        (
            "'bolts'",
            Calls((Verb("submit_result", body="answer"), Verb("wait"))),
            "such as [{'call': 'wait'}]. Possible calls: {'call': 'submit_result', 'answer': '…'}, {'call': 'wait'}.",
        ),
        ("'GO' if fishes else 'WAIT'", ACT, "fishes: unknown name. Did you mean fish?"),
        ("'GO' if fish.size else 'WAIT'", ACT, "no value has the field 'size' here: it is a number (with fish = 3)"),
    ],
)
def test_mistakes_teach(act: str, reply: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        chosen(act, reply)
    assert message in str(caught.value)


@pytest.mark.parametrize("act", ["'GO' if", "fish.append(1)", "__import__('os')", "lambda: 1", "max"])
def test_what_is_no_expression_is_found_when_the_spec_is_read(act: str) -> None:
    with pytest.raises(UserError):
        ByExpression(act=act)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("floor(fish_in_the_lake)", "floor(fish_in_the_lak)", "47:92: fish_in_the_lak: unknown name. Did you mean"),
        ("'tonnes': 4}", "'tonnes': 40}", "48:55: act gives {'action': 'FISH', 'tonnes': 40}, which is not an action"),
        ("baseline: random", "baseline: {use: expression, act: stock}", "40:34: stock: unknown name"),
        ("baseline: random", "baseline: {use: expression, act: 'max'}", "40:35: max: max is a function: call it"),
    ],
)
def test_validate_rehearses_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    text = (builtin().root / "specs/worlds/commons.yaml").read_text()
    assert text.count(old) == 1
    file = tmp_path / "lake.yaml"
    file.write_text(text.replace(old, new))
    code, _, err = invoke(capsys, "validate", str(file))
    assert code == 2 and f"lake.yaml:{message}" in err, err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # Some agents have a policy beside the model, and there is no baseline.
        (
            {"baseline": None, "agents": {"fox": {"policy": {"use": "expression", "act": "sly"}, "count": 1}}},
            "sly: unknown",
        ),
        # A policy in Python that is made for other tasks.
        ({"baseline": {"use": "silo/oracle", "plan": "star"}}, "Oracle plays sharded tasks"),
        (
            {"baseline": {"use": "expression", "act": "name"}},
            "act gives 'Emma', which is not an action in turn 'start'",
        ),
    ],
)
def test_validate_plays_policies_of_declared_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    file = tmp_path / "hues.yaml"
    file.write_text(json.dumps({"extends": "networks/coloring", "name": "hues", **changes}))
    code, _, err = invoke(capsys, "validate", str(file))
    assert code == 2 and message in err and "Traceback" not in err, err


def test_names_of_memories_are_free() -> None:
    for name in ("options", "max", "choice", "if"):
        with pytest.raises(PluginError, match="cannot name a memory"):
            ByExpression(act="noop", remember={name: "1"})


def test_it_plays_tasks_in_python_and_a_mistake_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    text = (
        "extends: dpbench_quick\nname: own\n"
        "baseline:\n  use: expression\n  label: left first\n"
        "  act: \"'GRAB_RIGHT' if holds_left else 'GRAB_LEFT' if number else 'GRAB_RIGHT'\"\n"
    )
    file.write_text(text)
    run = harness.evaluate(str(file), output_path=tmp_path / "run")
    assert {score.labels["model"] for score in run.scores} == {"left first"} and not any(
        score.error for score in run.scores
    )
    file.write_text(text.replace("holds_left", "holds_both"))
    run = harness.evaluate(str(file), output_path=tmp_path / "again")
    assert {"own.yaml:6:25: holds_both: unknown name" in str(score.error) for score in run.scores} == {True}, (
        run.scores[0]
    )
