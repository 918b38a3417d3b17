"""An episode's turns as Inspect's events: a span per agent, a model event per call."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from harness.api import Completion
from harness.transcripts.view_api import RecordedTurn, Transcript

from ._inspect_inner import InnerPrompts, config_of, tool_of
from .texts import plain

Json = dict[str, Any]

_STOPS: Final = {"stop": "stop", "tool_calls": "tool_calls", "length": "max_tokens", "content_filter": "content_filter"}


class Events:
    """The events of one sample.

    Each message stands once in `messages`, those of a conversation one after another, so that what a call was sent is
    one range of them.

    Attributes:
        events: in order of time.
        messages: what all calls were sent.
        clock: seconds from the start to the end.
        is_timed: whether calls have latencies. Without any a turn takes a second, so that there is something to see.
        usage_of_models, usage_of_agents: name → tokens.
    """

    def __init__(self, transcript: Transcript, name: str, start: datetime) -> None:
        """`name` is unique to the sample; ids of events and messages begin with it."""
        self._transcript, self._name, self._start = transcript, name, start
        self.events: list[Json] = []
        self.messages: list[Json] = []
        self.clock = 0.0
        calls = (call for turn in transcript.turns if turn.move is not None for call in turn.move.calls)
        self.is_timed = any(call.latency for call in calls)
        self.usage_of_models: dict[str, Json] = {}
        self.usage_of_agents: dict[str, Json] = {}
        self._conversations = {agent: _Conversation(transcript, agent, self) for agent in transcript.agents}
        self._inner_prompts: dict[str, InnerPrompts] = {}
        self._of_rounds: list[dict[str, list[str]]] = []  # round → agent → ids of its events
        self._of_agents: dict[str, list[str]] = {agent: [] for agent in transcript.agents}

    def add_all(self, error: str | None) -> None:
        """All turns, round by round; then why the episode failed, if it did."""
        ends = {turn.agent: turn.number for turn in self._transcript.turns}
        joined: set[str] = set()
        outer = f"{self._name}-solvers"
        self._span(outer, "solvers", "solvers", None, 0.0)
        for turns in self._transcript.rounds:
            self._of_rounds.append({})
            done = self.clock
            for turn in turns:
                span = self._agent(turn.agent)
                if turn.agent not in joined:
                    joined.add(turn.agent)
                    self._span(span, turn.agent, "agent", outer, self.clock, self._share(turn.agent))
                before = len(self.events)
                end = self._turn(turn, span, self.clock)
                uuids = [event["uuid"] for event in self.events[before:]]
                self._of_rounds[-1].setdefault(turn.agent, []).extend(uuids)
                self._of_agents[turn.agent].extend(uuids)
                if ends[turn.agent] == turn.number:
                    self._add("span_end", end, span, id=span)
                done = max(done, end)
            self.clock = done
        if error is not None:
            details = {"message": error, "traceback": "", "traceback_ansi": ""}
            self._add("error", self.clock, outer, error=details)
        self._add("span_end", self.clock, outer, id=outer)

    def timelines(self) -> list[Json]:
        """Two: a lane for every agent; and the rounds, with those who took part in each."""
        rounds = [
            self._lane(f"round {number}", None, f"r{number}", self._lanes(agents, f"r{number}-", f", round {number}"))
            for number, agents in enumerate(self._of_rounds)
        ]
        return [
            {
                "name": name,
                "description": description,
                "root": self._lane("main", None, name, content),
            }
            for name, description, content in (
                ("Agents", "A lane for every agent.", self._lanes(self._of_agents, "", "")),
                ("Rounds", "The same events, round by round.", rounds),
            )
        ]

    def _lanes(self, agents: Mapping[str, list[str]], prefix: str, where: str) -> list[Json]:
        return [
            self._lane(f"{agent}{where}", "agent", f"{prefix}{i}", [{"type": "event", "event": uuid} for uuid in uuids])
            for i, (agent, uuids) in enumerate(agents.items())
            if uuids
        ]

    def _lane(self, title: str, kind: str | None, name: str, content: list[Json]) -> Json:
        span: Json = {"type": "span", "id": f"{self._name}-lane-{name}", "name": title, "content": content}
        return {**span, "branches": [], "utility": False} | ({"span_type": kind} if kind else {})

    def _agent(self, agent: str) -> str:
        return f"{self._name}-agent{self._transcript.agents.index(agent)}"

    def _turn(self, turn: RecordedTurn, span: str, at: float) -> float:
        """Add what happened in a turn; returns when it ended."""
        move, agent = turn.move, turn.agent
        conversation = self._conversations[agent]
        conversation.prompt(turn)
        if move is None:
            return at
        model = self._transcript.models.get(agent, str(self._transcript.labels.get("model", "")))
        if turn.inner:
            self._inner_calls(turn, span, at)
        for i, call in enumerate(move.calls):
            took = call.latency or 0.0 if self.is_timed else 1 / len(move.calls)
            output = output_of(model, call.text, call)
            self._model(span, at, took, agent, model, conversation, output=output)
            at += took
            if move.inner_calls is None:  # else its tokens are those of its inner calls
                self._count(model, agent, call)
            conversation.reply(call.text, tool_calls_of(call))
            if i < len(turn.retries):
                reason = {"template": turn.name, "sent": turn.retries[i]}
                self._add("info", at, span, source="unreadable reply: asked again", data=plain(reason))
                conversation.add("user", turn.retries[i])
        if conversation.lacks_reply(turn):
            if move.error_kind not in ("parse", "limit"):
                self._model(span, at, 0.0, agent, model, conversation, output=output_of(model, ""), error=move.error)
            conversation.reply("")
        what: Json = {"template": turn.name, "round": turn.round, "action": plain(move.action)}
        if move.error is not None:
            what |= {"error": move.error, "error_kind": move.error_kind}
        at += 0 if self.is_timed or move.calls else 1
        policy = self._transcript.policies.get(agent)
        source = "no action" if move.error is not None else "action" if policy is None else f"action of policy {policy}"
        self._add("info", at, span, source=source, data=what)
        for one in self._transcript.findings:
            if (own := one.turns.get(turn.number)) is not None:
                self._add("info", at, span, source=f"found: {one.name}", data=plain(own.facts))
        return at

    def _count(self, model: str, agent: str, call: Completion) -> None:
        if (tokens := usage_of(call)) is not None:
            for usage, name in ((self.usage_of_models, model), (self.usage_of_agents, agent)):
                usage[name] = added(usage.get(name, {}), tokens)

    def _inner_calls(self, turn: RecordedTurn, outer: str, at: float) -> None:
        """Add what the agent's program asked its model in a turn, in a span of its own."""
        span, price = f"{outer}-inner{turn.number}", self._transcript.seat_prices.get(turn.agent)
        self._span(span, "inner calls", "inner_calls", outer, at)
        for call in turn.inner:
            model = (price and price.inner_model) or call.model
            refs = self._inner_prompts.setdefault(turn.agent, InnerPrompts(self.messages, f"{span}-m")).refs(call)
            output = output_of(model, call.completion.text if call.completion else "", call.completion)
            offers = [tool_of(tool) for tool in call.request.tools]
            asked: Json = {"model": model, "role": turn.agent, "input": [], "input_refs": refs, "tools": offers}
            asked |= {"tool_choice": "auto" if offers else "none", "output": output}
            asked["config"] = config_of(call.request.sampling)
            asked |= {"error": call.error} if call.error is not None else {}
            what = {"attempt": call.attempt, "number": call.number, "dropped": call.is_dropped, "api": call.request.api}
            took = call.completion.latency or 0.0 if call.completion else 0.0
            done = timestamp(completed(self._start, at + took))
            self._add("model", at, span, **asked, completed=done, working_time=took, metadata=what)
            if call.completion is not None:
                self._count(model, turn.agent, call.completion)
        self._add("span_end", at, span, id=span)

    def _model(
        self, span: str, at: float, took: float, agent: str, model: str, conversation: _Conversation, **more: Any
    ) -> None:
        sent = {"input": [], "input_refs": [[conversation.begin, conversation.end]]}
        tools = conversation.tools
        offered = {"tools": tools, "tool_choice": "auto" if tools else "none"}
        asked: Json = {"model": model, "role": agent, **sent, **offered, "config": {}}
        self._add(
            "model", at, span, **asked, **more,
            completed=timestamp(completed(self._start, at + took)), working_time=took,
        )  # fmt: skip

    def _share(self, agent: str) -> Json:
        """The agent's shares of what was found out, as metadata of its span; nothing where there are none."""
        found = (one for one in self._transcript.findings if agent in one.shares)
        shares = {f"{one.name}: {one.title}": one.shares[agent] for one in found}
        return {"metadata": {"shares": shares}} if shares else {}

    def _span(self, span: str, name: str, kind: str, parent: str | None, at: float, more: Json | None = None) -> None:
        self._add("span_begin", at, span, id=span, name=name, type=kind, parent_id=parent, **(more or {}))

    def _add(self, event: str, at: float, span: str, **more: Any) -> None:
        when = {"timestamp": timestamp(completed(self._start, at)), "working_start": at}
        self.events.append(
            {"uuid": f"{self._name}-{len(self.events)}", "span_id": span, **when, "event": event, **more}
        )


