"""The questions of `harness probe`: what a server does with small requests, one after another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness import __version__
from harness.api.errors import EngineError, SetupError
from harness.engines.tool_calls import calls_of, offered
from harness.extensions.openai import prompt_logprobs as scoring
from harness.extensions.openai.card import MANY_STOPS, Card
from harness.extensions.openai.constraints import constrained
from harness.extensions.openai.dialect import MOST_STOPS, NEW, OLD
from harness.extensions.openai.refusals import is_limit, tokens_left
from harness.extensions.openai.replicas import Replica, as_json
from harness.extensions.openai.streams import is_stream
from harness.extensions.openai.waits import headers_and_text, limited_for
from harness.extensions.openai.wire import GarbledError, read_completion, read_usage
from harness.runtime.run_json import now

CHAT, TEXT = "/chat/completions", "/completions"
_SHORT, _LONG = 48, 2048
"""Tokens of a reply, and of one that begins with reasoning."""
_SOME_STOPS = (MANY_STOPS, MOST_STOPS, 1)
_HUGE = 100_000_000
"""Tokens that no window has."""
_WAITS = 5
"""How often a limit of the rate is waited for."""
_SUM = "What is 17 + 25? ProbeAnswer with the number only."
_COUNT = "Count from one to twelve in words, with blanks between them and nothing else: one two three"
_WORDS = "Write ten random words, with blanks between them and nothing else."
_SYSTEM = (
    "You take part in a short examination of a server. Somebody asks small questions, and the answers are read by a "
    "program, which compares them with others. So please answer every question briefly and exactly as it is asked."
)
_FORM = {"zq": "K7"}
_SCHEMA = {
    "type": "object",
    "properties": {"zq": {"type": "string", "enum": ["K7"]}},
    "required": ["zq"],
    "additionalProperties": False,
}
_CHOICES = ["K7Q", "X9Z"]
_TOOL = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
Message = Mapping[str, Any]
Taken = Literal["taken", "refused"]


@dataclass(frozen=True)
class ProbeAnswer:
    """What came back: JSON, or an error in words."""

    data: Any = None
    error: str = ""
    failure: Exception | None = None
    streamed: bool = False

    @property
    def message(self) -> Mapping[str, Any]:
        """The message of the first choice; {} where there is none."""
        try:
            message = self.data["choices"][0]["message"]
        except (KeyError, IndexError, TypeError):
            return {}
        return message if isinstance(message, dict) else {}

    @property
    def text(self) -> str:
        """What the model says, without reasoning; "" for nothing."""
        try:
            return read_completion(self.data, 0.0).text
        except (GarbledError, EngineError):
            return ""

    @property
    def everything(self) -> str:
        """What it says with its reasoning."""
        thoughts = self.message.get("reasoning_content") or self.message.get("reasoning") or ""
        return f"{thoughts}\n{self.message.get('content') or ''}"

    @property
    def usage(self) -> Mapping[str, Any]:
        """The counts of tokens, each or None."""
        return read_usage(self.data.get("usage") if isinstance(self.data, dict) else None)

    @property
    def taken(self) -> Taken:
        return "refused" if self.error else "taken"


@dataclass
class Asker:
    """Asks one server, and waits where it limits the rate.

    Args:
        server: the server.
        extra: sent with every request.
        timeout: seconds for each.
        line: an error in one line without secrets.
    """

    server: Replica
    extra: Mapping[str, Any]
    timeout: float
    line: Callable[[Exception], str]
    asked: int = 0
    base: dict[str, Any] = field(default_factory=dict)
    word: str = OLD
    room: int = _SHORT

    async def post(self, path: str, body: Mapping[str, Any]) -> ProbeAnswer:
        """The answer to a request."""
        import openai

        for _ in range(_WAITS):
            self.asked += 1
            try:
                async with asyncio.timeout(self.timeout):
                    sent = {**self.base, **body, **self.extra}
                    named = {"headers": self.server.headers()}  # as of every request of a run: a server may refuse it
                    return _read(await self.server.client.post(path, cast_to=str, body=sent, options=named))
            except openai.APIStatusError as error:
                if not is_limit(error):
                    return ProbeAnswer(error=self.line(error), failure=error)
                limited = error
                await asyncio.sleep(min(60.0, limited_for(*headers_and_text(error)) or 1.0))
            except TimeoutError:
                return ProbeAnswer(error=f"no whole answer within {self.timeout:g} s")
            except (openai.OpenAIError, GarbledError) as error:
                return ProbeAnswer(error=self.line(error), failure=error)
        return ProbeAnswer(error=self.line(limited), failure=limited)

    async def chat(self, messages: Sequence[Message] | str, most: int | None = None, **more: Any) -> ProbeAnswer:
        """The answer to a conversation, or to a message of the user. `most`: tokens of the reply."""
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        return await self.post(CHAT, {"messages": asked, self.word: self.room if most is None else most, **more})


def _read(text: str) -> ProbeAnswer:
    streamed = is_stream(text)
    data = as_json(text)
    if not isinstance(data, dict):
        return ProbeAnswer(error=f"not JSON: {' '.join(text[:200].split())!r}")
    if data.get("error"):
        return ProbeAnswer(error=f"an error behind HTTP 200: {str(data['error'])[:300]}")
    if not data.get("choices"):
        return ProbeAnswer(error=f"not a completion: {str(data)[:200]}")
    return ProbeAnswer(data, streamed=streamed)


async def probe(asker: Asker, model: str, limits: Mapping[str, str]) -> Card:
    """Ask all questions. `limits`: headers of responses that speak of limits of the rate, at the end.

    Raises:
        SetupError: the server answers none.
    """
    seen: dict[str, Any] = {}
    refused: dict[str, str] = {}
    asker.base = {"model": model}
    first = await _first(asker, seen, refused)
    _look_at(first, seen)
    if seen["reasoning"] != "none":
        asker.room = _LONG
    for ask in (_stops, _seeds, _lengths, _roles, _tools, _structured, _likelihoods):
        await ask(asker, first, seen, refused)
    server, listed = asker.server, asker.server.listed
    seen["window"] = server.limits.get(model) or await _window(asker, seen)
    return Card(
        server=server.name,
        model=model,
        at=now(),
        harness=__version__,
        requests=asker.asked,
        models=[name[:200] for name in listed[:30]],
        listed=len(listed),
        rate_limits=dict(limits),
        refused={name: words[:300] for name, words in refused.items()},
        **seen,
    )


async def _first(asker: Asker, seen: dict[str, Any], refused: dict[str, str]) -> ProbeAnswer:
    """The first answer, asked in the ways that servers want: it says how the others are asked."""
    first: ProbeAnswer | None = None
    for more, streaming in (({}, "asked"), ({"stream": True, "stream_options": {"include_usage": True}}, "only")):
        for warm in ({"temperature": 0}, {}):
            for asker.word in (OLD, NEW):
                asker.base |= more
                answer = await asker.chat(_SUM, _SHORT, **warm)
                if not answer.error:
                    seen["temperature"] = "taken" if warm else "refused"
                    seen["streaming"] = "always" if answer.streamed and streaming == "asked" else streaming
                    asker.base |= warm
                    return answer
                first = first or answer
                if getattr(answer.failure, "status_code", 0) not in (400, 422, 500):
                    raise _helpless(asker, answer)
                words = answer.error.lower()
                if "temperature" in words:
                    refused["temperature"] = answer.error
                if "stream" in words:
                    refused["streaming"] = answer.error
        if "streaming" not in refused:
            break
    assert first is not None
    raise _helpless(asker, first)


def _helpless(asker: Asker, answer: ProbeAnswer) -> SetupError:
    where = f"{asker.server.name} answers no question to {asker.base['model']}"
    listed = f" It lists: {', '.join(asker.server.listed[:30])}." if asker.server.listed else ""
    return SetupError(f"{where}: {answer.error}", hint=f"Is that the model's name, and the key right?{listed}")


def _look_at(first: ProbeAnswer, seen: dict[str, Any]) -> None:
    """What the first answer shows of reasoning and of counts."""
    name, mark = first.data.get("model"), first.data.get("system_fingerprint")
    if isinstance(name, str):
        seen["answered_as"] = (f"{name} ({mark})" if isinstance(mark, str) and mark else name)[:200]
    message, counts = first.message, first.data.get("usage")
    where = next((key for key in ("reasoning_content", "reasoning") if message.get(key)), None)
    try:
        in_text = read_completion(first.data, 0.0).reasoning
    except (GarbledError, EngineError):
        in_text = None
    hidden = first.usage["reasoning_tokens"]
    seen["reasoning"] = where or ("text" if in_text else "hidden" if hidden else "none")
    seen["usage"] = _adds_up(counts) if isinstance(counts, dict) else "none"


def _adds_up(counts: Mapping[str, Any]) -> str:
    read, written, total = (counts.get(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if type(read) is not int or type(written) is not int:
        return "none"
    if total is None or total == read + written:
        return "adds up"
    return "beside" if type(total) is int and total > read + written else "does not add up"


async def _stops(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    """The longest of some lists of stops of which the last one ends a reply that is known."""
    text = (await asker.chat(_COUNT)).text
    middle = next((at for at in range(len(text) // 3, len(text) - 5) if text.find(text[at : at + 4]) == at), None)
    if not middle:
        return
    stop = text[middle : middle + 4]
    seen["stops"] = 0
    for most in _SOME_STOPS:
        others = [f"⟦{number}⟧" for number in range(most - 1)]
        answer = await asker.chat(_COUNT, stop=[*others, stop])
        if answer.error:
            refused.setdefault("stops", answer.error)
        elif len(answer.text) < len(text) and stop not in answer.text[: -len(stop)]:
            seen["stops"] = most
            return


async def _seeds(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    warm = {"temperature": 1} if seen["temperature"] == "taken" else {}
    answers = [await asker.chat(_WORDS, seed=seed, **warm) for seed in (1, 1, 2)]
    if any(answer.error for answer in answers):
        seen["seed"], refused["seed"] = "refused", next(answer.error for answer in answers if answer.error)
        return
    one, again, other = (answer.everything for answer in answers)
    seen |= {"seed": "taken", "same_seed": one == again, "two_seeds": one != other}


async def _lengths(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    """Which names bound a reply: to half of its tokens."""
    whole = await asker.chat(_COUNT)
    tokens, chars = _visible(whole), len(whole.everything)
    names, word, most = [], asker.word, max(1, (tokens or 12) // 2)
    for asker.word in (OLD, NEW):
        answer = await asker.chat(_COUNT, most)
        written = _visible(answer)
        if answer.error:
            refused[asker.word] = answer.error
        elif (len(answer.everything) < chars) if written is None or tokens is None else (written <= most < tokens):
            names.append(asker.word)
    asker.word, seen["max_tokens"] = word, names


def _visible(answer: ProbeAnswer) -> int | None:
    """Tokens of a reply; without reasoning, which some servers do not bound."""
    written, thought = answer.usage["output_tokens"], answer.usage["reasoning_tokens"]
    return None if written is None else written - (thought or 0)


async def _roles(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    user = {"role": "user", "content": _SUM}
    brief = await asker.chat([{"role": "system", "content": "Be brief."}, user])
    asked = {
        "system": [{"role": "system", "content": _SYSTEM}, user],
        "roles_in_a_row": [{"role": "user", "content": "Good day."}, user],
        "empty_turns": [{"role": "user", "content": "Good day."}, {"role": "assistant", "content": ""}, user],
    }
    for name, messages in asked.items():
        answer = await asker.chat(messages)
        seen[name] = answer.taken
        if answer.error:
            refused[name] = answer.error
        elif name == "system":
            before, after = brief.usage["input_tokens"], answer.usage["input_tokens"]
            if before and after and after > before:
                seen["token_characters"] = round((len(_SYSTEM) - len("Be brief.")) / (after - before), 2)
            elif before and after:
                seen[name] = "dropped"


async def _tools(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    question = "What is the weather in Paris, and what is it in Rome? Call the tool once for each, both at once."
    tools: dict[str, Any] = {"tools": offered([_TOOL])}
    answer = await asker.chat(question, max(asker.room, 128), **tools)
    if answer.error:
        seen["tools"], refused["tools"] = "refused", answer.error
        return
    if calls := calls_of(answer.message.get("tool_calls")):
        seen["tools"], seen["calls_at_once"] = "called", len(calls)
    else:  # a template without tools leaves them out of the prompt
        bare = (await asker.chat(question, 1)).usage["input_tokens"]
        seen["tools"] = "dropped" if bare and bare == answer.usage["input_tokens"] else "taken"
        if seen["tools"] == "dropped":
            return
    for name, cities in (("tool_results", ["Paris"]), ("parallel_tools", ["Paris", "Rome"])):
        answer = await asker.chat([{"role": "user", "content": question}, *_called(cities)], **tools)
        seen[name] = answer.taken
        if answer.error:
            refused[name] = answer.error


def _called(cities: Sequence[str]) -> list[Message]:
    """A message with a call for each city, and the results. Mistral's ids have nine letters and digits."""
    calls = [
        {
            "id": f"call{n}abcd",
            "type": "function",
            "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'},
        }
        for n, city in enumerate(cities)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


async def _structured(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    """To which forms each way of asking holds replies: forms that no model would choose."""
    held: dict[str, list[str]] = {}
    for how in ("openai", "vllm", "llama.cpp"):
        held[how] = []
        answer = await asker.chat(_SUM, **constrained({"json": _SCHEMA}, how))
        if answer.error:
            refused[f"structured={how}"] = answer.error
        if _json(answer.text) == _FORM:
            held[how].append("json")
        if how != "openai":
            answer = await asker.chat(_SUM, **constrained({"choice": _CHOICES}, how))
            if answer.text.strip() in _CHOICES:
                held[how].append("choice")
    seen["structured"] = held


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def _likelihoods(asker: Asker, first: ProbeAnswer, seen: dict[str, Any], refused: dict[str, str]) -> None:
    question = [{"role": "user", "content": "The capital of France?"}, {"role": "assistant", "content": "It is Paris"}]
    parts = {
        "texts": scoring.Part("The capital of France is Paris", " Paris"),
        "chats": scoring.Part(question, " Paris"),
    }
    seen["likelihoods"] = []
    for name, part in parts.items():
        path, body = scoring.body_of([part])
        answer = await asker.post(path, {key: value for key, value in body.items() if key != "temperature"})
        if name == "texts":
            plain = await asker.post(TEXT, {"prompt": "One two", "max_tokens": 2}) if answer.error else answer
            seen["texts"] = plain.taken
            if plain.error:
                refused["texts"] = plain.error
        try:
            if not answer.error:
                scoring.read_scores(answer.data, [part])
                seen["likelihoods"].append(name)
                continue
            why = answer.error
        except (GarbledError, EngineError) as error:
            why = str(error).partition("log-likelihoods: ")[2].partition(". They need")[0] or str(error)
        refused[f"likelihoods of {name}"] = why


async def _window(asker: Asker, seen: Mapping[str, Any]) -> int | None:
    """The window by the refusal of a reply that is longer than any. A server that does not refuse ends its reply at the
    first of some frequent characters, and is asked only if it does end replies so."""
    if not seen.get("stops") or seen["reasoning"] != "none":
        return None
    answer = await asker.chat(_SUM, _HUGE, stop=[" ", "e", "4", "\n"][: seen["stops"]])
    left = tokens_left(answer.failure, {asker.word: _HUGE}, True) if answer.failure is not None else None
    return left.window if left is not None else None
