"""What people who know lm-eval's command line give, and what it is called here. Loaded for messages alone.

The extension `lm_eval` plays lm-eval's tasks; these words are wrong without it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PAGE: Final = "docs/how-to/lm_eval.md"
_TASK_KEYS: Final = ("apply_chat_template", "fewshot_as_multiturn", "include_path", "system_instruction", "metadata")
OPTIONS: Final[Mapping[str, str]] = {
    "tasks": "Name a spec with --spec; `harness list specs` lists them. A spec plays a task of lm-eval with "
    "`task: {use: lm_eval, task: NAME}`",
    "num_fewshot": "It is a parameter of tasks that have examples: --set task.num_fewshot=N",
    "batch_size": "Engines choose it; --max_concurrency bounds the requests in flight",
    "max_batch_size": "Engines choose it; --max_concurrency bounds the requests in flight",
    "device": "Engines choose it, by their --model_args",
    "generation_kwargs": "A spec has `generation_kwargs:`, which --set generation_kwargs.temperature=0.7 changes",
    "gen_kwargs": "A spec has `generation_kwargs:`, which --set generation_kwargs.temperature=0.7 changes",
    "write_out": "`harness show --spec NAME --case 0` prints prompts",
    "check_integrity": "`harness validate SPEC` checks a spec",
    "confirm_run_unsafe_code": "--allow_code_execution lets programs of models run",
    "wandb_args": "`harness export RUN --to wandb` sends a run",
    "hf_hub_log_args": "`harness export RUN --to hub` sends a run",
    **{name: f"It is a key of `task: {{use: lm_eval, …}}`: --set task.{name}=…" for name in _TASK_KEYS},
}
"""Option of lm-eval → what stands in its place."""
_SERVER: Final = "A server is reached by openai: --model openai --model_args base_url=http://HOST:PORT/v1,model=NAME"
ENGINES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("hf", "hf-auto", "huggingface"),
        "Models of Hugging Face run on vllm: --model vllm --model_args pretrained=NAME. A small one without a GPU is "
        "--model tiny",
    ),
    **dict.fromkeys(("local-completions", "local-chat-completions", "sglang", "gguf", "ggml"), _SERVER),
    **dict.fromkeys(
        ("openai-completions", "openai-chat-completions"), "It is called openai: --model openai --model_args model=NAME"
    ),
    "dummy": "It is called mock",
}
"""Model of lm-eval → the engine that stands in its place."""
SHARES: Final = "A share of all cases, as lm-eval has it, is not possible: give how many."
"""What to say of a `--limit` below 1."""


def of_option(name: str) -> str | None:
    """What stands in place of an option of lm-eval; None for others. `name`: without dashes."""
    return f"{OPTIONS[name]} ({PAGE})." if name in OPTIONS else None


def of_engine(name: str) -> str | None:
    """What stands in place of a model of lm-eval; None for others."""
    return f"{ENGINES[name]} ({PAGE})." if name in ENGINES else None
