"""How models mark what is no part of what they say: thoughts, ends of turns, frames of a chat template.

Data, with where each mark is documented. `thoughts` and `text_tool_calls` read these tables; a new dialect is a line.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple


class Marks(NamedTuple):
    """A pair of marks, as models write them, and where they are documented."""

    opening: str
    closing: str
    documented: str


ELEMENTS: dict[str, str] = {
    "think": "huggingface.co/deepseek-ai/DeepSeek-R1; Qwen3, GLM-4.5 and most others",
    "thinking": "docs.anthropic.com, Let Claude think",
    "thought": "EXAONE Deep: huggingface.co/LGAI-EXAONE/EXAONE-Deep-32B",
    "longcat_think": "huggingface.co/meituan-longcat/LongCat-Flash-Thinking",
    "scratch_pad": "Hermes: github.com/NousResearch/Hermes-Function-Calling, its goal-oriented prompt",
    "reflection": "Reflection-Llama: huggingface.co/mattshumer/Reflection-Llama-3.1-70B",
    "details": "folded text of HTML, in which Open WebUI keeps reasoning: docs.openwebui.com, Reasoning Models",
    **dict.fromkeys(
        ("thoughts", "reasoning", "scratchpad", "analysis", "rationale", "inner_monologue"),
        "asked for by prompts: docs.anthropic.com, Use XML tags",
    ),
}
"""Names of elements that hold thoughts → where they are documented."""
NEVER_CLOSED = ("think", "thinking", "thought", "longcat_think")
"""Those that hold thoughts even if a tag is missing: chat templates write the opening one, and replies are cut."""
THOUGHTS: tuple[Marks, ...] = (
    Marks("[THINK]", "[/THINK]", "Magistral: huggingface.co/mistralai/Magistral-Small-2507"),
    Marks("◁think▷", "◁/think▷", "Kimi-VL-Thinking: huggingface.co/moonshotai/Kimi-VL-A3B-Thinking; SGLang, Kimi"),
    Marks("<seed:think>", "</seed:think>", "Seed-OSS: huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct"),
    Marks("<|begin_of_thought|>", "<|end_of_thought|>", "OpenThinker, Sky-T1: huggingface.co/open-thoughts"),
    Marks("<|START_THINKING|>", "<|END_THINKING|>", "huggingface.co/CohereLabs/command-a-reasoning-08-2025"),
    Marks("<|inner_prefix|>", "<|inner_suffix|>", "the chat template of Apertus-8B-Instruct-2509"),
    Marks("<|channel>", "<channel|>", "Gemma 4: ai.google.dev, Gemma formatting; SGLang, gemma4_detector.py"),
    Marks("<unused94>", "<unused95>", "MedGemma: huggingface.co/google/medgemma-27b-text-it"),
    Marks("Here is my thought process:", "Here is my response:", "huggingface.co/ibm-granite/granite-3.2-8b-instruct"),
    Marks("Here's my thought process:", "Here's my response:", "huggingface.co/ibm-granite/granite-3.2-8b-instruct"),
)
"""Marks that hold thoughts, also where one of the two is missing."""

FRAMES: tuple[Marks, ...] = (
    Marks("<|begin_of_solution|>", "<|end_of_solution|>", "OpenThinker, Sky-T1: huggingface.co/open-thoughts"),
    Marks("<|START_RESPONSE|>", "<|END_RESPONSE|>", "Command A Reasoning: docs.cohere.com, its chat template"),
    Marks("<|START_TEXT|>", "<|END_TEXT|>", "Command A: docs.cohere.com, its chat template"),
    Marks("<|begin_of_box|>", "<|end_of_box|>", "GLM-4.5V: huggingface.co/zai-org/GLM-4.5V"),
)
"""Marks around what is said: they are left out, and what they hold stays."""

ENDS: dict[str, str] = {
    "<|im_end|>": "ChatML: Qwen, Hermes, SmolLM and others",
    "<|im_start|>": "ChatML: another turn",
    "<|eot_id|>": "Llama 3: llama.com, model cards and prompt formats",
    "<|eom_id|>": "Llama 3.1, before a result of a tool",
    "<|start_header_id|>": "Llama 3: another turn",
    "<|eot|>": "Llama 4",
    "<|end_of_text|>": "Llama 3, Granite",
    "<|endoftext|>": "GPT-2, Qwen, GLM",
    "<|end|>": "Phi-3 and Phi-4-mini",
    "<|return|>": "gpt-oss: the harmony response format",
    "<end_of_turn>": "Gemma 2 and 3: ai.google.dev, Gemma formatting",
    "<start_of_turn>": "Gemma: another turn",
    "<turn|>": "Gemma 4",
    "<eos>": "Gemma",
    "<|user|>": "GLM, Phi-3, Zephyr: another turn",
    "<|observation|>": "GLM-4: a result of a tool",
    "<｜end▁of▁sentence｜>": "DeepSeek",
    "<｜User｜>": "DeepSeek: another turn",
    "<|END_OF_TURN_TOKEN|>": "Command R and A",
    "[|endofturn|]": "EXAONE",
    "[e~[": "MiniMax-M2",
    "<seed:eos>": "Seed-OSS",
}
"""Tokens that end a turn, or begin another one → whose they are. What follows one in a reply was not asked for."""
_STRICKEN = r"</s>(?=\s*(?:\Z|<))"
"""Llama 2's and Mistral's: also the end of an element of HTML."""
END = re.compile("|".join([*map(re.escape, ENDS), _STRICKEN]))
_OWN_TURN = (
    r"<\|im_start\|>\s{0,3}assistant(?!\w)", r"<\|start_header_id\|>\s{0,3}assistant\s{0,3}<\|end_header_id\|>",
    r"<\|assistant\|>", r"<start_of_turn>\s{0,3}model(?!\w)", r"<\|turn>\s{0,3}model(?!\w)", r"<\|start\|>assistant",
    r"<｜Assistant｜>", r"<\|START_OF_TURN_TOKEN\|>\s{0,3}<\|CHATBOT_TOKEN\|>", r"\[\|assistant\|\]",
    r"<s>(?![^<]{0,200}</s>)", r"<bos>", r"<\|begin_of_text\|>", r"<｜begin▁of▁sentence｜>",
)  # fmt: skip
BEGINNING = re.compile(rf"\A(?:\s*+(?:{'|'.join([*_OWN_TURN, *map(re.escape, ENDS)])}))++\s*+")
"""What a chat template writes before a reply."""
FRAME = re.compile(
    "|".join([*(re.escape(m) for pair in FRAMES for m in pair[:2]), r"<\|(?:start|channel|message|constrain|call)\|>"])
)
"""Marks of frames, and those of harmony that are in no header."""

# ------------------------------------------------------------------------------------------------- harmony
_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]{0,200}+))?<\|channel\|>(?P<channel>[^<]{0,200}+)"
    r"(?:<\|constrain\|>[^<]{0,40}+)?<\|message\|>"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_RECIPIENT = re.compile(r"to=([\w.-]{1,100})")
_BARE_ANALYSIS = re.compile(r"\s*+analysis(?=[A-Z\"'(])")
"""A channel's name without its special tokens, which some servers leave out."""
_BARE_CALL = re.compile(r"assistantcommentary to=([\w.-]{1,100})\s{0,3}(?:json|code)?\s{0,3}(?=\{)")
_BARE_FINAL = "assistantfinal"


