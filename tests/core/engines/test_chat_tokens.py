"""Chat threads as token ids, with real tokenizers and templates of several habits (needs transformers, no engine)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import Facts, Thread
from harness.api.errors import RequestError, SetupError
from harness.engines.chat_tokens import ChatTokens, Prompt
from tests.helpers.tiny_model import TEMPLATE, make_tokenizer

pytestmark = pytest.mark.vllm  # transformers comes with it

TRIMS = TEMPLATE.replace("message['content']", "message['content'] | trim")
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
FORGETS = "{% set messages = messages[-1:] %}" + TEMPLATE
NO_BOUNDARY = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
OPENS_THINKING = TEMPLATE.replace("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n")

TEXTS = [
    "",
    " blanks  first, between and last ",
    "Don't: 12,345.67 — naïve 日本語 👩‍🚀\r\n\r\n\n\tx**2\n",
    "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n",
    "<|im_start|><|im_start|>   <|im_end",
    "word " * 3000,
]

Make = Callable[..., ChatTokens]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer(folder)
    return AutoTokenizer.from_pretrained(folder)


def converse(chat: ChatTokens, tokenizer: Any, replies: list[str]) -> list[list[int]]:
    """The prompts' ids of a conversation in which the model replies these texts, each ended by its end token."""
    thread, prompts = Thread(), []
    thread.add("system", "You are Alice.")
    for turn, reply in enumerate(replies):
        thread.add("user", f"Round {turn}. What do you say?")
        prompt = chat.prompt(thread)
        prompts.append(prompt.ids)
        generated = [*tokenizer.encode(reply, add_special_tokens=False), tokenizer.eos_token_id]
        _, answer = chat.read(thread, prompt, generated)
        thread.add("assistant", answer)
    return prompts


class Whole(ChatTokens):
    """Forgets the thread's tokens, so that every prompt is rendered and tokenized whole."""

    def prompt(self, thread: Thread, prefill: str = "", tools: Sequence[Facts] = ()) -> Prompt:
        thread.memo.clear()
        return super().prompt(thread, prefill, tools)


class Told(ChatTokens):
    """Notes how many messages it renders at a time."""

    def __init__(self, tokenizer: Any) -> None:
        self.lengths: list[int] = []
        super().__init__(tokenizer)
        self.lengths.clear()  # what it tried the template on

    def render(self, messages: Sequence[dict[str, str]], begun: bool = False, tools: Sequence[Facts] = ()) -> str:
        self.lengths.append(len(messages))
        return super().render(messages, begun, tools)


REPLIES = ["hello there", "my colour is 3", '{"messages": {"Bob": "hi"}}', "Group 1"]


@pytest.mark.parametrize("template", [None, TRIMS, NO_SYSTEM, FORGETS, NO_BOUNDARY, OPENS_THINKING])
def test_appended_ids_are_those_of_the_whole(tokenizer: Any, template: str | None) -> None:
    """Whatever the template does: as replies here are encoded canonically, the shortcut must change nothing."""
    chat, whole = ChatTokens(tokenizer, template), Whole(tokenizer, template)
    assert converse(chat, tokenizer, REPLIES) == converse(whole, tokenizer, REPLIES)
    assert whole.appended == 0


def test_only_new_text_is_tokenized_where_the_template_allows(tokenizer: Any) -> None:
    counts = {}
    for name, template in {"plain": TEMPLATE, "trims": TRIMS, "forgets": FORGETS, "no boundary": NO_BOUNDARY}.items():
        chat = ChatTokens(tokenizer, template)
        converse(chat, tokenizer, REPLIES)
        counts[name] = chat.appended, chat.encoded
    assert counts == {"plain": (3, 1), "trims": (3, 1), "forgets": (0, 4), "no boundary": (0, 4)}


def test_the_history_is_not_rendered_again_at_every_turn(tokenizer: Any) -> None:
    chat = Told(tokenizer)
    converse(chat, tokenizer, REPLIES * 25)
    whole = [length for length in chat.lengths if length > 3]
    assert whole == [2 * replies + 2 for replies in (1, 2, 4, 8, 16, 32, 64)], "only after 1, 2, 4, 8, … replies"
    assert (chat.appended, chat.encoded) == (99, 1)


TELLS_LATE = TEMPLATE.replace(
    "{% if add_generation_prompt %}",
    "{% if messages | length > 20 %}Be quick.{% endif %}{% if add_generation_prompt %}",
)


