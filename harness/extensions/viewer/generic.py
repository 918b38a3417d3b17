"""The picture of an episode whose task or protocol has no view of its own."""

from __future__ import annotations

from collections.abc import Iterator

from harness.api import Protocol, Task
from harness.extensions.viewer.scenes import agents_at, brief, count, edges_of, messages, places, verdict, why_nothing
from harness.transcripts.view_api import Scene, Sheet, Transcript, View


class GenericView(View):
    """The agents in their network or on a ring: who was asked when, who wrote to whom, and the last actions."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Draws every task and protocol."""
        return True

    def scenes(self, transcript: Transcript, task: Task | None) -> Iterator[Scene]:
        """One scene a round, with a sheet of all actions so far."""
        where, edges = places(transcript), edges_of(transcript)
        actions: dict[str, str] = {}
        rows: dict[str, tuple[str, ...]] = {agent: (agent,) for agent in transcript.agents}
        names: list[str] = []

        yield Scene(f"{count(len(where), 'agent')} before the first turn.", agents_at(where), edges)
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            cells = dict.fromkeys(rows, "")
            for turn in turns:
                if turn.move is not None:
                    actions[turn.agent] = brief(turn.move.action)
                    cells[turn.agent] = brief(turn.move.action, 40) or why_nothing(turn.move)
            rows = {agent: (*row, cells[agent]) for agent, row in rows.items()}
            names.append(turns[0].name)
            acting = {turn.agent for turn in turns}
            failed = {turn.agent for turn in turns if turn.move is not None and turn.move.error is not None}
            caption = f"Round {number + 1}, {turns[0].name}: {count(len(acting), 'agent')} asked"
            caption += f", {count(len(failed), 'turn')} failed." if failed else "."
            if number == len(rounds) - 1:
                caption = f"{caption} {verdict(transcript)}".strip()
            sheet = Sheet("Actions", ("", *names), tuple(rows.values()))
            marks = {agent: ("active", "wrong") if agent in failed else ("active",) for agent in acting}
            nodes = agents_at(where, texts=actions, marks=marks)
            yield Scene(caption, nodes, edges, messages(turns, transcript.agents), sheets=(sheet,))
