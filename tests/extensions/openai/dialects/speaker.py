"""A stand-in server with a model that answers the questions of `harness probe`, in one of many dialects."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, echoed, raw, status

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
WORDS = [
    "apple",
    "river",
    "stone",
    "cloud",
    "tiger",
    "paper",
    "candle",
    "garden",
    "mirror",
    "engine",
    "forest",
    "bridge",
]
LENGTHS = ("max_tokens", "max_completion_tokens")


class RefusedError(Exception):
    """What the server does not take, in its own words."""


@dataclass
class Speaker:
    """One server's ways.

    Attributes:
        listed: of the model in `/v1/models`, beside its name.
        window: tokens that a prompt and its reply may have; in a refusal only, unless it is listed.
        stops: how many are taken; None: as many as there are. `ignores_stops`: all are taken, and none ends a reply.
        words: names of the most tokens that bound a reply; others are refused in `refused_word`, or ignored.
        system, empty, in_a_row, temperature, seed, tools: what is refused in these words; `drops`: what is left out.
        parallel: the refusal of two calls in one message.
        calls: how many the model makes at once.
        structured: fields of requests that hold replies to a form.
        echoes: what gets log-probabilities.
        reasoning: where reasoning stands.
        usage: how tokens are counted.
        headers: of every answer.
        stream: whether it answers in a stream: where asked to, always, or refuses not to.
        texts: whether `/v1/completions` is there.
    """

    listed: Body = field(default_factory=dict)
    window: int | None = None
    stops: int | None = None
    too_many_stops: str = "Invalid 'stop': array too long. Expected an array with maximum length 4."
    ignores_stops: bool = False
    words: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    refused_word: str = ""
    system: str = ""
    empty: str = ""
    in_a_row: str = ""
    temperature: str = ""
    seed: str = ""
    ignores_seed: bool = False
    tools: str = ""
    parallel: str = ""
    drops: tuple[str, ...] = ()
    calls: int = 2
    structured: tuple[str, ...] = ()
    echoes: tuple[str, ...] = ()
    reasoning: str = ""
    usage: str = "adds up"
    headers: dict[str, str] = field(default_factory=dict)
    stream: str = "asked"
    texts: bool = True
    draws: random.Random = field(default_factory=lambda: random.Random(0))

    def serve(self) -> FakeOpenAI:
        """The server, not yet begun."""
        server = FakeOpenAI(faults=self.faults)
        server.models_fault = raw(json.dumps({"object": "list", "data": [{"id": "fake", **self.listed}]}))
        return server

    def faults(self, body: Body) -> Fault:
        """Its answer to any request."""
        try:
            answer = self.text_answer(body) if "prompt" in body else self.chat_answer(body)
        except RefusedError as error:
            code = 404 if not self.texts and "prompt" in body else 400
            return status(code, str(error))
        if self.stream == "always" or body.get("stream"):
            return raw(events(answer), "text/event-stream")

        async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
            return web.json_response(answer, headers=self.headers)

        return fault

    def text_answer(self, body: Body) -> Body:
        if not self.texts:
            raise RefusedError("Not Found")
        if body.get("echo") and "texts" in self.echoes:
            return echoed(body)
        choice = {"index": 0, "text": "three", "logprobs": None, "finish_reason": "stop"}
        return {"object": "text_completion", "model": "fake", "choices": [choice], "usage": self.count(2, 1, 0)}

    def chat_answer(self, body: Body) -> Body:
        """A chat completion. Raises `RefusedError`."""
        self.check(body)
        messages = [one for one in body["messages"] if one["role"] not in self.drops]
        prompt = sum(len((one["content"] or "").split()) + 3 for one in messages)
        offered = body.get("tools") if "tools" not in self.drops else None
        prompt += 20 * bool(offered)
        text, ending, calls = self.say(body), "stop", []
        if offered and messages[-1]["role"] == "user" and self.calls:
            cities = ["Paris", "Rome"][: self.calls]
            calls = [
                {"id": city, "type": "function", "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'}}
                for city in cities
            ]
            text, ending = "", "tool_calls"
        thoughts = "That is easy to find out." if self.reasoning else ""
        most = next((body[word] for word in self.words if word in body), None)
        if most is not None and len(thoughts.split()) + len(text.split()) > most:
            left = max(0, most - len(thoughts.split()))
            thoughts, text = " ".join(thoughts.split()[:most]), " ".join(text.split()[:left])
            ending = "length"
        for stop in [] if self.ignores_stops else body.get("stop", [])[: self.stops]:
            text = text.partition(stop)[0]
        message: Body = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        if self.reasoning == "text":
            message["content"] = f"<think>{thoughts}</think>{text}"
        elif self.reasoning not in ("", "hidden"):
            message[self.reasoning] = thoughts
        counts = self.count(prompt, len(text.split()), len(thoughts.split()))
        answer: Body = {"object": "chat.completion", "model": "fake", "usage": counts}
        if "prompt_logprobs" in body and "chats" in self.echoes:
            pieces = ["<s>", "The", " capital", "?", "It", " is", " Paris", "</s>"]
            rows = [{str(n): {"logprob": -1.0, "rank": 1, "decoded_token": piece}} for n, piece in enumerate(pieces)]
            answer["prompt_logprobs"] = [None, *rows[1:]]
        return {"id": "x", **answer, "choices": [{"index": 0, "message": message, "finish_reason": ending}]}

    def check(self, body: Body) -> None:
        """Raise `RefusedError` for what it does not take."""
        messages = body["messages"]
        roles = [one["role"] for one in messages]
        calls = [len(one.get("tool_calls", ())) for one in messages]
        asked = max((body[word] for word in self.words if word in body), default=0)
        stops = len(body.get("stop", ()))
        refusals = {
            "Only streaming is supported: set stream to true.": self.stream == "only" and not body.get("stream"),
            self.refused_word: any(word in body and word not in self.words for word in LENGTHS),
            self.temperature: body.get("temperature", 1) != 1,
            self.seed: "seed" in body,
            self.system: "system" in roles,
            self.empty: any(one["role"] == "assistant" and one["content"] == "" for one in messages),
            self.in_a_row: any(a == b == "user" for a, b in itertools.pairwise(roles)),
            self.tools: bool(body.get("tools")),
            self.parallel: max(calls) > 1,
            self.too_many_stops: self.stops is not None and stops > self.stops,
            f"This model's maximum context length is {self.window} tokens. However, you requested {asked + 9} tokens "
            f"(9 in the messages, {asked} in the completion).": self.window is not None and asked > self.window,
        }  # fmt: skip
        if found := [words for words, is_so in refusals.items() if words and is_so]:
            raise RefusedError(found[0])

    def say(self, body: Body) -> str:
        """What the model says: to a form that it is held to, or to the question."""
        form = body.get("response_format", {}).get("json_schema", {}).get("schema")
        form = form if "response_format" in self.structured else None
        held = body.get("structured_outputs", {}) if "structured_outputs" in self.structured else {}
        form = form or held.get("json") or (body.get("json_schema") if "json_schema" in self.structured else None)
        if form is not None:
            return '{"zq": "K7"}'
        if "choice" in held or ("grammar" in body and "grammar" in self.structured):
            return "K7Q"
        question = next(one["content"] for one in reversed(body["messages"]) if one["role"] != "tool")
        if "Count" in (question or ""):
            return " ".join(NUMBERS)
        if "random" in (question or ""):
            draws = self.draws if self.ignores_seed or "seed" not in body else random.Random(body["seed"])
            return " ".join(draws.sample(WORDS, 10))
        return "42"

    def count(self, prompt: int, words: int, thoughts: int) -> Body | None:
        """Tokens of a reply."""
        if self.usage == "none":
            return None
        beside = self.usage == "beside"
        details = {"completion_tokens_details": {"reasoning_tokens": thoughts}} if thoughts else {}
        written = words + (0 if beside else thoughts)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + words + thoughts,
            **details,
        }


def events(answer: Body) -> str:
    """An answer in server-sent events, a word each."""
    (choice,) = answer["choices"]
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    deltas: list[Any] = []
    if "text" in choice:
        deltas = [{"text": choice["text"]}]
    else:
        message = choice["message"]
        pieces: list[Body] = [
            {"role": "assistant"},
            *({"reasoning_content": part} for part in parts(message.get("reasoning_content"))),
        ]
        pieces += [{"content": part} for part in parts(message["content"])]
        for n, call in enumerate(message.get("tool_calls", ())):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            pieces.append({"tool_calls": [{**call, "index": n, "function": {"name": name, "arguments": ""}}]})
            pieces += [{"tool_calls": [{"index": n, "function": {"arguments": char}}]} for char in arguments]
        deltas = [{"delta": piece} for piece in pieces]
    chunks = [{**head, "choices": [{"index": 0, **delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append({**head, "choices": [], "usage": answer.get("usage")})
    return ": hello\n\n" + "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def parts(text: str | None) -> list[str]:
    """The words of a text, each with the blank before it."""
    words = (text or "").split(" ") if text else []
    return [f" {word}" if n else word for n, word in enumerate(words)]