def test_a_template_that_changes_its_mind_later_is_found_out_and_followed_from_there(tokenizer: Any) -> None:
    """What no sample shows: after some turns it writes another thing."""
    chat, whole = ChatTokens(tokenizer, TELLS_LATE), Whole(tokenizer, TELLS_LATE)
    ours, exact = (converse(c, tokenizer, REPLIES * 10) for c in (chat, whole))
    assert ours[:9] == exact[:9]
    assert ours[16:] == exact[16:], "the whole is looked at after 16 replies, and from then on at every turn"


COUNTS = TEMPLATE.replace(
    "{{ message['role'] }}",
    "{{ message['role'] }}{{ ' ' ~ loop.index if message['role'] == 'user' else '' }}",
)


def test_a_template_that_numbers_its_questions_is_rendered_whole_every_time(tokenizer: Any) -> None:
    assert "user 3" in ChatTokens(tokenizer, COUNTS).render([{"role": "user", "content": ""}] * 3)
    chat, whole = ChatTokens(tokenizer, COUNTS), Whole(tokenizer, COUNTS)
    assert converse(chat, tokenizer, REPLIES * 3) == converse(whole, tokenizer, REPLIES * 3)
    assert chat.appended == 11, "its ids are still appended: what it wrote before stays as it was"


class Metaspace:
    """A tokenizer that puts a blank before whatever it is given, as those of some older models do."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.added_tokens_decoder = inner.added_tokens_decoder
        self.apply_chat_template = inner.apply_chat_template
        self.decode = inner.decode

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(self.inner.encode(f" {text}", add_special_tokens=add_special_tokens))


def test_a_tokenizer_whose_parts_are_not_the_whole_is_given_the_whole(tokenizer: Any) -> None:
    chat = ChatTokens(Metaspace(tokenizer))
    converse(chat, tokenizer, REPLIES)
    assert (chat.appended, chat.encoded) == (0, 4)


def test_encoding_skips_the_wrapper_unless_a_model_has_its_own(tokenizer: Any) -> None:
    """vLLM derives a class from the model's, which passes every call on; a model's own class may do anything."""
    calls = []

    class DerivedTokenizer(type(tokenizer)):  # type: ignore[misc]
        def encode(self, *args: Any, **kwargs: Any) -> Any:
            calls.append("encode")
            return super().encode(*args, **kwargs)

        def decode(self, *args: Any, **kwargs: Any) -> Any:
            calls.append("decode")
            return super().decode(*args, **kwargs)

    counts = {}
    for module in ("vllm.tokenizers.hf", "transformers_modules.own"):
        DerivedTokenizer.__module__ = module
        derived = copy.copy(tokenizer)
        derived.__class__ = DerivedTokenizer
        chat = ChatTokens(derived)
        calls.clear()
        assert converse(chat, tokenizer, REPLIES) == converse(Whole(tokenizer), tokenizer, REPLIES)
        counts[module] = calls.count("encode"), calls.count("decode")
    assert counts == {"vllm.tokenizers.hf": (0, 0), "transformers_modules.own": (4, 4)}


@pytest.mark.parametrize("text", TEXTS)
def test_encoding_is_the_wrappers(tokenizer: Any, text: str) -> None:
    chat = ChatTokens(tokenizer)
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert chat.encode(text) == ids
    assert chat.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def test_truncation_in_a_models_files_is_ignored(tokenizer: Any) -> None:
    cutting = copy.deepcopy(tokenizer)
    cutting.backend_tokenizer.enable_truncation(5)
    cutting.backend_tokenizer.enable_padding(length=400)
    text = "The agents of a network talk to their neighbors."
    assert ChatTokens(cutting).encode(text) == tokenizer.encode(text, add_special_tokens=False)


def test_a_text_that_comes_again_is_encoded_once(tokenizer: Any) -> None:
    chat, texts = ChatTokens(tokenizer), []
    encode = chat.encode
    chat.encode = lambda text: texts.append(text) or encode(text)
    for question in ("Who?", "Why?", "Who?"):
        thread = Thread()
        thread.add("user", question)
        assert chat.prompt(thread).ids == encode(chat.prompt(thread).text)
    assert len(texts) == 2


def test_threads_that_open_alike_share_no_list(tokenizer: Any) -> None:
    chat, threads = ChatTokens(tokenizer), [Thread(), Thread()]
    for thread in threads:
        thread.add("user", "Say hello.")
    first, second = map(chat.prompt, threads)
    assert first == second
    first.ids.append(7)
    assert first.ids != second.ids and chat.prompt(threads[1]) == second


def test_generated_ids_stay_as_generated(tokenizer: Any) -> None:
    """Letter by letter is no encoding the tokenizer would choose; it is what the engine's prefix cache holds."""
    chat, thread = ChatTokens(tokenizer), Thread()
    thread.add("user", "Say hello.")
    prompt = chat.prompt(thread)
    spelled = [i for letter in "hello there" for i in tokenizer.encode(letter, add_special_tokens=False)]
    assert spelled != tokenizer.encode("hello there", add_special_tokens=False)
    assert chat.read(thread, prompt, spelled) == (None, "hello there")
    thread.add("assistant", "hello there")
    thread.add("user", "Again.")
    following = chat.prompt(thread).ids
    assert following[: len(prompt.ids) + len(spelled)] == prompt.ids + spelled
    assert tokenizer.decode(following) == chat.render(thread.messages)


