"""Conversations as token ids: rendered by the model's chat template, tokenized only where they are new."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from harness.api import Facts, Thread
from harness.api.errors import RefusedError, SetupError
from harness.engines.likelihoods import LikelihoodRequest
from harness.engines.reasoning import split_reasoning
from harness.engines.text_tokens import Pair, TextTokens, fitted
from harness.engines.tool_calls import offered, with_objects

Messages = Sequence[dict[str, Any]]
Encode = Callable[..., list[int]]
"""(text, whether to add special tokens, by default not) → ids."""
Decode = Callable[[Sequence[int]], str]

_RECENT = 1_000_000
"""Token ids of recent texts that are kept."""

_numbers = count()
_SYSTEM = {"role": "system", "content": "Be brief."}
_QUESTION = {"role": "user", "content": "Hello."}
_TEXTS = (
    "",
    " A blank first, two  between, and one last ",
    "Don't say 12,345.67; it's naïve — 日本語, Ünïcode ﬁ, 👩‍🚀!\r\n\r\n\n\tdef f(x):\n\n        return x**2\n",
    '{"messages": {"Bob": "hi\\n"}}<think>\nhm\n</think>\n\nYes</s> <s>[INST] <0x0A>▁Ġ',
)
"""Texts on which a tokenizer must agree with the library that it is built on, beside the sample conversations."""


_METHODS = ("__call__", "encode", "_encode_plus", "decode", "_decode")
_BASES = "transformers.tokenization_utils"
_AROUND = "vllm.tokenizers.hf"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation and its token ids."""

    text: str
    ids: list[int]


@dataclass(frozen=True, slots=True)
class _History:
    """What a thread's memo holds after a reply.

    Attributes:
        prompt: what the model replied to.
        answer: the reply.
        ids: the reply's ids, as generated.
        messages: how many messages come before the reply.
        replies: how many replies the thread has had.
    """

    prompt: Prompt
    answer: str
    ids: list[int]
    messages: int
    replies: int

    @property
    def text(self) -> str:
        """The conversation up to and with the reply."""
        return self.prompt.text + self.answer


