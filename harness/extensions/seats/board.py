"""Seats: a run publishes a turn and waits for its move, and whoever plays the seat reads the turn and acts.

`OpenSeat.ask` is the run's side. The other one is `wait_for_turn`, `act` and `say`, for servers (MCP, A2A) and tests.
All of it belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.api import Completion, Request, Thread
from harness.api.errors import EngineError, RequestError
from harness.extensions.endpoints.keys import new_key, value_without_keys, without_keys
from harness.extensions.seats.moves import Act, MoveForm

MAX_REFUSALS = 20
"""Acts of one turn that may be refused: the last one is then its reply, and no form reads it."""
Kind = Literal["turn", "wait", "over", "replaced"]


@dataclass(slots=True)
class SeatTurn:
    """What a seat is asked, as whoever plays it sees it.

    Attributes:
        episode, agent: whose turn it is.
        index, attempt: which of the agent's turns it is, and of the tries at a readable reply; both from 0.
        conversation: its messages; it grows.
        start, end: what of it is new since the last turn; from 0 on, what was said before has to be forgotten.
        moves: what may be done.
        seed: for whoever draws random numbers, so that the run can be repeated.
        recorded: the message that answered it before the run stopped; None if it is new.
        number: of the seat's turns, from 1.
        is_read: whether it was read; `reader` is the client that did so last, if clients can be told apart.
        calls: those that were made in it, where it takes several.
        refused: how many acts were refused.
    """

    episode: str
    agent: str
    index: int
    attempt: int
    conversation: Sequence[Mapping[str, Any]]
    start: int
    end: int
    moves: MoveForm
    seed: int
    recorded: Mapping[str, Any] | None = None
    number: int = 0
    is_read: bool = False
    reader: str | None = None
    calls: list[Mapping[str, str]] = field(default_factory=list)
    refused: int = 0

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """Those that are new: {"role", "content"}, and what calls of tools have beside."""
        return self.conversation[self.start : self.end]

    @property
    def text(self) -> str:
        """What is new, as a model reads it, to the letter; with its own replies where it has to hear them again."""
        return _joined(self.messages)

    @property
    def context(self) -> str:
        """What the conversation began with: the rules."""
        first = next((at for at, one in enumerate(self.conversation) if one["role"] == "user"), 0)
        return _joined(self.conversation[: first + 1])

    @property
    def observation(self) -> str:
        """What is asked now."""
        begin = max((at + 1 for at in range(self.end) if _is_reply(self.conversation[at])), default=0)
        return _joined(self.conversation[begin : self.end])


def _joined(messages: Sequence[Mapping[str, Any]]) -> str:
    """Messages as one text; the agent's own behind a line that says so."""
    parts = []
    for message in messages:
        text = "\n".join(
            [
                *filter(None, [str(message["content"])]),
                *(
                    f"{one['function']['name']}({one['function']['arguments']})"
                    for one in message.get("tool_calls", ())
                ),
            ]
        )
        if text:
            parts.append(f"[You replied]\n{text}\n[end of your reply]" if _is_reply(message) else text)
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class State:
    """What `wait_for_turn` found.

    Attributes:
        kind: "turn" (it is the seat's turn), "wait" (not yet: ask again), "over" (no turn will come), "replaced"
            (another client waits now).
        turn: the turn.
        outcome: how the episode has ended, in words.
        more: whether another episode may follow.
    """

    kind: Kind
    turn: SeatTurn | None = None
    outcome: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class ActResult:
    """What an act brought: `text` says it; `error` is whether it was refused, `over` whether its turn is now over."""

    text: str
    error: bool = False
    over: bool = False


