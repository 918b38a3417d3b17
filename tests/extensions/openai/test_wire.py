"""Reading what servers send."""

from __future__ import annotations

import contextlib
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.reasoning import split_reasoning
from harness.extensions.openai.refusals import overflows
from harness.extensions.openai.waits import limited_for, retry_after
from harness.extensions.openai.wire import GarbledError, read_completion
from tests.helpers.fake_openai import chat


class HttpError(Exception):
    """As the package `openai` raises it."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status_code


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",  # OpenAI
    "{'code': 'context_length_exceeded', 'message': 'too long'}",
    "Your input exceeds the context window of this model.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 2048.",  # vLLM
    "the request exceeds the available context size. try increasing it",  # llama.cpp
    "{'code': 400, 'message': 'no', 'type': 'exceed_context_size_error', 'n_ctx': 4096}",
    "The input (9000 tokens) is longer than the model's context length (4096 tokens).",  # SGLang
    "Input length (9000 tokens) exceeds the maximum allowed length (4091 tokens).",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_every_servers_words_for_a_full_context_are_known(text: str) -> None:
    assert overflows(HttpError(400, text))
    assert overflows(HttpError(500, text))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "temperature must be below 2"),
        (400, "max_tokens must be at least 1"),
        (400, "max_tokens=4000 cannot be greater than max_model_len=2048. Please request fewer output tokens."),
        (429, "Request too large: maximum context length is no matter, tokens per minute is"),
        (404, "no model context-length-9000"),
        (401, "maximum context length for this key"),
        (500, "internal error"),
    ],
)
def test_other_refusals_are_not_taken_for_it(status: int, text: str) -> None:
    assert not overflows(HttpError(status, text))


def test_usage_with_cached_and_reasoning_tokens() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    answer = read_completion(chat("yes", usage, "length"), 0.5)
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens) == (
        100, 20, 64, 12,
    )  # fmt: skip
    assert (answer.finish_reason, answer.latency) == ("length", 0.5)


def test_usage_may_be_missing_null_or_odd() -> None:
    odd: list[Any] = [None, {}, [], "many", {"prompt_tokens": "seven", "prompt_tokens_details": None}]
    for usage in odd:
        answer = read_completion({**chat("yes"), "usage": usage}, 0.1)
        assert (answer.text, answer.input_tokens, answer.cached_tokens) == ("yes", None, None)


@pytest.mark.parametrize(
    ("usage", "count"),
    [
        (7, 7),
        (7.0, 7),
        ("7", 7),
        ("", None),
        ("-7", None),
        ("7" * 99, None),
        (-7, None),
        (7.5, None),
        (True, None),
        (10**99, None),
        (float("nan"), None),
    ],
)
def test_counts_of_tokens_are_whole_numbers(usage: Any, count: int | None) -> None:
    answer = read_completion({**chat("yes"), "usage": {"completion_tokens": usage}}, 0.1)
    assert answer.output_tokens == count


@pytest.mark.parametrize(
    ("message", "reasoning", "text"),
    [
        ({"content": "Yes", "reasoning_content": "hm"}, "hm", "Yes"),
        ({"content": "Yes", "reasoning": "hm"}, "hm", "Yes"),
        ({"content": "<think>hm</think>\n\nYes"}, "hm", "Yes"),
        ({"content": None, "reasoning_content": "hm"}, "hm", ""),
        ({"content": None}, None, ""),
        ({}, None, ""),
        ({"content": None, "refusal": "I cannot."}, None, "I cannot."),
        ({"content": [{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}, {"type": "image"}]}, None, "Yes"),
        ({"content": " Yes\n", "reasoning_content": ""}, None, " Yes\n"),
    ],
)
def test_reasoning_is_kept_apart(message: dict[str, Any], reasoning: str | None, text: str) -> None:
    answer = read_completion(chat(message), 0.0)
    assert (answer.reasoning, answer.text) == (reasoning, text)


@pytest.mark.parametrize(
    ("text", "opened", "came"),
    [
        ("hm</think>Yes", None, ("hm", "Yes")),
        ("hm</think>Yes", True, ("hm", "Yes")),
        ("hm</think>Yes", False, (None, "hm</think>Yes")),
        ("still thinking", True, ("still thinking", "")),
        ("still thinking", None, (None, "still thinking")),
        ("<think>still thinking", None, ("still thinking", "")),
        ("say <think> and </think>", None, (None, "say <think> and </think>")),
        ("<think>\n\n</think>\n\nYes", False, (None, "Yes")),
    ],
)
def test_where_reasoning_ends(text: str, opened: bool | None, came: tuple[str | None, str]) -> None:
    assert split_reasoning(text, opened) == came


def test_a_constrained_reply_is_taken_whole() -> None:
    text = '{"quote": "</think>"}'
    assert read_completion(chat(text), 0.0, constrained=True).text == text
    assert read_completion(chat(text), 0.0).reasoning is not None


def test_lone_surrogates_become_question_marks() -> None:
    answer = read_completion(chat({"content": "a\ud800b", "reasoning": "\udfff😀"}), 0.0)
    assert answer.text == "a?b"
    assert answer.reasoning == "?😀"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "usage", "error", "prompt_tokens", "x"]), inner, max_size=4
    ),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_any_json_is_a_completion_or_garbled(data: Any) -> None:
    for body in (data, {"choices": [data]}, {"choices": [{"message": data}]}, chat({"content": data})):
        with contextlib.suppress(GarbledError):
            read_completion(body, 0.0).text.encode()


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n"]), max_size=12).map("".join),
    st.none() | st.booleans(),
)
def test_splitting_loses_nothing_but_tags_and_blanks(text: str, opened: bool | None) -> None:
    reasoning, answer = split_reasoning(text, opened)
    if reasoning is None and answer == text:
        return
    results = [c for c in (reasoning or "") + answer if not c.isspace()]
    assert sum(c == "a" for c in results) == text.count("a")
    assert answer == answer.lstrip()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({}, 0.0),
    ],
)
def test_retry_after_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_to_come() -> None:
    assert retry_after({"retry-after": formatdate(4e9, usegmt=True)}) > 1e9


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("[THINK]hm[/THINK]Yes", ("hm", "Yes")),
        ("<reasoning>hm</reasoning>\nYes", ("hm", "Yes")),
        ("<thinking>\nhm", ("hm", "")),
        ("hm</thought>\nYes", ("hm", "Yes")),
        ("hm[/THINK]Yes</think>", ("hm", "Yes</think>")),
        ("hm◁/think▷Yes", ("hm", "Yes")),
        ("hm</seed:think>Yes", ("hm", "Yes")),
        ("Sure. Here is my response: Yes", (None, "Sure. Here is my response: Yes")),
        ("A prompt asked for it.</reasoning>Yes", (None, "A prompt asked for it.</reasoning>Yes")),
        ("Say <thought> and </thought>.", (None, "Say <thought> and </thought>.")),
        ("◁think▷hm◁/think▷Yes", ("hm", "Yes")),
        ("<|begin_of_thought|>hm<|end_of_thought|>Yes", ("hm", "Yes")),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes<|return|>",
            ("hm", "Yes"),
        ),
        ("<|channel|>analysis<|message|>hm", ("hm", "")),
        ("analysisWe should.assistantfinalYes", ("We should.", "Yes")),
        ("analysisWell", (None, "analysisWell")),
        ("I say [THINK] and <reasoning>.", (None, "I say [THINK] and <reasoning>.")),
        ("<analysis>A prompt asked for it.</analysis>", (None, "<analysis>A prompt asked for it.</analysis>")),
    ],
)
def test_thoughts_in_other_marks_are_thoughts(text: str, came: tuple[str | None, str]) -> None:
    assert split_reasoning(text) == came


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "2", "x-ratelimit-reset-requests": "9s"}, "", 2.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "20ms"}, "", 360.0),
        (
            {
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-tokens": "1m30.5s",
                "x-ratelimit-remaining-tokens": "0",
            },
            "",
            90.5,
        ),
        ({"X-RateLimit-Reset": "12"}, "", 12.0),
        (
            {},
            "Rate limit reached on requests per min. Limit: 3 / min. Please try again in 20s. Contact",
            20.0,
        ),
        ({}, "on tokens per min. Limit: 10000 / min. Please try again in 6ms.", 0.006),
        ({}, "Please try again in 1m26.4s.", 86.4),
        ({}, "exceeded call rate limit. Please retry after 33 seconds.", 33.0),
        ({}, "{'@type': 'RetryInfo', 'retryDelay': '41s'}", 41.0),
        ({}, "Please retry later.", 0.0),
        ({"x-ratelimit-reset": "never"}, "", 0.0),
    ],
)
def test_how_long_a_limited_rate_lasts(headers: dict[str, str], text: str, seconds: float) -> None:
    """github.com/n3d1117/chatgpt-telegram-bot/pull/341, github.com/openai/openai-node/issues/1108,
    github.com/posit-dev/raghilda/pull/21."""
    assert limited_for(headers, text) == pytest.approx(seconds)


@pytest.mark.parametrize("form", ["{:.0f}", "{:.0f}000", "date"])
def test_a_reset_as_a_time(form: str) -> None:
    """OpenRouter gives milliseconds since 1970, Anthropic a date."""
    value = "2200-01-01T00:00:00Z" if form == "date" else form.format(4e9)
    assert limited_for({"x-ratelimit-reset": value}) > 1e8
