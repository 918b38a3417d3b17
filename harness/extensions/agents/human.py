"""A person in a model's place, at the terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.api import Completion, Engine, Facts, Outcome, Reply, Request, plugin
from harness.api.errors import EngineFatalError, SetupError
from harness.api.printable import clean_name
from harness.checks.estimate import estimate
from harness.config.plan import Plan
from harness.engines.tool_calls import storable
from harness.extensions.agents._human_terminal import SharedTerminal, can_read, is_terminal
from harness.extensions.agents.conversations import MAX_REPLY_CHARS, Conversations
from harness.extensions.games.game_end import end_state, ended
from harness.extensions.games.game_result import alike
from harness.replies.parse_guard import read
from harness.runtime.players import ModelPlayer

_MAX_LISTED_MOVES = 60
"""Legal moves that a list shows."""
_MAX_NAME_CHARS = 40


@plugin
class Human(Engine):
    """You: the exact prompt is shown in the terminal, and what you write is the reply.

    Args:
        name: who you are, for tables and where several people share the keyboard.
        help: list legal moves, and explain an answer that cannot be read and ask again at once, as often as needed.
            false: you get what a model gets, and no more; the spec's retries count.
    """

    name: str = ""
    help: bool = True

    asks_people: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.name) > _MAX_NAME_CHARS or self.name != clean_name(self.name).strip():
            message = f"name={self.name!r:.80} is not a name"
            raise SetupError(message, hint=f"Write a word or two, {_MAX_NAME_CHARS} characters at most.", at=("name",))
        self._conversations = Conversations()
        self._terminal: SharedTerminal | None = None
        self._questions = self._unreadable = 0
        self._episode, self._rules = "", dict[str, str]()  # agent → the system message that it has read

    @property
    def model(self) -> str:
        return f"human ({self.name})" if self.name else "human"

    def announcement(self, plan: Plan, limit: int | None) -> str:
        """How many answers people have to write, at most."""
        people = [name for name, engine in plan.engines.items() if engine.asks_people]
        asked = estimate(plan, people)
        who = " and ".join(plan.engines[name].model for name in people)
        questions = f"{asked.turns:,} question{'s' * (asked.turns != 1)}"
        text = f"{who}: at most {questions} in {asked.episodes:,} episode{'s' * (asked.episodes != 1)}"
        hints = []
        if limit is None and asked.episodes > len(plan.conditions):
            hints.append("--limit 1 plays one case of each condition")
        if len(plan.conditions) > 1 and plan.spec.get("matrix"):
            hints.append(f"--set matrix.{next(iter(plan.spec.get('matrix')))}=[…] fewer conditions")
        return "; ".join([text, *hints])

    def check(self) -> None:
        """Raises `SetupError` if there is no standard input."""
        if not can_read():
            message = f"{self.model} answers in a terminal, and there is no standard input"
            raise SetupError(message, hint="Give the command in a terminal, or pipe it one answer per line.")

    async def start(self) -> None:
        """Raises as `check`."""
        self.check()
        self._terminal = SharedTerminal.here()
        self._terminal.open()

    async def close(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None

    def stop_retrying(self, reason: Exception) -> None:
        """The run ends: a question that is being asked is given up."""
        if self._terminal is not None:
            self._terminal.end(reason)

    def show_end(self, episode: str, players: Mapping[str, Any], outcome: Outcome) -> None:
        """Show the last board, and who has won; with `help=false` nothing, as a model sees nothing."""
        people = {agent: player for agent, player in players.items() if _is_played_by_a_person(player)}
        if not (people and self.help):
            return
        texts = {agent: end_state(agent, player, outcome) for agent, player in people.items()}
        parts = [
            (f"{' and '.join(agents)} see{'s' * (len(agents) == 1)}", text) for agents, text in alike(texts).items()
        ]
        if text := ended(outcome.facts, people):
            parts.append(("result", text))
        if parts:
            SharedTerminal.here().show(f"episode {episode} is over", parts)

    def report(self) -> Facts:
        """How many answers were given, and how many more could not be read and were asked for again."""
        return {"questions": self._questions, "unreadable": self._unreadable}

    async def complete(self, request: Request) -> Completion:
        """Ask the person.

        Raises:
            EngineFatalError: what is piped has ended.
            KeyboardInterrupt: Ctrl-D in a terminal.
        """
        if self._terminal is None:
            raise EngineFatalError("the engine is not started, or closed")
        await self._terminal.enter(request.thread.age)
        try:
            return await self._ask(self._terminal, request)
        finally:
            self._terminal.leave()

    async def _ask(self, terminal: SharedTerminal, request: Request) -> Completion:
        terminal.check()
        episode, agent, turn, attempt = request.id.rsplit("/", 3)
        await terminal.seat(self.name or self.model, agent)
        conversation, messages = self._conversations.of(request), request.thread.messages
        start = conversation.start(request.thread)
        terminal.say(f"\n=== episode {episode} · {agent} · turn {turn} · attempt {attempt} ===", bold=True)
        if episode != self._episode:
            self._episode, self._rules = episode, {}
        for message in messages[start:]:
            role, text = message["role"], message["content"]
            known = role == "system" and self._rules.get(agent) == text
            terminal.say(f"--- {role}" + (", as before" if known else ""), bold=True)
            if not known:
                terminal.say(text)
            if role == "system":
                self._rules[agent] = text
        moves = _moves(request.reply) if self.help else []
        if moves:
            terminal.say("--- legal moves, by number or as the prompt asks", bold=True)
            terminal.say(_listed(moves))
        began = time.perf_counter()
        text = await self._answer(terminal, request, moves)
        self._questions += 1
        conversation.session = True
        conversation.answered(len(messages), text)
        return Completion(text, finish_reason="stop", latency=time.perf_counter() - began)

    async def _answer(self, terminal: SharedTerminal, request: Request, moves: Sequence[str]) -> str:
        agent = request.id.rsplit("/", 3)[1]
        while True:
            try:
                text = await terminal.answer(f"{clean_name(agent)}> ")
            except UnicodeDecodeError:
                terminal.say("This is not UTF-8. Write it again.")
                continue
            if text is None and is_terminal():
                raise KeyboardInterrupt
            if text is None:
                raise EngineFatalError(f"standard input ended before the answer {request.id}")
            text = storable(text[:MAX_REPLY_CHARS])
            if not self.help or request.reply is None:
                return text
            error = read(request.reply, text).error
            if error is None:
                return text
            number = text.strip().removeprefix("[").removesuffix("]")
            if number.isdecimal() and 1 <= int(number[:9]) <= len(moves):
                return moves[int(number) - 1]
            self._unreadable += 1
            terminal.say(f"That cannot be read: {error}. Write it again.")


def _is_played_by_a_person(player: object) -> bool:
    return isinstance(player, ModelPlayer) and is_person(player.engine.model)


def is_person(model: str) -> bool:
    """Whether a name in tables is that of a person.

    >>> is_person("human"), is_person("human (Ann)"), is_person("humanoid-7b")
    (True, True, False)
    """
    return model == "human" or model.startswith("human (")


def _moves(reply: Reply | None) -> list[str]:
    """The text of each legal move, in the form's order; none where a number may itself be an answer."""
    if reply is None or not reply.options or read(reply, "1").error is None:
        return []
    constraint = reply.constraint() or {}
    written: Sequence[str] = constraint.get("choice", ())
    texts = list(written) if len(written) == len(reply.options) else [str(option) for option in reply.options]
    legal = zip(texts, reply.options, strict=True)
    return texts if all(read(reply, text).action == option for text, option in legal) else []


def _listed(moves: Sequence[str]) -> str:
    """Moves with their numbers in columns, without a label that all of them have."""
    start = "".join(moves[0].partition(": ")[:2])
    label = len(start) if ": " in start and all(move.startswith(start) for move in moves) else 0
    names = [" ".join(move[label:].split()) for move in moves[:_MAX_LISTED_MOVES]]
    cells = [f"[{i}] {name}" for i, name in enumerate(names, 1)]
    width = max(map(len, cells)) + 2
    columns = max(1, shutil.get_terminal_size().columns // width)
    rows = (cells[i : i + columns] for i in range(0, len(cells), columns))
    lines = ["".join(f"{cell:{width}}" for cell in row).rstrip() for row in rows]
    return "\n".join([*lines, f"… ({len(moves)} in all)"] if len(moves) > _MAX_LISTED_MOVES else lines)
