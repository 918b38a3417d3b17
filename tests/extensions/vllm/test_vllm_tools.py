"""Tools with vLLM: what its parsers read, what a chat template writes, and what the tiny model is made to call."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.api import Thread
from harness.api.errors import SetupError
from harness.engines.chat_tokens import ChatTokens
from harness.extensions.vllm._vllm_reasoning import vllm_parser
from harness.extensions.vllm._vllm_tools import call_reader
from harness.extensions.vllm.vllm import VLLM
from harness.runtime.call_messages import extended, messages_of
from tests.conftest import Driven, request
from tests.helpers.tiny_model import make_tokenizer

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # what vLLM's dependencies say while they are imported
]

HERMES = (
    "{% if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}"
    "{{ message['content'] }}"
    "{% for call in message['tool_calls'] or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Calls as Hermes and Qwen write them."""
SEND = {
    "name": "send_message",
    "description": "Sends.",
    "parameters": {"type": "object", "properties": {"target_id": {"type": "string"}, "content": {"type": "string"}}},
}
CALL = '<tool_call>\n{"name": "send_message", "arguments": {"target_id": "1", "content": "hi"}}\n</tool_call>'


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tools")
    make_tokenizer(folder, HERMES)
    return AutoTokenizer.from_pretrained(folder)


def test_a_named_parser_reads_calls_and_leaves_what_is_none(tokenizer: Any) -> None:
    read = call_reader("hermes", tokenizer, "tiny")
    assert read is not None
    text, calls = read(f"I tell it.{CALL}\n{CALL}", [SEND])
    assert text == "I tell it."
    arguments = json.dumps({"target_id": "1", "content": "hi"})
    assert calls == 2 * [{"id": "", "name": "send_message", "arguments": arguments}]
    for broken in ("Nothing to do.", '<tool_call>{"name": "send', "<tool_call>[1, 2]</tool_call>", ""):
        assert read(broken, [SEND]) == (broken, None)


def test_no_parser_and_an_unknown_one(tokenizer: Any) -> None:
    assert call_reader(None, tokenizer, "tiny") is None
    with pytest.raises(SetupError, match="vLLM has no tool_parser 'hermse'") as caught:
        call_reader("hermse", tokenizer, "tiny")
    assert "Did you mean hermes" in str(caught.value.hint)


def test_the_template_gets_the_tools_and_a_turn_continues_the_ids_of_the_last(tokenizer: Any) -> None:
    chat, thread = ChatTokens(tokenizer), Thread()
    thread.add("user", "Round 1.")
    first = chat.prompt(thread, "", [SEND])
    assert '"name": "send_message"' in first.text and "Sends." in first.text
    generated = [*tokenizer.encode(CALL, add_special_tokens=False), tokenizer.eos_token_id]
    _, answer = chat.read(thread, first, generated, special=True)
    assert answer == CALL
    function = {"name": "send_message", "arguments": '{"target_id": "1", "content": "hi"}'}
    thread.add("assistant", "", tool_calls=[{"id": "a", "type": "function", "function": function}])
    thread.add("tool", "sent to Agent-1", tool_call_id="a")
    second = chat.prompt(thread, "", [SEND])
    assert second.text.startswith(first.text + CALL) and second.text.endswith(
        "sent to Agent-1<|im_end|>\n<|im_start|>assistant\n"
    )
    assert second.ids[: len(first.ids) + len(generated) - 1] == [*first.ids, *generated[:-1]]
    assert chat.appended == 1 and second.ids == tokenizer.encode(second.text, add_special_tokens=False)
    assert thread.messages[1]["tool_calls"][0]["function"] == function, "the conversation itself is left alone"


def test_special_tokens_stay_where_calls_may_stand_in_them(tokenizer: Any) -> None:
    chat, thread = ChatTokens(tokenizer), Thread()
    thread.add("user", "Round 1.")
    prompt = chat.prompt(thread, "", [SEND])
    generated = tokenizer.encode("<|im_start|>call<|im_end|>", add_special_tokens=False)
    assert chat.read(thread, prompt, generated, special=True)[1] == "<|im_start|>call"
    assert chat.read(thread, prompt, generated)[1] == "call"


def test_the_engine_reads_what_its_model_calls_and_goes_on_behind_the_answers(vllm_engine: Driven) -> None:
    made = (
        r'<tool_call>\{"name": "send_message", "arguments": \{"target_id": "1", "content": "[a-z]{3}"\}\}</tool_call>'
    )
    asking = replace(request("Round 1.", constraint={"regex": f"So\\.{made}{made}"}, max_tokens=200), tools=(SEND,))
    answer = vllm_engine.run(vllm_engine.engine.complete(asking))
    assert answer.text == "So." and answer.tool_calls is not None and len(answer.tool_calls) == 2
    for call in answer.tool_calls:
        assert (call["id"], call["name"], len(json.loads(call["arguments"])["content"])) == ("", "send_message", 3)
    thread = asking.thread
    calls = messages_of(answer.tool_calls, len(thread.messages))
    thread.add("assistant", answer.text, tool_calls=calls)
    for call in calls:
        thread.add("tool", "sent", tool_call_id=call["id"])
    plain = vllm_engine.run(vllm_engine.engine.complete(replace(asking, id="again", constraint=None)))
    assert plain.input_tokens > (answer.input_tokens or 0) and plain.tool_calls is None


def test_the_thought_before_a_call_is_in_the_next_prompt(vllm_engine: Driven, tokenizer: Any, tiny_model: Path) -> None:
    """As servers want it, and as the templates of reasoning models write it until the calls are answered."""
    engine = vllm_engine.engine
    assert isinstance(engine, VLLM)
    without, parser = engine._chat, vllm_parser("deepseek_r1", tokenizer, str(tiny_model))
    engine._chat = ChatTokens(tokenizer, reasoning=parser)
    written = f"<think>It is my turn\\.</think>{re.escape(CALL)}"
    asking = replace(request("Round 1.", constraint={"regex": written}, max_tokens=200), tools=(SEND,))
    try:
        answer = vllm_engine.run(engine.complete(asking))
        thread = asking.thread
        message = extended({"content": answer.text}, answer, len(thread.messages), engine.model)
        thread.add("assistant", **message)
        prompt = engine._chat.prompt(thread, "", [SEND])
    finally:
        engine._chat = without
    assert (answer.text, answer.reasoning) == ("", "It is my turn.") and answer.tool_calls
    assert f"<think>It is my turn.</think>{CALL}" in prompt.text
    other = extended({"content": answer.text}, answer, len(thread.messages), "another model")
    assert "reasoning_content" not in other and other["tool_calls"]