class ChatTokens:
    """A Hugging Face tokenizer and its chat template.

    Tokenizing takes most of a client's time, so no part of a thread is tokenized twice. `read` keeps the ids of the
    prompt and those that were *generated*: encoding the reply's text may give others, and only the generated ones are
    in the engine's prefix cache. `prompt` appends to them where that is safe: where the template's new rendering starts
    with the old one and the reply, letter for letter, and the new part opens with a special token, at which tokenizers
    split whatever comes before. Templates that trim, rewrite or drop earlier turns fail this test, and the whole
    conversation is tokenized at every turn.

    Nor is a turn rendered twice. A sample shows once whether a template writes a turn without regard to its place in
    the conversation. If so, the reply and the new messages are rendered behind a fixed first question, and the cost of
    a turn does not grow with the conversation. After 1, 2, 4, 8, … replies the whole is rendered all the same; the
    first difference ends the shortcut for good.

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
        from cachetools import LRUCache, cached

        self._tokenizer = tokenizer
        self._template, self._kwargs = template, dict(template_kwargs or {})
        self._reasoning = reasoning
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._special_ids = frozenset(i for i, token in added.items() if token.special)
        self._boundaries = tuple(token.content for token in added.values() if token.special)
        self._key = f"tokens/{next(_numbers)}"
        self._fold_system = self._flat = self._appends = False
        self._opening = ""
        self._refusal: SetupError | None = None  # why there are no chats
        self.appended = self.encoded = 0
        self.encode, self.decode = _functions(tokenizer)
        # A thread often opens like another one (in each repeat, for each member of an ensemble), and many protocols ask
        # every agent the same in a later turn. (A tuple of numbers costs garbage collection nothing.)
        recent: LRUCache[Any, tuple[int, ...]] = LRUCache(_RECENT, getsizeof=len)
        self._ids = cached(recent)(lambda text: tuple(self.encode(text)))
        self._whole_ids = cached(recent, key=lambda text, special: (text, special))(
            lambda text, special: tuple(self.encode(text, special))
        )
        self.texts = TextTokens(tokenizer, lambda text, special: [*self._whole_ids(text, special)])
        self._try_out()

    # ------------------------------------------------------------------------------ text → ids

    def prompt(self, thread: Thread, prefill: str = "", tools: Sequence[Facts] = ()) -> Prompt:
        """The thread as a prompt for its next reply, which begins with `prefill`, of a model that may call `tools`.

        With tools the whole conversation is rendered at every turn: templates may write calls of earlier turns in
        another way than later ones.

        Raises:
            RefusedError: if the template refuses these messages.
            SetupError: if the model has no template that can be used.
        """
        if not thread.chat or prefill or self._refusal is not None:
            return self._whole(thread, self._conversation_text(thread, prefill))
        history: _History | None = thread.memo.get(self._key)
        short = None if history is None or not self._flat or tools else self._short(history, thread.messages)
        if history is not None and short is not None and history.replies & (history.replies - 1):
            return self._append(history, short)
        text = self.render(thread.messages, tools=tools)
        if history is not None:
            before = history.text
            if short is not None and text != before + short:
                self._flat = False
            new = self._behind(before, text)
            if new is not None:
                return self._append(history, new)
        return self._whole(thread, text)

    def _whole(self, thread: Thread, text: str) -> Prompt:
        """A prompt that is tokenized again. A chat template writes all special tokens itself; where a reply counts as
        written the ids are those of lm-eval, which adds the first one to a template that lacks it."""
        self.encoded += 1
        return Prompt(text, self.texts.encode(text) if thread.verbatim else [*self._ids(text)])

    def _append(self, history: _History, new: str) -> Prompt:
        self.appended += 1
        return Prompt(history.text + new, [*history.prompt.ids, *history.ids, *self._ids(new)])

    def _short(self, history: _History, messages: Messages) -> str | None:
        """The text behind the last reply, without rendering the history; None if that is uncertain."""
        reply, *new = messages[history.messages :] or [{}]
        if not new or reply != {"role": "assistant", "content": history.answer}:
            return None
        try:
            return self._behind(self._opening + history.answer, self.render([_QUESTION, reply, *new]))
        except RefusedError:  # it may accept the whole
            return None

    def _behind(self, before: str, text: str) -> str | None:
        """What follows `before` in `text`, if it opens with a special token."""
        if text.startswith(before) and text.startswith(self._boundaries, len(before)):
            return text[len(before) :]
        return None

    def render(self, messages: Messages, begun: bool = False, tools: Sequence[Facts] = ()) -> str:
        """The conversation as the model sees it, up to where its reply begins; `begun`: its last message is the
        beginning of the reply.

        Raises:
            RefusedError: if the template refuses these messages.
        """
        if self._fold_system and messages and messages[0]["role"] == "system":
            messages = _folded(messages)
        kwargs = self._kwargs if self._template is None else {"chat_template": self._template, **self._kwargs}
        if tools:
            messages, kwargs = with_objects(messages), {"tools": offered(tools), **kwargs}
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not begun, continue_final_message=begun, **kwargs
            )
        except Exception as error:  # whatever a model's own Jinja code raises
            raise RefusedError(f"the model's chat template refuses the conversation: {error}") from error
        if not isinstance(text, str):
            raise RefusedError(f"{type(self._tokenizer).__name__} gives no text for a conversation")
        return text

    def pairs(self, request: LikelihoodRequest, limit: int) -> list[list[Pair]]:
        """For each continuation the pairs of which its log-likelihood is the sum: one, or one for each window.

        Raises:
            ContextLengthError: if a text does not fit into `limit` tokens.
            RefusedError, SetupError: as `prompt`.
        """
        if request.rolling:
            return [list(self.texts.windows(one.text, limit)) for one in request.continuations]
        asked = ""
        if any(one.context is None for one in request.continuations):
            asked = self._conversation_text(request.thread, request.prefill)
        pairs = []
        for one in request.continuations:
            context = one.context if isinstance(one.context, str) else asked
            if isinstance(one.context, tuple):
                messages = [dict(message) for message in one.context]
                context = self._chat_text(messages, begun=bool(messages) and messages[-1]["role"] == "assistant")
            pairs.append([fitted(self.texts.pair(context, one.text), limit)])
        return pairs

    def _conversation_text(self, thread: Thread, prefill: str) -> str:
        """The whole conversation as a text."""
        if not thread.chat:
            return thread.text + prefill
        begun = [{"role": "assistant", "content": prefill}] if prefill else []
        return self._chat_text([*thread.messages, *begun], begun=bool(begun))

    def _chat_text(self, messages: Messages, begun: bool) -> str:
        if self._refusal is not None:
            raise self._refusal
        return self.render(messages, begun)

    def forget(self, thread: Thread) -> None:
        """Note that the thread's next message is not the text that `read` returned."""
        thread.memo.pop(self._key, None)

    # ------------------------------------------------------------------------------ ids → text

    def read(
        self,
        thread: Thread,
        prompt: Prompt,
        generated: Sequence[int],
        text: str | None = None,
        constrained: bool = False,
        special: bool = False,
    ) -> tuple[str | None, str]:
        """(reasoning or None, answer) of a reply; the thread's next prompt continues its ids.

        Args:
            thread: the conversation, which does not hold the reply yet.
            prompt: its last prompt; a template may have opened the reasoning there.
            generated: the reply's ids.
            text: the reply's text where the engine cut it at a stop string; None: what the ids say.
            constrained: the reply was held to a form; without a reasoning parser the form begins with its first token,
                and tags of reasoning in it are content.
            special: whether the answer shows special tokens, but for the last one: calls of tools may be in them.
        """
        ids = list(generated)
        if ids and ids[-1] in self._special_ids:  # the end of the turn: the template writes its own
            ids.pop()
        plain = self._special_ids.isdisjoint(ids)
        full = self.decode(ids)
        visible = full
        if not plain and (special or self._reasoning is not None):
            visible = str(self._tokenizer.decode(ids, skip_special_tokens=False))
        reasoning, answer = None, (visible if special else full) if text is None else text
        if self._reasoning is not None:
            reasoning, answer = self._reasoning(visible if text is None else text)
        elif not constrained:
            reasoning, answer = split_reasoning(answer, opened=prompt.text.rstrip().endswith("<think>"))
        before: _History | None = thread.memo.pop(self._key, None)
        if self._appends and plain and answer == full:  # else the ids say more than the thread will
            replies = 1 if before is None else before.replies + 1
            thread.memo[self._key] = _History(prompt, answer, ids, len(thread.messages), replies)
        return reasoning, answer

    # ------------------------------------------------------------------------------ once

    def _try_out(self) -> None:
        """See that there is a template, and whether it takes a system message."""
        try:
            self._opening = self.render([_QUESTION])
        except RefusedError as error:
            lacks = "chat_template is not set" in str(error)
            self._refusal = SetupError(
                "the model has no chat template" if lacks else f"the model cannot be asked in chat form: {error}",
                hint="Give chat_template= a file with a Jinja chat template, take an instruction-tuned model, "
                "or prompts with chat: false.",
            )
            return
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
            history = _History(Prompt(text, []), reply["content"], [], len(messages), turn)
            before = history.text
            messages = [*messages, reply, {"role": "user", "content": f"Round {turn}.\n\nWhat do you say now?"}]
            try:
                short, whole = self._short(history, messages), self.render(messages)
            except RefusedError:
                self._flat = False
                return
            if short is None or whole != before + short:
                self._flat = False
            new = self._behind(before, whole)
            if new is not None and self.encode(before) + self.encode(new) != self.encode(whole):
                self._appends = False