class OpenSeat:
    """A seat that plays one episode, or one after another.

    Args:
        name: what it is called, such as "episode/agent".
        note: called with what the run should record about it, in words.
        goes_on: whether it plays one episode after another, for an agent that stays. Else turns that were answered
            before the run stopped come again, for a program that starts anew.
        secret: what whoever plays it has to show; "" for a random one.

    Attributes:
        on_change: called when a turn begins or is over.
        answered: the number of the last turn that has its move.
        has_heard: set once a client knows that no turn will come.
        on_turn: called with each turn, recorded ones too, before it can be read.
    """

    def __init__(
        self, name: str, note: Callable[[str], None] = lambda text: None, goes_on: bool = False, secret: str = ""
    ) -> None:
        self.name, self._note, self._goes_on = name, note, goes_on
        self.secret = secret or new_key()
        self.on_change: list[Callable[[], None]] = []
        self.on_turn: Callable[[SeatTurn], None] = lambda turn: None
        self.turn: SeatTurn | None = None
        self.outcome: str | None = None
        self.is_closed = False
        self.has_heard = asyncio.Event()
        self.counts = {"turns": 0, "recalled": 0, "differed": 0, "refused": 0}
        self._resumes = not goes_on  # whether recorded turns come first
        self._thread: Thread | None = None
        self._known = 0  # messages of the thread that were read, or that the seat has said
        self._recorded: deque[SeatTurn] = deque()
        self._present: SeatTurn | None = None
        self._move: asyncio.Future[Completion] | None = None
        self._number = 0  # of the last turn that began
        self._changed = asyncio.Event()
        self._waiting: object | None = None
        self._reader: str | None = None
        self.answered = 0

    # ------------------------------------------------------------------------------ the run's side

    async def ask(self, request: Request) -> Completion:
        """Publish a turn and wait for its move. Turns that were answered before the run stopped are served first.

        Raises:
            RequestError: no move will be made: the seat is closed, or `fail` was called.
        """
        if self.is_closed:
            raise RequestError(f"{self.name} is closed")
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        self.outcome = None
        self._recorded, self._present = self._turns_of(request)
        self._resumes, self._thread = False, None  # should it fail, whoever goes on has to hear all of it
        move = self._move = loop.create_future()
        self._publish()
        try:
            completion: Completion = await move
        finally:
            self._move = self._present = self.turn = None
            self._recorded.clear()
            self._tell()
        self._thread, self._known = request.thread, len(request.thread.messages) + 1
        return replace(completion, latency=time.perf_counter() - began)

    def restart(self) -> None:
        """Whoever plays it from now on knows nothing of what was said: the turn that is open begins with all of it."""
        self._thread, turn = None, self.turn
        if turn is None:
            return
        if turn.recorded is not None and turn.is_read:
            self._differs(turn)
            self._publish()
            return
        turn.start, turn.is_read, turn.refused = 0, False, 0
        turn.calls.clear()

    def fail(self, error: EngineError) -> None:
        """Nobody will make the move that is waited for: its turn raises `error`."""
        if self._move is not None and not self._move.done():
            self._move.set_exception(error)

    def end(self, outcome: str) -> None:
        """The episode is over; the next turn begins another one."""
        self.outcome, self._thread, self._resumes = outcome, None, not self._goes_on
        self._tell()

    @property
    def was_read(self) -> bool:
        """Whether a client has read a turn."""
        return self.answered > 0 or (self.turn is not None and self.turn.is_read)

    def close(self) -> None:
        """No turn will come any more."""
        self.is_closed = True
        self.fail(RequestError(f"{self.name} is closed"))
        self._tell()

    # ------------------------------------------------------------------------------ the player's side

    async def wait_for_turn(self, timeout: float, client: str | None = None, whole: bool = False) -> State:
        """Wait for the seat's turn. The last one that waits gets it.

        Args:
            timeout: seconds to wait at most.
            client: who waits, where several can be told apart; another one's acts are then refused.
            whole: whether it does not know what was said before.
        """
        me = self._waiting = object()
        self._tell()
        try:
            async with asyncio.timeout(timeout):
                while self.turn is None and not self._is_over():
                    await self._changed.wait()
                    if self._waiting is not me:
                        return State("replaced")
        except TimeoutError:
            return State("wait")
        return self.read(client, whole)

    async def first_turn(self, timeout: float) -> None:
        """Wait until a turn has begun, for so many seconds; it is not read by that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._number and not self._is_over():
                    await self._changed.wait()

    def read(self, client: str | None = None, whole: bool = False) -> State:
        """What there is now; a turn counts as read. A client that read no turn before gets the whole conversation."""
        if self.turn is not None:
            if whole or (client is not None and self._reader not in (None, client)):
                self.turn.start = 0
            self.turn.is_read, self.turn.reader = True, client
            self._reader = client
            return State("turn", self.turn)
        if not self._is_over():
            return State("wait")
        state = State("over", outcome=self.outcome or "", more=self._goes_on and not self.is_closed)
        if state.more:
            self.outcome = None  # it is said once; then the next episode is waited for
        if self.is_closed:
            self.has_heard.set()
        return state

    def act(
        self, tool: str, arguments: Mapping[str, Any], number: int | None = None, client: str | None = None
    ) -> ActResult:
        """Call a tool of the turn. `number`: of the turn that is meant; None: of the one that was read.

        Keys of seats in what is said are left out: a move is recorded, and others read it.
        """
        tool, arguments = value_without_keys([tool, dict(arguments)], self.secret)
        said = f"{tool}({dict(arguments)})"
        return self._take(lambda turn: turn.moves.call(tool, arguments, turn.calls), said, number, client)

    def say(self, text: str, number: int | None = None, client: str | None = None) -> ActResult:
        """Give the reply as a text, which is read without keys. `number` as for `act`."""
        text = without_keys(text, self.secret)
        return self._take(lambda turn: turn.moves.say(text), text, number, client)

    def refuse(self, error: str, number: int | None = None, client: str | None = None) -> ActResult:
        """Refuse what is no act at all, for this reason; it counts as an act does. `number` as for `act`."""
        return self._take(lambda turn: Act(error), "", number, client)

    # ------------------------------------------------------------------------------ its own

    def _is_over(self) -> bool:
        return self.is_closed or self.outcome is not None

    def _take(self, read: Callable[[SeatTurn], Act], said: str, number: int | None, client: str | None) -> ActResult:
        """Let an act count in the open turn, if it is refused too: whoever makes the same mistake again and again ends
        the turn. Another client's acts do not count."""
        turn = self.turn
        if turn is None and self._is_over():
            return ActResult(
                f"the episode is over{': ' * bool(self.outcome)}{self.outcome or ''}; nothing was done", True
            )
        if turn is None:
            has_moved = self._number and self.answered == self._number
            why = f"turn {self._number} is over, you have made your move" if has_moved else "it is not your turn"
            return ActResult(f"{why}; nothing was done. Call wait_for_turn", True)
        if None not in (client, turn.reader) and client != turn.reader:
            return ActResult("another client has read this turn and plays it; nothing was done", True)
        refused = ""  # an act that would be legal in another turn must not be read as this one's move
        if number is not None and number != turn.number:
            act = Act(f"turn {number} is not open, turn {turn.number} is; nothing was done")
        elif not turn.is_read:
            before = f"turn {turn.number - 1} is over, and " if turn.number > 1 else ""
            act = Act(f"{before}you have not read turn {turn.number}; nothing was done. Call wait_for_turn")
        else:
            act = read(turn)
            refused = said[:2000]
        if act.error is not None:
            turn.refused += 1
            self.counts["refused"] += turn.recorded is None
            if turn.refused < MAX_REFUSALS:
                return ActResult(act.error, True)
            self._over(turn, turn.moves.unreadable(act.error, refused))
            return ActResult(f"{act.error}; this was the last try: turn {turn.number} is over", True, True)
        if act.call is not None:
            turn.calls.append(act.call)
            left = f"at most {turn.moves.most - len(turn.calls)} more"
            return ActResult(f"noted: call {len(turn.calls)} of this turn. Call end_turn when it was the last ({left})")
        assert act.reply is not None
        self._over(turn, act.reply)
        return ActResult(f"done: turn {turn.number} is over. Call wait_for_turn", over=True)

    def _over(self, turn: SeatTurn, reply: Completion) -> None:
        """A turn has its move."""
        self.answered = turn.number
        if turn.recorded is None:
            if self._move is not None and not self._move.done():
                self._move.set_result(reply)
            self.turn = None
            self._tell()
            return
        if _is_same(turn, reply):
            self.counts["recalled"] += 1
            self._recorded.popleft()
        else:
            self._differs(turn)
        self._publish()

    def _differs(self, turn: SeatTurn) -> None:
        """A recorded turn is not made again: the present one comes, with all that was said."""
        self.counts["differed"] += 1
        what = f"did not repeat its recorded move of turn {turn.index}, and is asked for the present one"
        self._note(f"{self.name} {what}")
        self._recorded.clear()
        if self._present is not None:
            self._present.start = 0

    def _publish(self) -> None:
        """Let the next turn be read."""
        turn = self._recorded[0] if self._recorded else self._present
        assert turn is not None
        self._number += 1
        turn.number = self._number
        self.counts["turns"] += turn.recorded is None
        self.turn = turn
        self.on_turn(turn)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        for call in list(self.on_change):
            call()

    def _turns_of(self, request: Request) -> tuple[deque[SeatTurn], SeatTurn]:
        """The recorded turns that whoever plays the seat has to make again, and the present one."""
        episode, agent, index, attempt = request.id.rsplit("/", 3)
        messages = request.thread.messages
        recorded, known = deque[SeatTurn](), 0
        if self._resumes:
            recorded, known = _recorded(episode, agent, request)
        elif request.thread is self._thread:
            own = next((at for at in reversed(range(len(messages))) if _is_reply(messages[at])), -1)
            known = self._known if own == self._known - 1 else 0  # else another one answered
        form, asked = MoveForm(request.reply, request.tools), request.thread.questions
        seed = asked[-1].seed if asked else request.seed
        return recorded, SeatTurn(episode, agent, int(index), int(attempt), messages, known, len(messages), form, seed)


