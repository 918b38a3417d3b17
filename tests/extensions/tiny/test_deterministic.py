"""What `deterministic` sets, and the folder for vLLM, as far as neither a model nor transformers is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api.errors import SetupError
from harness.extensions.openai.openai import OpenAI
from harness.extensions.tiny import folder
from harness.extensions.tiny.tiny import Tiny


def test_tiny_answers_one_request_at_a_time() -> None:
    assert (Tiny().width, Tiny(slots=4).width, Tiny(deterministic=True).width) == (8, 4, 1)
    with pytest.raises(SetupError, match="slots=4 is more"):
        Tiny(deterministic=True, slots=4)
    assert Tiny(deterministic=True).identity(location=False) != Tiny().identity(location=False)


def test_a_server_is_asked_for_what_it_offers() -> None:
    llama = OpenAI(model="m", structured="llama.cpp", deterministic=True, extra_body={"top_k": 1})
    assert (llama.max_connections, llama.extra_body) == (1, {"cache_prompt": False, "top_k": 1})
    assert OpenAI(model="m", deterministic=True).max_connections > 1
    with pytest.raises(SetupError, match="needs seeds"):
        OpenAI(model="m", deterministic=True, send_seed=False)


def test_a_folder_that_is_something_else_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SetupError, match="is there, and is no model"):
        folder.make(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert folder.make(tmp_path) == tmp_path, "it is there: nothing is made again"
