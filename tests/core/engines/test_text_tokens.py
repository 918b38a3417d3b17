"""Plain texts as token ids: the rules are lm-eval's, whose own functions say what is right (needs transformers)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from harness.api import Thread
from harness.api.errors import ContextLengthError, SetupError
from harness.engines.chat_tokens import ChatTokens
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from harness.engines.text_tokens import TextTokens, fitted
from tests.helpers.tiny_model import make_tokenizer

pytestmark = pytest.mark.vllm  # transformers comes with it

WORDS = ("the", " agents", "  ", "\n\n", "Don't", " 日本語", " 12,345", "<|im_end|>", "<s>", "é", "\t", " a")


@pytest.fixture(scope="module", params=["neither", "bos"])
def tokenizer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tiny model's, and one that writes a token before every text."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer(folder)
    made = AutoTokenizer.from_pretrained(folder)
    if request.param == "bos":
        made.add_special_tokens({"bos_token": "<s>"})
        pairs = [("<s>", made.bos_token_id)]
        made.backend_tokenizer.post_processor = TemplateProcessing("<s> $A", special_tokens=pairs)
    return made


@pytest.fixture(scope="module")
def reference(tokenizer: Any) -> Any:
    """lm-eval's own model class around this tokenizer, as far as it needs no model."""
    from lm_eval.api.model import TemplateLM

    class Reference(TemplateLM):  # type: ignore[misc]
        eot_token_id = tokenizer.eos_token_id
        prefix_token_id = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        pairs: Any = None

        def tok_encode(self, string: str, add_special_tokens: bool | None = None, **more: Any) -> list[int]:
            if not string:
                return []
            if add_special_tokens is None:
                add_special_tokens = not string.startswith(tokenizer.decode(self.prefix_token_id))
            return list(tokenizer(string, add_special_tokens=add_special_tokens).input_ids)

        def _loglikelihood_tokens(self, requests: Any, **more: Any) -> Any:
            return [(context, text) for _, context, text in requests]

        def loglikelihood_rolling(self, requests: Any, **more: Any) -> Any: ...

        def generate_until(self, requests: Any, **more: Any) -> Any: ...

    return Reference()


def texts(seed: int, most: int) -> str:
    rng = random.Random(seed)
    return "".join(rng.choice(WORDS) for _ in range(rng.randint(0, most)))


def test_contexts_and_texts_are_split_as_lm_eval_splits_them(tokenizer: Any, reference: Any) -> None:
    from lm_eval.api.instance import Instance

    ours = ChatTokens(tokenizer).texts
    compared = 0
    for seed in range(300):
        context, text = texts(seed, 12), " " * (seed % 2) + texts(-seed - 1, 5) + "x"
        if context and not context.strip():
            continue  # lm-eval fails where a context is nothing but blanks
        instance = Instance("loglikelihood", {}, (context, text), 0)
        assert [ours.pair(context, text)] == reference.loglikelihood([instance], disable_tqdm=True), (context, text)
        compared += 1
    assert compared > 200
    assert ours.pair("  ", "x") == ours.pair("", "  x")


def test_a_text_that_begins_with_the_prefix_token_does_not_get_it_twice(tokenizer: Any, reference: Any) -> None:
    from lm_eval.api.instance import Instance

    ours = ChatTokens(tokenizer).texts
    for start in ("<s>", "<|im_end|>"):
        for context, text in ((start, "a"), ("", start + "a"), (start + "b", " a")):
            instance = Instance("loglikelihood", {}, (context, text), 0)
            assert [ours.pair(context, text)] == reference.loglikelihood([instance], disable_tqdm=True)


@pytest.mark.parametrize("limit", [5, 10, 33])
def test_windows_are_those_of_lm_eval(tokenizer: Any, reference: Any, limit: int) -> None:
    from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

    ours = ChatTokens(tokenizer).texts
    for seed in range(60):
        text = texts(seed, 40)
        theirs = get_rolling_token_windows(reference.tok_encode(text), reference.prefix_token_id, limit - 2, 1)
        windows = list(ours.windows(text, limit))
        assert windows == [make_disjoint_window(window) for window in theirs]
        assert all(fitted(window, limit) == window for window in windows)


