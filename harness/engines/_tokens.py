"""Conversations as token ids: rendered by the model's chat template, tokenized only where they are new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from harness.engine_api import Thread
from harness.engines._reasoning import split_reasoning
from harness.errors import RefusedError, SetupError

Messages = Sequence[dict[str, str]]

_numbers = count()
_SYSTEM = {"role": "system", "content": "Be brief."}
_QUESTION = {"role": "user", "content": "Hello."}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation and its token ids."""

    text: str
    ids: list[int]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a thread's memo holds: all up to and with its last reply, how many messages and replies that is."""

    prompt: Prompt
    answer: str
    messages: int
    replies: int


class ChatTokens:
    """A Hugging Face tokenizer and its chat template.

    Tokenizing is most of a client's time, so what a thread holds already is not tokenized again: `remember` keeps the
    ids of the prompt and those that were *generated* (re-encoding the reply's text may give others, and only the
    generated ones are in the engine's prefix cache). `prompt` appends to them, but only where that is safe: where
    the template's new rendering starts with the old one and the reply, letter for letter, and what follows opens with
    a special token, at which tokenizers split whatever stands before. Templates that trim, rewrite or drop earlier
    turns do not pass, and the whole is tokenized as ever.

    Nor is it rendered again. Whether a template writes a turn without regard to where it stands is tried out on a
    sample once; then the reply and what follows it are rendered behind a fixed first question, so that the cost of a
    turn does not grow with the conversation. After 1, 2, 4, 8, … replies the whole is rendered all the same: the first
    difference ends it for good.

    Args:
        tokenizer: a `transformers` tokenizer.
        template: a Jinja chat template; None: the tokenizer's own.
        template_kwargs: further variables of the template, e.g. {"enable_thinking": False}.
        reasoning: token text → (reasoning, answer); None: a leading <think> block is the reasoning.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str | None = None,
        template_kwargs: dict[str, Any] | None = None,
        reasoning: Callable[[str], tuple[str | None, str]] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template, self._kwargs = template, dict(template_kwargs or {})
        self._reasoning = reasoning
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._special_ids = frozenset(i for i, token in added.items() if token.special)
        self._boundaries = tuple(token.content for token in added.values() if token.special)
        self._key = f"tokens/{next(_numbers)}"
        self._fold_system = self._flat = self._appends = False
        self._opening = ""
        self.appended = self.encoded = 0
        self._try_out()

    # ------------------------------------------------------------------------------ text → ids

    def prompt(self, thread: Thread) -> Prompt:
        """The thread as a prompt for its next reply.

        Raises:
            RefusedError: if the template refuses these messages.
        """
        told: _Told | None = thread.memo.get(self._key)
        if told is not None and self._appends:
            short = self._following(told, thread.messages) if self._flat else None
            if short is not None and told.replies & (told.replies - 1):
                return self._appended(told, short)
            text = self.render(thread.messages)
            so_far = told.prompt.text
            if short is not None and text != so_far + short:
                self._flat = False
            if text.startswith(so_far) and text.startswith(self._boundaries, len(so_far)):
                return self._appended(told, text[len(so_far) :])
        else:
            text = self.render(thread.messages)
        self.encoded += 1
        return Prompt(text, self.encode(text))

    def remember(self, thread: Thread, prompt: Prompt, generated: Sequence[int], answer: str) -> None:
        """Keep the ids for the thread's next prompt, if `answer` is all that the generated ids say."""
        before: _Told | None = thread.memo.pop(self._key, None)
        ids = list(generated)
        if ids and ids[-1] in self._special_ids:  # the end of the turn: the template writes its own
            ids.pop()
        if self._special_ids.isdisjoint(ids) and self.decode(ids) == answer:
            whole = Prompt(prompt.text + answer, prompt.ids + ids)
            replies = 1 if before is None else before.replies + 1
            thread.memo[self._key] = _Told(whole, answer, len(thread.messages), replies)

    def _appended(self, told: _Told, text: str) -> Prompt:
        self.appended += 1
        return Prompt(told.prompt.text + text, told.prompt.ids + self.encode(text))

    def _following(self, told: _Told, messages: Messages) -> str | None:
        """What the template writes behind the last reply, without rendering what stands before it; None: not sure."""
        reply, *new = messages[told.messages :] or [{}]
        if not new or reply != {"role": "assistant", "content": told.answer}:
            return None
        try:
            text, before = self.render([_QUESTION, reply, *new]), self._opening + told.answer
        except RefusedError:  # it may like the whole better
            return None
        if text.startswith(before) and text.startswith(self._boundaries, len(before)):
            return text[len(before) :]
        return None

    def render(self, messages: Messages) -> str:
        """The conversation as the model is shown it, up to where its reply begins."""
        if self._fold_system and messages and messages[0]["role"] == "system":
            messages = _folded(messages)
        kwargs = self._kwargs if self._template is None else {"chat_template": self._template, **self._kwargs}
        try:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **kwargs)
        except Exception as error:  # whatever a model's own Jinja code raises
            raise RefusedError(f"the model's chat template refuses the conversation: {error}") from error
        if not isinstance(text, str):
            raise RefusedError(f"{type(self._tokenizer).__name__} gives no text for a conversation")
        return text

    def encode(self, text: str) -> list[int]:
        """Token ids; the template has written all special tokens itself."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    # ------------------------------------------------------------------------------ ids → text

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """The text of generated ids."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False))

    def read(
        self, prompt: Prompt, generated: Sequence[int], text: str | None = None, constrained: bool = False
    ) -> tuple[str | None, str]:
        """(reasoning or None, answer) of a reply.

        Args:
            prompt: what it replies to; a template may have opened the reasoning there.
            generated: the reply's ids.
            text: the reply's text if known (cut at a stop string, say), else it is decoded.
            constrained: the reply was held to a form; without a reasoning parser that begins with its first token,
                and tags of reasoning in it are its content.
        """
        if self._reasoning is not None:
            ids = generated[:-1] if generated and generated[-1] in self._special_ids else generated
            return self._reasoning(self.decode(ids, skip_special=False) if text is None else text)
        text = self.decode(generated) if text is None else text
        if constrained:
            return None, text
        return split_reasoning(text, opened=prompt.text.rstrip().endswith("<think>"))

    # ------------------------------------------------------------------------------ once

    def _try_out(self) -> None:
        """See that there is a template, and whether it takes a system message."""
        try:
            self._opening = self.render([_QUESTION])
        except RefusedError as error:
            lacks = "chat_template is not set" in str(error)
            raise SetupError(
                "the model has no chat template" if lacks else f"the model cannot be asked in chat form: {error}",
                hint="Give chat_template= a file with a Jinja chat template, or take an instruction-tuned model.",
            ) from error
        try:
            self.render([_SYSTEM, _QUESTION])
        except RefusedError:
            self._fold_system = True
        self._flat = self._appends = True
        for opening in ([_QUESTION], [_SYSTEM, _QUESTION]):
            self._sample(opening)

    def _sample(self, messages: list[dict[str, str]]) -> None:
        """See on a conversation whether turns are rendered alike wherever they stand, and whether ids of parts are
        those of the whole."""
        for turn in range(1, 6):
            text = self.render(messages)
            reply = {"role": "assistant", "content": f"I say {turn}."}
            told = _Told(Prompt(text + reply["content"], []), reply["content"], len(messages), turn)
            messages = [*messages, reply, {"role": "user", "content": f"Round {turn}.\n\nWhat do you say now?"}]
            try:
                short, whole = self._following(told, messages), self.render(messages)
            except RefusedError:
                self._flat = False
                return
            if short is None or whole != told.prompt.text + short:
                self._flat = False
            if whole.startswith(told.prompt.text) and whole.startswith(self._boundaries, len(told.prompt.text)):
                parts = told.prompt.text, whole[len(told.prompt.text) :]
                if [i for part in parts for i in self.encode(part)] != self.encode(whole):
                    self._appends = False


def _folded(messages: Messages) -> Messages:
    """The system message at the head of the first user message, for templates that know no system role."""
    system, *rest = messages
    if rest and rest[0]["role"] == "user":
        first = {"role": "user", "content": f"{system['content']}\n\n{rest[0]['content']}"}
        return [first, *rest[1:]]
    return [{"role": "user", "content": system["content"]}, *rest]


@lru_cache(maxsize=16)
def _tokenizer(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        hint = 'pip install "mas-eval-harness[vllm]" brings it, or: pip install transformers'
        raise SetupError("counting tokens needs the package transformers", hint=hint) from error
    try:
        return AutoTokenizer.from_pretrained(name)
    except Exception as error:  # the package raises dozens of kinds
        message = f"the tokenizer {name!r} cannot be loaded: {' '.join(str(error).split())[:500]}"
        raise SetupError(message, hint="Give a folder with tokenizer.json, or a name on the hub.") from error


def count_tokens(name: str, text: str) -> int:
    """How many tokens a text is to a tokenizer, loaded once. Raises `SetupError`."""
    return len(_tokenizer(name).encode(text, add_special_tokens=False))