def of_channels(text: str) -> str:
    """What a reply in the harmony format of gpt-oss says: without its channel `analysis`, a call in `commentary` as
    Hermes writes calls. Any other text as it is. Source: the harmony response format."""
    if _BARE_ANALYSIS.match(text):
        at = text.rfind(_BARE_FINAL)
        if at >= 0:
            return text[at + len(_BARE_FINAL) :]
        call = _BARE_CALL.search(text)
        return "" if call is None else _as_call(call[1], text[call.end() :])
    header = _HEADER.search(text) if "<|channel|>" in text else None
    if header is None:
        return text
    before = text[: header.start()]
    said = [] if _MESSAGE_END.search(before) else [before]  # its own header was part of the prompt
    while header is not None:
        stop = _MESSAGE_END.search(text, header.end())
        end = stop.start() if stop else len(text)
        body, about = text[header.end() : end], f"{header['role'] or ''} {header['channel']}"
        if (to := _RECIPIENT.search(about)) is not None and "analysis" not in about:
            said.append(_as_call(to[1], body))
        elif "analysis" not in about:
            said.append(body)
        header = _HEADER.search(text, end)
    return "\n".join(part for part in said if part.strip())


def thought_of_channels(text: str) -> tuple[str, str] | None:
    """(what a reply's channel `analysis` says, what the reply says) in the harmony format; None for any other text."""
    if _BARE_ANALYSIS.match(text) and (_BARE_FINAL in text or _BARE_CALL.search(text)):
        return _BARE_ANALYSIS.sub("", text, count=1).partition(_BARE_FINAL)[0], of_channels(text)
    if not text.startswith(("<|channel|>", "<|start|>")):
        return None
    thoughts, header = [], _HEADER.search(text)
    while header is not None:
        stop = _MESSAGE_END.search(text, header.end())
        end = stop.start() if stop else len(text)
        if "analysis" in header["channel"]:
            thoughts.append(text[header.end() : end])
        header = _HEADER.search(text, end)
    return ("\n".join(thoughts), of_channels(text)) if thoughts else None


def _as_call(recipient: str, body: str) -> str:
    if not body.lstrip().startswith("{"):
        return body
    name = json.dumps(recipient.removeprefix("functions."))
    return f'<tool_call>{{"name": {name}, "arguments": {body.strip()}}}</tool_call>'