def _owner(kind: type, name: str) -> str:
    """The module of the class that defines a method, behind the classes that vLLM derives from the model's."""
    own = (base.__module__ for base in kind.__mro__ if name in vars(base) and base.__module__ != _AROUND)
    return next(own, "")


def _functions(tokenizer: Any) -> tuple[Encode, Decode]:
    """The tokenizer's encoding and decoding, which add no special tokens and show none.

    For a short text the wrapper in `transformers` takes as long as the work itself. So these functions call the
    library below it, `tokenizers`, where the model's class overrides nothing and both agree on some texts.
    """

    def encode(text: str, special: bool = False) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=special))

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    fast: Any = getattr(tokenizer, "backend_tokenizer", None)
    overridden = [name for name in _METHODS if not _owner(type(tokenizer), name).startswith(_BASES)]
    if overridden or not hasattr(fast, "encode_batch_fast"):
        return encode, decode
    # As the wrapper sets it at every call, whatever the model's files ask for.
    fast.no_truncation()
    fast.no_padding()
    fast.encode_special_tokens = tokenizer.split_special_tokens

    def fast_encode(text: str, special: bool = False) -> list[int]:
        ids: list[int] = fast.encode_batch_fast([text], add_special_tokens=special)[0].ids  # also leaves out offsets
        return ids

    def fast_decode(ids: Sequence[int]) -> str:
        return str(fast.decode(ids, skip_special_tokens=True))

    for text in _TEXTS:
        ids = encode(text)
        special = fast_encode(text, True) == encode(text, True)
        if fast_encode(text) != ids or fast_decode(ids) != decode(ids) or not special:
            return encode, decode
    return fast_encode, fast_decode


def _folded(messages: Messages) -> Messages:
    """The system message at the head of the first user message, for templates that know no system role."""
    system, *rest = messages
    if rest and rest[0]["role"] == "user":
        first = {"role": "user", "content": f"{system['content']}\n\n{rest[0]['content']}"}
        return [first, *rest[1:]]
    return [{"role": "user", "content": system["content"]}, *rest]


def template_of(path: str | None) -> str | None:
    """The chat template in a file; None: no file. Raises `SetupError`."""
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SetupError(f"chat_template={path} cannot be read: {error}") from error


def tokenizer_facts(tokenizer: Any, template: str | None, limit: int) -> Facts:
    """What a run's record says about a tokenizer: its special tokens with their ids, the length of the context, and the
    chat template with its SHA-256, None if there is none.

    Args:
        tokenizer: a `transformers` tokenizer.
        template: the chat template in place of its own.
        limit: tokens of the context window.
    """
    own = getattr(tokenizer, "chat_template", None)
    text = template or (own.get("default") if isinstance(own, dict) else own)
    tokens = {
        kind: [getattr(tokenizer, f"{kind}_token", None), getattr(tokenizer, f"{kind}_token_id", None)]
        for kind in ("bos", "eos", "pad")
    }
    sha = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest() if text else None
    return {"tokens": tokens, "max_model_len": limit, "chat_template": text or None, "chat_template_sha256": sha}


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


def chat_tokens(name: str, template_kwargs: dict[str, Any] | None = None) -> ChatTokens:
    """A tokenizer with its own chat template. Raises `SetupError`."""
    return ChatTokens(_tokenizer(name), template_kwargs=template_kwargs)


def count_tokens(name: str, text: str) -> int:
    """How many tokens a text is to a tokenizer, loaded once. Raises `SetupError`."""
    return len(_tokenizer(name).encode(text, add_special_tokens=False))
