"""How AgentsNet's problems, and other problems on networks, are drawn."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.api import Case, Outcome, Protocol, Task, plugin
from harness.extensions.networks import Honest, NetworkTask, honest, valid
from harness.extensions.viewer.scenes import agents_at, brief, count, edges_of, messages, places, verdict
from harness.transcripts.view_api import Bars, Edge, Node, RecordedTurn, Scene, Transcript, View


@plugin
class Networks(View):
    """Agents in their network: messages on its edges, and at the end colors, leaders, pairs, covers or values.

    On the way an agent is labeled with what it states: the one option that its messages of a round mention.
    """

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """All problems on networks."""
        return isinstance(task, NetworkTask)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """The network, one scene of messages a round, and the answers."""
        case = transcript.case
        assert isinstance(task, NetworkTask) and case is not None
        edges, where = edges_of(transcript), places(transcript)
        nodes = agents_at(where, marks=dict.fromkeys(case.unscored, ("byzantine",)))
        problem = task.problem.replace("_", " ")
        size = f"{count(len(nodes), 'agent')}, {count(len(edges), 'edge')}"
        yield Scene(f"{problem.capitalize()} on a network of {size}.", nodes, edges)
        stated: dict[str, object] = {}
        for number, turns in enumerate(transcript.rounds):
            if turns[0].name == "answer":
                yield self._answers(transcript, task, case, turns, nodes, edges)
                continue
            options = {agent: task.reply(case, agent).options or () for agent in transcript.agents}
            colors = _every(options)
            sent_messages = messages(turns, transcript.agents)
            for turn in turns:
                said = [message.text for message in sent_messages if message.sender == turn.agent]
                if (option := _stated(said, options[turn.agent])) is not None:
                    stated[turn.agent] = option
            senders = {message.sender for message in sent_messages}
            drawn = tuple(
                replace(
                    node,
                    color=_index(stated.get(node.id), colors),
                    text=_short(stated.get(node.id)),
                    marks=(*node.marks, *(("active",) if node.id in senders else ())),
                )
                for node in nodes
            )
            silent = len(turns) - len(senders)
            caption = f"Round {number + 1}: {count(len(sent_messages), 'message')} to neighbors"
            caption += f"; {count(silent, 'agent')} silent." if silent else "."
            yield Scene(caption, drawn, edges, sent_messages)

    def _answers(
        self,
        transcript: Transcript,
        task: NetworkTask,
        case: Case,
        turns: Sequence[RecordedTurn],
        nodes: Sequence[Node],
        edges: Sequence[Edge],
    ) -> Scene:
        """The network with the answers of a pass."""
        actions = {turn.agent: turn.move.action for turn in turns if turn.move is not None}
        outcome = Outcome(answers=actions)
        team = honest(task, case, outcome)
        options = {agent: task.reply(case, agent).options or () for agent in transcript.agents}
        pairs = any(isinstance(one, str) and one in actions for many in options.values() for one in many)
        colors = _every(options)
        if (broken := task.conflicts(case, outcome)) is not None:
            states, marks = _declared(broken, actions, edges)
        else:
            states, marks = _paired(actions, team, edges) if pairs else _judged(task.problem, team)
        drawn = []
        for node in nodes:
            answer = valid(task, case, outcome, node.id)
            odd = () if answer is not None or node.id not in actions else ("no answer",)
            color = None if pairs else _index(answer, colors)
            text = "" if isinstance(answer, str) and answer in actions else "?" if answer is None else _short(answer)
            drawn.append(replace(node, color=color, text=text, marks=(*node.marks, *marks.get(node.id, ()), *odd)))
        lines = tuple(replace(e, state=states.get(frozenset((e.source, e.target)), "")) for e in edges)
        tally: dict[str, float] = {}
        texts = [_text(answer) for answer in team.answers.values() if answer is not None]
        for answer in sorted(texts, key=lambda text: (len(text), text)):
            tally[answer] = tally.get(answer, 0.0) + 1
        conflicts = sum(line.state == "conflict" for line in lines)
        caption = f"The agents answer. {verdict(transcript)}".strip()
        caption += f" {count(conflicts, 'edge')} in conflict." if conflicts else ""
        bars = (Bars("Answers", tally),) if 0 < len(tally) <= 12 and not pairs else ()
        facts = {name: brief(value) for name, value in transcript.grade.items() if value is not None}
        return Scene(caption, tuple(drawn), lines, bars=bars, facts=facts)


Judged = tuple[Mapping[frozenset[str], str], Mapping[str, tuple[str, ...]]]
"""Edge → its state, agent → its marks."""


def _judged(problem: str, team: Honest) -> Judged:
    """The answers under the rules of AgentsNet's problems; nothing for other problems."""
    states: dict[frozenset[str], str] = {}
    marks: dict[str, tuple[str, ...]] = {}
    answers = team.answers
    for one, other in team.edges:
        a, b, edge = answers[one], answers[other], frozenset((one, other))
        if problem in ("coloring", "consensus") and a is not None and b is not None:
            states[edge] = "conflict" if (a == b) == (problem == "coloring") else ""
        elif problem == "vertex_cover":
            states[edge] = "" if "Yes" in (a, b) else "conflict"
    chosen = [agent for agent, answer in answers.items() if answer == "Yes"]
    if problem == "leader_election":
        marks = {agent: ("leader",) if len(chosen) == 1 else ("leader", "conflict") for agent in chosen}
    elif problem == "vertex_cover":
        neighbors = team.neighbors()
        marks = {a: ("not needed",) for a in chosen if set(chosen).issuperset(neighbors[a])}
    return states, marks