@pytest.mark.parametrize("changed", ["hello", "hello there!", "", "goodbye"])
def test_a_thread_that_says_otherwise_is_tokenized_whole(tokenizer: Any, changed: str) -> None:
    """A player may store something else than the reply: what the thread says counts."""
    chat, thread = ChatTokens(tokenizer), Thread()
    thread.add("user", "Say hello.")
    prompt = chat.prompt(thread)
    generated = tokenizer.encode("hello there", add_special_tokens=False)
    assert chat.read(thread, prompt, generated) == (None, "hello there")
    thread.add("assistant", changed)
    thread.add("user", "Again.")
    assert chat.prompt(thread).ids == tokenizer.encode(chat.render(thread.messages), add_special_tokens=False)
    assert chat.appended == 0


def test_control_tokens_in_a_reply_do_not_enter_the_history(tokenizer: Any) -> None:
    chat, thread = ChatTokens(tokenizer), Thread()
    thread.add("user", "Say hello.")
    prompt = chat.prompt(thread)
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    generated = [*tokenizer.encode("hello"), start, *tokenizer.encode(" there")]
    _, answer = chat.read(thread, prompt, generated)
    assert answer == "hello there"
    thread.add("assistant", answer)
    thread.add("user", "Again.")
    assert chat.prompt(thread).ids == tokenizer.encode(chat.render(thread.messages), add_special_tokens=False)
    assert chat.appended == 0


def test_thinking_is_kept_apart(tokenizer: Any) -> None:
    def read(chat: ChatTokens, reply: str) -> tuple[str | None, str]:
        thread = Thread()
        thread.add("user", "Decide.")
        ids = tokenizer.encode(reply, add_special_tokens=False)
        return chat.read(thread, chat.prompt(thread), [*ids, tokenizer.eos_token_id])

    plain, opened = ChatTokens(tokenizer), ChatTokens(tokenizer, OPENS_THINKING)
    assert read(plain, "<think>\nhm\n</think>\n\nYes") == ("hm", "Yes")
    assert read(plain, "Yes") == (None, "Yes")
    assert read(plain, "Yes</think>No") == (None, "Yes</think>No")
    assert read(opened, "hm</think>Yes") == ("hm", "Yes")
    assert read(opened, "hm, still") == ("hm, still", "")
    parsed = ChatTokens(tokenizer, reasoning=lambda text: (text[:2], text[2:]))
    assert read(parsed, "hmYes") == ("hm", "Yes")


def test_reasoning_is_no_part_of_what_is_kept(tokenizer: Any) -> None:
    chat = ChatTokens(tokenizer)
    converse(chat, tokenizer, ["<think>hm</think>Yes", "No", "<think></think>Yes", "No"])
    assert (chat.appended, chat.encoded) == (1, 3)


def test_a_template_without_system_role_gets_it_with_the_first_question(tokenizer: Any) -> None:
    chat = ChatTokens(tokenizer, NO_SYSTEM)
    text = chat.render([{"role": "system", "content": "Be Alice."}, {"role": "user", "content": "Who?"}])
    assert text == chat.render([{"role": "user", "content": "Be Alice.\n\nWho?"}])
    assert "Be Alice." in chat.render([{"role": "system", "content": "Be Alice."}])


def test_template_variables_arrive(tokenizer: Any) -> None:
    chat = ChatTokens(tokenizer, "{{ mood }}" + TEMPLATE, {"mood": "calm"})
    assert chat.render([{"role": "user", "content": "Hi"}]).startswith("calm<|im_start|>user")


def test_what_a_template_refuses(tokenizer: Any) -> None:
    strict = "{% if messages|length > 1 %}{{ raise_exception('one only') }}{% endif %}" + TEMPLATE
    chat = ChatTokens(tokenizer, strict)
    with pytest.raises(RequestError, match="one only"):
        chat.render([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    never, thread = ChatTokens(tokenizer, "{{ raise_exception('never') }}"), Thread()
    with pytest.raises(SetupError, match="chat form"):
        never.prompt(thread)