def _recorded(episode: str, agent: str, request: Request) -> tuple[deque[SeatTurn], int]:
    """The turns since the last one that failed, which were answered before the run stopped; and how many messages of
    the present conversation are known with them. Whoever had failed was started again with all that was said."""
    turns = deque[SeatTurn]()
    questions = request.thread.questions
    seen: Sequence[Mapping[str, Any]] = request.thread.messages
    known = 0
    for question, following in itertools.zip_longest(questions, questions[1:]):
        if question.messages is not seen:
            seen, known = question.messages, 0
        goes_on = following is not None and following.messages is seen
        form, attempt = MoveForm(question.reply, question.tools), itertools.count()
        for at in range(question.end, following.end if goes_on else len(seen)):
            if not _is_reply(seen[at]):
                continue
            if not seen[at]["content"] and not seen[at].get("tool_calls"):
                turns, known = deque(), 0
                continue
            names = episode, agent, question.index, next(attempt)
            turns.append(SeatTurn(*names, seen, known, at, form, question.seed, seen[at]))
            known = at + 1
    return turns, known if seen is request.thread.messages else 0


def _is_reply(message: Mapping[str, Any]) -> bool:
    return bool(message["role"] == "assistant")


def _is_same(turn: SeatTurn, reply: Completion) -> bool:
    """Whether a reply is the recorded one, or is read as the same action."""
    assert turn.recorded is not None
    message: dict[str, Any] = {"content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [{"function": one} for one in reply.tool_calls]
    action = turn.moves.action_of(message)
    return bool(turn.recorded["content"] == reply.text and not reply.tool_calls) or (
        action is not None and action == turn.moves.action_of(turn.recorded)
    )
