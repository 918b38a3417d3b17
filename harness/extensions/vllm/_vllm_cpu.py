"""Settings that vLLM needs on a machine without an accelerator."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api.errors import SetupError

_BIND, _THREADS, _CACHE = "VLLM_CPU_OMP_THREADS_BIND", "OMP_NUM_THREADS", "VLLM_CPU_KVCACHE_SPACE"


@dataclass(frozen=True)
class Machine:
    """What a CPU engine has to work with.

    Attributes:
        memory: bytes that are free.
        cores: processors that this process may run on.
        quota: processors' worth of time that its container may use; None: all of it.
        nodes: memory nodes, each of which vLLM gives to one worker.
        compiler: whether there is a C++ compiler.
        bf16: whether its processors have instructions for bfloat16.
    """

    memory: int
    cores: int
    quota: int | None = None
    nodes: int = 1
    compiler: bool = True
    bf16: bool = True


def choose(
    arguments: Mapping[str, Any], environment: Mapping[str, str], machine: Machine
) -> tuple[dict[str, Any], dict[str, str]]:
    """Settings with which vLLM works on this machine, wherever the user and the environment leave the choice.

    - Chunked prefill is off: a request with a seed (ours all have one) whose prompt is cut into chunks makes vLLM set
      its random generator back, which torch's generator for CPUs cannot do ("CPU Generator does not use offset"), and
      the engine dies of it. vLLM then makes a batch as long as the context window by itself.
    - Blocks of 32 tokens in place of 128: conversations share more of the prefix cache. 32 is what the kernels like.
    - A quarter of the free memory for the key-value cache, over all workers: vLLM itself asks for 92 % of all there is,
      and does not start where as little as 9 % is in use.
    - Threads: vLLM pins one to every core, whatever a container's quota is or `OMP_NUM_THREADS` says, and starts no
      second worker on one memory node. In these cases as many as there is time for, and not pinned.
    - float32 where the processors have no instructions for bfloat16, the type of most models: they would load for
      minutes, and answer at half the speed. Nothing is compiled there either, which is what takes the minutes.
    - No compilation where no compiler is.

    Returns:
        more engine arguments; variables for vLLM's processes.

    Raises:
        SetupError: the environment asks for batch invariance, of which vLLM's engine dies here at its first request.
    """
    if environment.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0"):
        hint = "Unset it; on a CPU --model_args …,deterministic=true gives the same replies again."
        raise SetupError("VLLM_BATCH_INVARIANT=1 needs a GPU: on a CPU vLLM dies of it at the first request", hint=hint)
    more: dict[str, Any] = {}
    variables: dict[str, str] = {}
    workers = math.prod(int(arguments.get(f"{kind}_parallel_size") or 1) for kind in ("tensor", "pipeline"))
    workers_everywhere = workers * int(arguments.get("data_parallel_size") or 1)
    if arguments.get("enable_chunked_prefill") is None:
        more["enable_chunked_prefill"] = False
    if arguments.get("block_size") is None and not arguments.get("enable_chunked_prefill"):
        more["block_size"] = 32
    if not any(arguments.get(name) for name in ("kv_cache_memory_bytes", "gpu_memory_utilization")) and (
        not environment.get(_CACHE)
    ):
        more["kv_cache_memory_bytes"] = machine.memory // 4 // workers_everywhere
    if not environment.get(_BIND):
        usable = min(machine.cores, machine.quota or machine.cores)
        if environment.get(_THREADS):
            variables[_BIND] = "nobind"
        elif usable < machine.cores or workers > machine.nodes:
            variables |= {_BIND: "nobind", _THREADS: str(max(1, (usable - 1) // workers_everywhere))}
    if arguments.get("dtype") in (None, "auto") and not machine.bf16:
        more["dtype"] = "float32"
    if arguments.get("enforce_eager") is None and not (machine.compiler and machine.bf16):
        more["enforce_eager"] = True
    return more, variables


@contextlib.contextmanager
def set_variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that begin meanwhile."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def choose_here(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """`choose`, for this machine and environment."""
    return choose(arguments, os.environ, machine())


def machine() -> Machine:
    """This machine, as vLLM sees it."""
    from vllm.utils.cpu_resource_utils import get_memory_node_info, get_visible_memory_node

    nodes = get_visible_memory_node() or [0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    memory = get_memory_node_info(nodes[0]).available_memory
    return Machine(memory, cores, _quota(), len(nodes), bool(compiler), _has_bf16())


def reasons(chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say beside settings that were chosen, where they change replies."""
    if "dtype" not in chosen:
        return ()
    return ("this CPU has no bfloat16 instructions; dtype=bfloat16 would load for minutes and run at half the speed",)


def _has_bf16(facts: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processors have instructions for bfloat16; also where the system does not say it."""
    try:
        text = facts.read_text()
    except OSError:
        return True
    lines = [line for line in text.splitlines() if line.lower().startswith(("flags", "features"))]
    return not lines or bool(set(lines[0].split()) & {"avx512_bf16", "amx_bf16", "bf16"})


def _quota(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """Processors' worth of time that a container may use."""
    try:
        most, period = map(int, limit.read_text().split())
        return max(1, most // period)
    except (OSError, ValueError):  # "max": as much as there is
        return None
