"""Conformance of views: whether they draw every episode, the unfinished and the odd ones too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from harness.api import Action, Case, Move, Protocol, Task, Turn
from harness.runtime.steps import drive
from harness.transcripts.view_api import RecordedTurn, Transcript, View

_ODD: tuple[Action, ...] = (None, "", "no such answer", -1, 1.5, True, [], {}, ["x"], {"a": 1}, [{"call": 3}])


def check_view(view: View, task: Task, protocol: Protocol, seed: int = 0) -> list[str]:
    """It draws the task's example: one scene at the start and one a round, whose edges join nodes of the scene.

    The example is played by idle agents, by agents that choose at random, by agents that fail, and by agents whose
    actions are not legal ones. Of each episode the view draws the whole and the first half.
    """
    if not view.draws(task, protocol):
        return ["it does not draw this task under this protocol"]
    rng, case = random.Random(seed), task.example()
    players: dict[str, Callable[[Turn], Action]] = {
        "idle": lambda turn: turn.reply.noop,
        "random": lambda turn: rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop,
        "failing": lambda turn: None,
    }
    broken: list[str] = []
    for name, answer in players.items():
        whole = _transcript(protocol, task, case, answer)
        odd = [replace(turn, move=_odd(turn.move, rng)) for turn in whole.turns]
        half = replace(whole, turns=whole.turns[: len(whole.turns) // 2], outcome=None, grade={}, finished=False)
        waiting = replace(whole, turns=(*whole.turns[:-1], replace(whole.turns[-1], move=None)), finished=False)
        for kind, transcript in (("", whole), ("half of ", half), ("all but the last move of ", waiting)):
            broken += _problems_of_scenes(view, task, transcript, f"{kind}the {name} episode")
        broken += _problems_of_scenes(
            view, task, replace(whole, turns=tuple(odd)), f"the {name} episode with odd actions"
        )
    return list(dict.fromkeys(broken))


def _problems_of_scenes(view: View, task: Task, transcript: Transcript, what: str) -> list[str]:
    try:
        scenes = list(view.scenes(transcript, task))
    except Exception as error:
        return [f"{what}: {type(error).__name__}: {error}"]
    broken = []
    if len(scenes) != len(transcript.rounds) + 1:
        broken.append(f"{what}: {len(scenes)} scenes for {len(transcript.rounds)} rounds")
    for scene in scenes:
        names = [node.id for node in scene.nodes]
        if len(set(names)) < len(names):
            broken.append(f"{what}: two nodes with one id")
        ends = {end for edge in scene.edges for end in (edge.source, edge.target)}
        ends |= {end for message in scene.messages for end in (message.sender, message.receiver) if end != "*"}
        if strange := sorted(ends - set(names)):
            broken.append(f"{what}: an edge or a message without a node: {', '.join(strange)}")
        if any(not 0 <= place <= 1 for node in scene.nodes for place in (node.x, node.y) if place is not None):
            broken.append(f"{what}: a node outside the picture")
        if any(len(row) != len(sheet.columns) for sheet in scene.sheets for row in sheet.rows):
            broken.append(f"{what}: a sheet whose rows and columns do not fit")
    return broken


def _transcript(protocol: Protocol, task: Task, case: Case, answer: Callable[[Turn], Action]) -> Transcript:
    played = drive(protocol, task, case, answer)
    turns: list[RecordedTurn] = []
    for number, batch in enumerate(batch for batch in played.batches if batch):
        for turn, move in batch:
            index = sum(before.agent == turn.agent for before in turns)
            turns.append(
                RecordedTurn(
                    number=len(turns),
                    round=number,
                    agent=turn.agent,
                    index=index,
                    name=turn.name,
                    context=turn.context,
                    observation=turn.observation,
                    fresh=turn.fresh or not index,
                    move=move,
                )
            )
    agents = protocol.possible_agents(case)
    return Transcript(
        id="e",
        condition="c",
        case_id=case.id,
        repeat=0,
        labels=case.labels,
        case=case,
        agents=agents,
        roles={},
        models=dict.fromkeys(agents, "model"),
        policies={},
        turns=tuple(turns),
        outcome=played.outcome,
        grade=task.grade(case, played.outcome) if task.grading == "quick" else {},
    )


def _odd(move: Move | None, rng: random.Random) -> Move | None:
    return None if move is None else replace(move, action=rng.choice(_ODD))