def _declared(broken: Collection[tuple[str, ...]], actions: Mapping[str, object], edges: Sequence[Edge]) -> Judged:
    """What breaks a task's own rules; neighbors that name each other are a pair."""
    drawn = {frozenset((edge.source, edge.target)) for edge in edges}
    conflicts = {frozenset(agents) for agents in broken}
    states = dict.fromkeys(drawn & conflicts, "conflict")
    for edge in drawn - conflicts:
        one, other = edge
        states[edge] = "chosen" if _names(actions.get(one), other) and _names(actions.get(other), one) else ""
    return states, {agent: ("conflict",) for agents in conflicts - drawn for agent in agents}


def _names(answer: object, agent: str) -> bool:
    return answer == agent or (isinstance(answer, list) and agent in answer)


def _paired(actions: Mapping[str, object], team: Honest, edges: Sequence[Edge]) -> Judged:
    """Pairs, byzantine partners included; two neighbors without partner, and whose partner names another one."""
    states = {}
    for edge in edges:
        one, other = edge.source, edge.target
        alone = team.answers.get(one) == team.answers.get(other) == "None"
        paired = actions.get(one) == other and actions.get(other) == one
        states[frozenset((one, other))] = "chosen" if paired else "conflict" if alone else "muted"
    chosen = ((agent, answer) for agent, answer in team.answers.items() if answer not in (None, "None"))
    return states, {agent: ("conflict",) for agent, answer in chosen if actions.get(str(answer)) != agent}


def _stated(said: Iterable[str], options: Sequence[object]) -> object:
    """The option that an agent's messages mention: "Group 2", or a bare 2; None without one or with several."""
    numbers = {str(option).rpartition(" ")[2]: option for option in options}
    if not all(map(str.isdecimal, numbers)):
        return None
    found = {match for text in said for match in re.findall(r"(?<![\w.])\d{1,4}(?![\w.]*\d)", text)}
    return numbers.get(found.pop()) if len(found) == 1 else None


def _every(options: Mapping[str, Sequence[object]]) -> Sequence[object]:
    """The options of all agents, each once: an answer has the same color at each agent."""
    first, *others = options.values() or ((),)
    every = {_text(one): one for many in (first, *(many for many in others if many != first)) for one in many}
    return first if len(every) == len(first) else [*every.values()]


def _index(answer: object, options: Sequence[object]) -> int | None:
    if options in (("Yes", "No"), ("No", "Yes")):
        return 0 if answer == "Yes" else None
    return options.index(answer) if answer in options else None


def _short(answer: object) -> str:
    """An option in the circle of its agent."""
    text = _text(answer).removeprefix("Group ")
    return {"Yes": "✓", "No": "", "None": "–"}.get(text, brief(text, 4))


def _text(answer: object) -> str:
    return "" if answer is None else answer if isinstance(answer, str) else brief(answer, 60)
