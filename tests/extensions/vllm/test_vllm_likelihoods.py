"""Log-likelihoods and plain texts with the real vLLM engine. lm-eval's own vLLM model says what is right."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from harness.api import Completion, Request, Thread
from harness.api.errors import ContextLengthError
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from tests.conftest import VLLM_ARGS, Driven

pytestmark = pytest.mark.vllm

_numbers = itertools.count()
CONTEXT = "The agents of a network talk to their neighbors and agree on one answer. " * 24
OPTIONS = (" hello there", " my colour is 3", " x", " Group 1 and then some more")


def plain(text: str) -> Thread:
    thread = Thread(chat=False)
    thread.add("user", text)
    return thread


def scores(driven: Driven, thread: Thread, *texts: Continuation, rolling: bool = False) -> Completion:
    request = LikelihoodRequest(f"l/{next(_numbers)}", thread, continuations=texts, rolling=rolling)
    return driven.run(driven.engine.loglikelihood(request))


@pytest.fixture(scope="module", autouse=True)
def named_vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """lm-eval asks which version of the distribution "vllm" is there; its wheel for CPUs is called otherwise."""
    folder = tmp_path_factory.mktemp("named") / "vllm-0.32.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    sys.path.append(str(folder.parent))
    yield
    sys.path.remove(str(folder.parent))


def reference(driven: Driven, context: list[int], text: list[int]) -> tuple[float, bool]:
    """What lm-eval makes of this prompt: its own parameters, and its own reading of the output."""
    from lm_eval.models import vllm_causallms as lm
    from vllm import SamplingParams
    from vllm.inputs import tokens_input

    async def output() -> Any:
        parameters = SamplingParams(temperature=0, prompt_logprobs=1, max_tokens=1, detokenize=False)
        engine: Any = driven.engine._engine
        async for some in engine.generate(tokens_input([*context, *text]), parameters, f"ref/{next(_numbers)}"):
            last = some
        return last

    found: tuple[float, bool] = lm.VLLM._parse_logprobs([*context, *text], driven.run(output()), len(context))
    return found


def test_numbers_are_those_of_lm_eval_and_options_share_their_context(vllm_engine: Driven) -> None:
    texts = vllm_engine.engine._chat.texts
    answer = scores(vllm_engine, plain(CONTEXT), *map(Continuation, OPTIONS))
    expected = [list(reference(vllm_engine, *texts.pair(CONTEXT, option))) for option in OPTIONS]
    assert answer.likelihoods == expected
    prompts = [len(texts.encode(CONTEXT + option)) for option in OPTIONS]
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("", sum(prompts), 0)
    # Blocks have 128 tokens: the third one ends in the options, which all begin with a blank, and so is of no use.
    longer = CONTEXT + CONTEXT[40:]
    whole = scores(vllm_engine, plain(longer), *map(Continuation, OPTIONS))
    assert whole.cached_tokens is not None and whole.cached_tokens >= 3 * 5 * 128
    assert whole.likelihoods == [list(reference(vllm_engine, *texts.pair(longer, option))) for option in OPTIONS]
    # The cache then holds the texts too, or the better part of a long one: nothing of them may come from there.
    long = Continuation(" and agree on one answer. " * 40)
    again = [scores(vllm_engine, plain(CONTEXT), long, *map(Continuation, OPTIONS)).likelihoods for _ in range(2)]
    assert again[0] == again[1] and again[0] is not None and list(again[0][1:]) == expected
    assert again[0][0] == list(reference(vllm_engine, *texts.pair(CONTEXT, long.text)))


def test_every_kind_of_context_and_no_context_has_its_number(vllm_engine: Driven) -> None:
    chat = vllm_engine.engine._chat
    thread = Thread()
    thread.add("user", "Which colour?")
    shown = ({"role": "user", "content": "Why?"},)
    kinds = (Continuation("red"), Continuation(" red", "Colour:"), Continuation("red", shown), Continuation("red", ""))
    answer = scores(vllm_engine, thread, *kinds, Continuation("", "Q:"))
    pairs = [
        chat.texts.pair(text, kind.text)
        for text, kind in zip((chat.render(thread.messages), "Colour:", chat.render(shown), ""), kinds, strict=True)
    ]
    assert answer.likelihoods == [*(list(reference(vllm_engine, *pair)) for pair in pairs), [0.0, True]]


def test_a_long_text_is_scored_in_windows_and_a_long_context_is_cut(vllm_engine: Driven) -> None:
    texts, limit = vllm_engine.engine._chat.texts, VLLM_ARGS["max_model_len"]
    long = "".join(f"{number} agents talk. " for number in range(900))
    windows = list(texts.windows(long, limit))
    assert len(windows) > 2
    answer = scores(vllm_engine, plain(""), Continuation(long), Continuation("short"), rolling=True)
    expected = sum(reference(vllm_engine, *window)[0] for window in windows)
    assert answer.likelihoods is not None and answer.likelihoods[0] == [expected, False]
    assert answer.likelihoods[1] == list(reference(vllm_engine, *next(texts.windows("short", limit))))
    context, text = texts.pair(long, " x")
    behind = scores(vllm_engine, plain(long), Continuation(" x"))
    assert behind.likelihoods == [list(reference(vllm_engine, context[len(text) - limit + 1 :], text))]
    with pytest.raises(ContextLengthError, match="the text has"):
        scores(vllm_engine, plain("Q:"), Continuation(long))


def test_many_questions_at_once_keep_their_numbers(vllm_engine: Driven) -> None:
    async def all_of_them() -> list[Completion]:
        requests = [
            LikelihoodRequest(f"m/{i}", plain(CONTEXT[: 40 * i]), continuations=tuple(map(Continuation, OPTIONS)))
            for i in range(1, 12)
        ]
        return await asyncio.gather(*map(vllm_engine.engine.loglikelihood, requests))

    first, again = vllm_engine.run(all_of_them()), vllm_engine.run(all_of_them())
    assert [one.likelihoods for one in first] == [one.likelihoods for one in again]


def test_a_plain_text_is_continued_as_lm_eval_continues_it(vllm_engine: Driven) -> None:
    from lm_eval.models import vllm_causallms as lm
    from lm_eval.models.utils import postprocess_generated_text
    from vllm import SamplingParams
    from vllm.inputs import tokens_input

    texts, engine = vllm_engine.engine._chat.texts, vllm_engine.engine

    async def theirs(text: str, kwargs: dict[str, Any]) -> str:
        words, until, most = lm.VLLM.modify_gen_kwargs(kwargs, eos=texts.eos)
        parameters = SamplingParams(max_tokens=most, stop=until, **words)
        inner: Any = engine._engine
        async for some in inner.generate(tokens_input(texts.encode(text)), parameters, f"t/{next(_numbers)}"):
            last = some
        return str(postprocess_generated_text(last.outputs[0].text, until, None))

    seen = set()
    for number in range(12):
        text = CONTEXT[number * 11 :]
        kwargs: dict[str, Any] = {"until": ["e", "\n\n"][: number % 3], "max_gen_toks": 60, "do_sample": False}
        ours = vllm_engine.run(engine.complete(Request(f"c/{number}", plain(text), kwargs, 0)))
        assert ours.text == vllm_engine.run(theirs(text, kwargs))
        assert ours.reasoning is None
        seen.add(ours.text)
    assert len(seen) > 3


def test_special_tokens_and_tags_are_text_where_a_reply_counts_as_written(vllm_engine: Driven) -> None:
    tokenizer: Any = vllm_engine.engine._engine.get_tokenizer()
    start, think = (tokenizer.convert_tokens_to_ids(token) for token in ("<|im_start|>", "<think>"))
    words = {"temperature": 0, "max_tokens": 4, "ignore_eos": True}
    chat, verbatim = Thread(), Thread(verbatim=True)
    for thread in (chat, verbatim):
        thread.add("user", "Speak.")
    for token, text in ((start, "<|im_start|>" * 4), (think, "<think>" * 4)):
        biased = {**words, "logit_bias": {token: 100}}
        for thread in (plain("Speak."), verbatim):
            answer = vllm_engine.run(vllm_engine.engine.complete(Request("v", thread, biased, 0)))
            assert (answer.text, answer.reasoning) == (text, None)
        usual = vllm_engine.run(vllm_engine.engine.complete(Request("v", chat, biased, 0)))
        assert usual.text == ""


def test_a_plain_text_that_leaves_no_room_is_cut_on_the_left(vllm_engine: Driven) -> None:
    texts, limit = vllm_engine.engine._chat.texts, VLLM_ARGS["max_model_len"]
    long = "".join(f"{number} agents talk. " for number in range(900))
    words = {"temperature": 0, "max_tokens": 20, "ignore_eos": True}
    answer = vllm_engine.run(vllm_engine.engine.complete(Request("x", plain(long), words, 0)))
    assert answer.input_tokens == limit - 20 and len(texts.encode(long)) > limit
    for most in (limit, None):
        with pytest.raises(ContextLengthError):
            vllm_engine.run(vllm_engine.engine.complete(Request("x", plain(long), {**words, "max_tokens": most}, 0)))


def test_a_reply_goes_on_where_it_has_begun(vllm_engine: Driven) -> None:
    chat = vllm_engine.engine._chat
    thread = Thread(verbatim=True)
    thread.add("user", "Which colour?")
    words = {"temperature": 0, "max_tokens": 12}
    ours = vllm_engine.run(vllm_engine.engine.complete(Request("p", thread, words, 0, prefill="It is")))
    text = chat.render(thread.messages) + "It is"
    same = vllm_engine.run(vllm_engine.engine.complete(Request("p", plain(text), words, 0)))
    assert ours.text == same.text and ours.input_tokens == same.input_tokens
    thread.add("assistant", "It is" + ours.text)
    thread.add("user", "Sure?")
    vllm_engine.run(vllm_engine.engine.complete(Request("p", thread, words, 0)))