class _Conversation:
    """What one agent was sent and replied, as a range of the sample's messages.

    Conversations of different agents go on side by side, so each has its part of the list from the start: as many
    places as it will need.
    """

    def __init__(self, transcript: Transcript, agent: str, events: Events) -> None:
        self._messages = events.messages
        self._name = f"{events._name}-m"
        self._is_model = agent in transcript.models
        self.tools: list[Json] = []
        self._calls: deque[Json] = deque()  # those of the last reply that no message has answered yet
        self.begin = self.end = len(self._messages)
        places = 0
        for turn in (turn for turn in transcript.turns if turn.agent == agent):
            replies = len(turn.move.calls) if turn.move else 0
            places += len(turn.prompt) + replies + len(turn.retries) + self.lacks_reply(turn)
        self._messages.extend({"role": "user", "content": ""} for _ in range(places))

    def prompt(self, turn: RecordedTurn) -> None:
        if turn.fresh:
            self.begin = self.end
            self._calls.clear()
            self.tools = []
        self.tools = [dict(tool) for tool in turn.tools] or self.tools
        for role, text in turn.prompt:
            answered = self._calls.popleft() if role == "tool" and self._calls else None
            self.add(role, text, {"tool_call_id": answered["id"], "function": answered["function"]} if answered else {})

    def add(self, role: str, text: str, more: Json | None = None) -> None:
        message = {"id": f"{self._name}{self.end}", "role": role, "content": text}
        self._messages[self.end] = message | (more or {})
        self.end += 1

    def reply(self, text: str, calls: Sequence[Json] = ()) -> None:
        self.add("assistant", text, {"tool_calls": list(calls)} if calls else {})
        self._calls = deque(calls)

    def lacks_reply(self, turn: RecordedTurn) -> bool:
        """Whether the agent was asked and no answer came, as `Transcript.conversation` has it."""
        calls = turn.move.calls if turn.move is not None else ()
        return self._is_model and (len(turn.retries) >= len(calls) or not calls)