def test_a_context_that_is_too_long_is_cut_on_the_left_and_a_text_fails() -> None:
    assert fitted((list(range(10)), [1, 2]), 13) == (list(range(10)), [1, 2])
    assert fitted((list(range(10)), [1, 2]), 10) == ([3, 4, 5, 6, 7, 8, 9], [1, 2])
    assert fitted(([7, 8], [1, 2]), 4) == ([8], [1, 2])
    with pytest.raises(ContextLengthError, match="the text has 3 tokens; the model takes 4"):
        fitted(([7, 8], [1, 2, 3]), 4)


def test_each_kind_of_context_becomes_its_text(tokenizer: Any) -> None:
    chat = ChatTokens(tokenizer)
    thread, raw = Thread(), Thread(chat=False)
    for one in (thread, raw):
        one.add("user", "Which?")
    asked = chat.render(thread.messages)
    shown = ({"role": "user", "content": "Why?"}, {"role": "assistant", "content": "As"})
    options = Continuation(" a"), Continuation(" b", "Q:"), Continuation(" c", shown), Continuation(" d", shown[:1])
    request = LikelihoodRequest("r", thread, continuations=options)
    begun = chat.render(list(shown), begun=True)
    assert begun.endswith("assistant\nAs")
    expected = [(asked, " a"), ("Q:", " b"), (begun, " c"), (chat.render(list(shown[:1])), " d")]
    assert chat.pairs(request, 500) == [[chat.texts.pair(*pair)] for pair in expected]
    plain = LikelihoodRequest("r", raw, continuations=(Continuation(" a"),), prefill=" Is")
    assert chat.pairs(plain, 500) == [[chat.texts.pair("Which? Is", " a")]]
    filled = LikelihoodRequest("r", thread, continuations=(Continuation(" a"),), prefill="It is")
    assert chat.pairs(filled, 500) == [[chat.texts.pair(asked + "It is", " a")]]
    assert chat.prompt(raw, " Is").ids == chat.texts.encode("Which? Is")
    assert chat.prompt(thread, "It is").text == asked + "It is"


def test_a_verbatim_conversation_has_the_ids_of_lm_eval(tokenizer: Any, reference: Any) -> None:
    chat = ChatTokens(tokenizer)
    usual, written = Thread(), Thread(verbatim=True)
    for thread in (usual, written):
        thread.add("user", "Which?")
    text = chat.render(written.messages)
    assert chat.prompt(written).ids == reference.tok_encode(text) == chat.prompt(written, "").ids
    assert chat.prompt(usual).ids == tokenizer.encode(text, add_special_tokens=False)
    assert chat.prompt(written, "It").ids == reference.tok_encode(text + "It")


def test_a_model_without_template_takes_texts_and_refuses_chats(tokenizer: Any) -> None:
    template, tokenizer.chat_template = tokenizer.chat_template, None
    try:
        chat = ChatTokens(tokenizer)
        raw, thread = Thread(chat=False), Thread()
        for one in (raw, thread):
            one.add("user", "Q:")
        assert chat.prompt(raw).text == "Q:"
        with pytest.raises(SetupError, match="no chat template"):
            chat.prompt(thread)
        with pytest.raises(SetupError, match="no chat template"):
            chat.pairs(LikelihoodRequest("r", thread, continuations=(Continuation(" a"),)), 50)
    finally:
        tokenizer.chat_template = template


def test_a_tokenizer_without_any_such_token_says_so(tokenizer: Any) -> None:
    class Bare:
        bos_token_id = eos_token_id = eos_token = None

    bare = TextTokens(Bare(), lambda text, special: list(map(ord, text)))
    assert bare.pair("a", "b") == ([97], [98]) and bare.eos == ""
    with pytest.raises(SetupError, match="no token with which a text can begin"):
        bare.pair("", "b")
