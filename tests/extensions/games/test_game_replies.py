"""What comes of replies that name no legal action: a message that says what is legal, and a count."""

import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.engines.mock import Mock
from tests.extensions.games.test_openspiel import first, task_of

LONG = "I wonder about (0,1) and (2,2). " * 3200
"""More than 100,000 characters."""
BAD = {
    "a concession": ("I resign.", "'I resign.' is no legal action"),
    "a concession behind the label": ("ACTION: I resign", "'I resign' is no legal action"),
    "long thinking": (LONG, "no legal action was found after 'ACTION:'"),
    "long thinking within a tag": (f"<think>{LONG}ACTION: x(1,1)", "no legal action was found after 'ACTION:'"),
    "a move of the other seat": ("ACTION: o(1,1)", "'o(1,1)' is no legal action"),
    "a move of the last turn": ("ACTION: x(0,0)", "'x(0,0)' is no legal action"),
    "nothing": ("", "no legal action was found after 'ACTION:'"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_replies_are_told_what_is_legal(tmp_path: Path, text: str, said: str) -> None:
    """Player-0 begins with x(0,0), and then replies so, each time."""
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(request.thread.messages[-1]["content"])
        return "ACTION: x(0,0)" if len(asked) == 1 else text

    other = {"policy": "random", "agents": ["Player-1"], "scored": False}
    source = {
        "name": "x",
        "task": {"use": "openspiel", "game": "tic_tac_toe", "instances": 1},
        "protocol": {"use": "steps", "parse_retries": 1},
        "agents": {"default": "model", "other": other},
    }
    run = harness.evaluate(source, model=Mock(function=reply), output_path=tmp_path / "run")
    assert not run.failed
    retries = [message for message in asked if message.startswith("Your reply could not be read: ")]
    assert retries and all(said in message and "the legal actions are: x(" in message for message in retries)
    assert all("x(0,0)" not in message.partition("the legal actions are: ")[2] for message in retries)
    assert max(map(len, asked)) < 3000
    [score] = run.scores
    assert score.numbers["invalid"] == len(retries) > 0


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "game",
    ["chess", "connect_four", "hive", "checkers", "go", "skat", "tarok", "oh_hell", "spades", "gin_rummy",
     "quoridor", "bridge(use_double_dummy_result=False)", "hanabi(players=3)", "negotiation", "shogi"],
)  # fmt: skip
def test_actions_of_other_turns_and_seats_are_never_taken_for_legal_ones(game: str) -> None:
    task = task_of(game)
    case, rng = first(task), random.Random(5)
    world: Any = task.world(case, rng)
    others: set[str] = set()
    for _ in range(20):
        acting: dict[str, Any] = {agent: reply for agent in case.agents if (reply := world.reply(agent)) is not None}
        for reply in acting.values():
            written = {text for text, _ in reply.also}  # a card by the name of a bid, rank before suit
            gone = sorted(others - {*reply.options} - written)
            for name in rng.sample(gone, min(5, len(gone))):
                assert reply.parse(f"ACTION: {name}").action is None, (name, reply.options)
            others |= {*reply.options[:200]}
        world = world.step({agent: rng.choice(reply.options) for agent, reply in acting.items()}, rng)
        if world.over:
            break


REFUSED = (
    *("{a} or {b}", "either {a} or {b}", "{a}, or rather {b}", "{a} | {b}", "{a} {b}", "{a} and then {b}"),
    *("{a} followed by {b}", "{a} versus {b}", "{a}? No, {b}", "{a}?? no", "{a}, no, wait", "{a} - no"),
    *("not {a}", "never {a}", "anything but {a}", "avoid {a}", "don't play {a}", "my opponent played {a}"),
    *("after {a} I lose", "I resign rather than {a}", "the opposite of {a}", "{a} is illegal", "{a} is too risky"),
    *("{a} is taken", "{a} was their move", "{a} would lose", "{a} isn't possible", "{a} if that is legal"),
    *("{a} loses", "{g}", "{g} or {a}", "only if I could: {a}", "{a} — no, {b}", "{a} cannot be played"),
    *("{a} is the worst move", "{a} is my opponent's move", "{a} is the other possible move", "{a} is a losing move"),
)
NAMED = (
    *("{a}", "I play {a}", "`{a}`", "**{a}**", "{a} (not {b})", "{a} because it is best", "{a} is my move"),
    *("{a} is the most active move", "{a} is enough", "{a} can be played", "{a} — no need for {b}", "{a} - no risk"),
)


@pytest.mark.parametrize(
    "game",
    ["chess", "connect_four", "tic_tac_toe", "hive", "skat", "oh_hell", "gin_rummy", "leduc_poker",
     "bridge(use_double_dummy_result=False)",
     *(pytest.param(game, marks=pytest.mark.slow) for game in ("hanabi(players=3)", "negotiation", "go"))],
)  # fmt: skip
def test_no_reply_of_an_attacker_is_read_as_a_move_that_it_does_not_name(game: str) -> None:
    task = task_of(game)
    case, rng = first(task), random.Random(2)
    world: Any = task.world(case, rng)
    gone: list[str] = []
    for _ in range(8):
        [(actor, reply)] = [(agent, reply) for agent in case.agents if (reply := world.reply(agent)) is not None][:1]
        written = {text for text, _ in reply.also}
        elsewhere = [name for name in gone if name not in reply.options and name not in written]
        if len(reply.options) > 1:
            a, b = rng.sample(reply.options, 2)
            g = rng.choice(elsewhere or ["Zz9"])
            for template in REFUSED:
                text = template.format(a=a, b=b, g=g)
                assert reply.parse(f"Well.\nACTION: {text}").action is None, (text, reply.options)
            for template in NAMED:
                text = template.format(a=a, b=b)
                assert reply.parse(f"Well.\nACTION: {text}").action == a, (text, reply.options)
        gone += reply.options
        world = world.step({actor: rng.choice(reply.options)}, rng)
        if world.over:
            break


@pytest.mark.parametrize(
    "bid",
    ["null ouvert", "null, ouvert", "diamonds hand", "**grand** Hand", "grand (ouvert)", "clubs from the hand, I hope",
     "hearts with Schneider announced", "diamonds game, hand", "Null-Ouvert", "grand hand because of my jacks",
     "hand diamonds", "I bid null ouvert", "spades or null ouvert", "grand with schwarz"],
)  # fmt: skip
def test_another_game_of_skat_is_no_plain_one(bid: str) -> None:
    reply = bidding()
    parsed = reply.parse(f"I have strong cards.\nACTION: {bid}")
    assert parsed.action is None and "the legal actions are: pass, diamonds" in str(parsed.error)
    assert reply.parse(f'{{"action": "{bid}"}}').action is None


@pytest.mark.parametrize("bid", ["diamond", "♦", "declare diamonds", "I declare diamonds", "a diamonds game"])
def test_a_game_of_skat_is_declared_in_words(bid: str) -> None:
    assert bidding().parse(f"My jacks are good.\nACTION: {bid}").action == "diamonds"
    assert bidding().parse(f"ACTION: {bid} hand").action is None


@pytest.mark.parametrize(
    "bid",
    [
        "null",
        "null because my hand is weak",
        "null - a hand without high cards",
        "null: my hand has no ace",
        "null (hearts are open)",
        "null, my hand is low",
        "null. Hand and skat decide.",
        "null with little in my hand",
    ],
)
def test_reasons_may_follow_a_bid(bid: str) -> None:
    assert bidding().parse(f"ACTION: {bid}").action == "null"


@pytest.mark.parametrize("said", ["{card} from the hand", "{card}, the hand has it", "{card} with schneider in view"])
def test_a_card_of_skat_may_come_from_the_hand(said: str) -> None:
    reply = bidding("null")
    [card, *_] = reply.options
    assert len(card) == 2 and reply.parse(f"ACTION: {said.format(card=card)}").action == card


def bidding(*bids: str) -> Any:
    """What the next player of skat may reply after these bids."""
    task = task_of("skat")
    case = first(task)
    world: Any = task.world(case, random.Random(0))
    for bid in (*bids, None):
        [(actor, reply)] = [(agent, reply) for agent in case.agents if (reply := world.reply(agent)) is not None]
        world = world.step({actor: bid}, random.Random(0)) if bid else world
    return reply


@pytest.mark.parametrize(
    ("said", "action"),
    [
        *(("proposer 1", "Deal: trade with proposer 1"), ("trade with Player-0", "Deal: trade with proposer 0")),
        *(("I accept player 1.", "Deal: trade with proposer 1"), ("reject both", "No Deal!"), ("no trade", "No Deal!")),
        *(("proposer 0 or proposer 1", None), ("proposer 2", None)),
    ],
)
def test_the_responder_of_colored_trails_names_a_proposer(said: str, action: str | None) -> None:
    task = task_of("colored_trails")
    case, rng = first(task), random.Random(2)
    world: Any = task.world(case, rng)
    for agent in case.agents[:2]:
        assert world.reply(agent).parse("ACTION: pass").action == "Pass trade."
        world = world.step({agent: world.reply(agent).options[0]}, rng)
    assert world.reply(case.agents[2]).parse(f"ACTION: {said}").action == action