def output_of(model: str, text: str, call: Completion | None = None) -> Json:
    """Inspect's `ModelOutput` of a reply."""
    content: Any = text
    if call is not None and call.reasoning:
        content = [{"type": "reasoning", "reasoning": call.reasoning}, {"type": "text", "text": text}]
    stop = _STOPS.get((call.finish_reason if call is not None else "stop") or "", "unknown")
    message: Json = {"role": "assistant", "content": content, "model": model, "source": "generate"}
    if call is not None and (calls := tool_calls_of(call)):
        message["tool_calls"] = calls
    output: Json = {"model": model, "choices": [{"message": message, "stop_reason": stop}], "completion": text}
    if call is not None and call.latency is not None:
        output["time"] = call.latency
    if call is not None and (usage := usage_of(call)) is not None:
        output["usage"] = usage
    return output


def tool_calls_of(call: Completion) -> list[Json]:
    """Inspect's `ToolCall`s of a reply."""
    calls: list[Json] = []
    for i, one in enumerate(call.tool_calls or ()):
        line: Json = {"id": one["id"] or f"call_{i}", "function": one["name"], "type": "function"}
        try:
            arguments = json.loads(one["arguments"] or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            calls.append({**line, "arguments": plain(arguments)})
        else:
            calls.append({**line, "arguments": {}, "parse_error": f"no JSON object: {one['arguments']}"})
    return calls


def usage_of(call: Completion) -> Json | None:
    """Inspect's `ModelUsage`, whose input leaves out what was in the cache; None if the engine reports no tokens."""
    if call.input_tokens is None and call.output_tokens is None:
        return None
    whole, out = call.input_tokens or 0, call.output_tokens or 0
    usage = {"input_tokens": max(whole - (call.cached_tokens or 0), 0), "output_tokens": out}
    usage["total_tokens"] = whole + out
    if call.cached_tokens is not None:
        usage["input_tokens_cache_read"] = call.cached_tokens
    if call.reasoning_tokens is not None:
        usage["reasoning_tokens"] = call.reasoning_tokens
    return usage


def added(usage: Json, more: Json) -> Json:
    """The sum of what two usages count."""
    return {key: usage.get(key, 0) + more.get(key, 0) for key in {**usage, **more}}


def completed(start: datetime, seconds: float) -> datetime:
    """The time so many seconds after the start."""
    return start + timedelta(seconds=min(seconds, 1e9))


def timestamp(time: datetime) -> str:
    """The time as Inspect writes it."""
    return time.isoformat()
