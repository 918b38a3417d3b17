"""Why vLLM does not start or has died, and what to do about it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ADVICE = (
    (r"bootstrapping phase|core initialization failed",
     'A script of your own must run the harness below `if __name__ == "__main__":`.'),
    (r"CPU Generator does not use offset",
     "Leave enable_chunked_prefill and max_num_batched_tokens out: on a CPU no prompt may be cut into chunks."),
    (r"estimated maximum model length is (\d+)",
     r"Give max_model_len=\1 or less, or more memory to the key-value cache (gpu_memory_utilization=; on a CPU "
     "VLLM_CPU_KVCACHE_SPACE=, in GiB)."),
    (r"(?:greater|larger) than the derived max_model_len|max_model_len .*(?:greater|larger)",
     "Give a smaller max_model_len=, or leave it out: then it is the model's own."),
    (r"max_num_batched_tokens .*(?:smaller|less) than max_model_len", "Leave max_num_batched_tokens out."),
    (r"No available memory for the cache|[Aa]vailable memory|[Ff]ree memory|out of memory|OutOfMemory|Cannot allocate"
     r"|cache blocks|DefaultCPUAllocator|bad_alloc|MemoryError",
     "Take a smaller or quantized model, a smaller max_model_len=, or several GPUs (tensor_parallel_size=). "
     "gpu_memory_utilization= is the share of memory that vLLM takes: raise it if the model does not fit, lower it if "
     "something else needs the memory."),
    (r"No space left on device|SIGBUS|shm_open|/dev/shm",
     "Shared memory is full: free /dev/shm, or start the container with a larger one (docker run --shm-size=8g)."),
    (r"SIGKILL|died unexpectedly|was killed by",
     "Most often memory has run out (see `dmesg`): then a smaller model, max_model_len= or max_num_seqs= helps."),
    (r"Address already in use|EADDRINUSE",
     "Another program has the port: end it, or take VLLM_PORT and MASTER_PORT out of the environment."),
    (r"gated|401 Client|403 Client|restricted|[Ii]nvalid.*token",
     "Ask for access on the model's page on the hub, then log in (`hf auth login`, or HF_TOKEN in the environment)."),
    (r"offline|outgoing traffic|couldn't connect|LocalEntryNotFound|the requested files|Connection ?error|Max retries",
     "The hub cannot be reached (HF_HUB_OFFLINE, or no network): give pretrained= a folder, or fetch the model first: "
     "hf download NAME."),
    (r"not a valid model identifier|Repository Not Found|404 Client|Invalid repository ID|not a local folder",
     "Give pretrained= a folder in Hugging Face's format, or a model's name on the hub."),
    (r"dtype", "Give dtype=auto, bfloat16, float16 or float32."),
    (r"divisible by tensor parallel|tensor_parallel_size|world size|device_count",
     "Give a tensor_parallel_size= that divides the model's attention heads, and no more than there are devices."),
    (r"trust_remote_code", "If you trust the model's code: trust_remote_code=true."),
    (r"architectures? .*not supported|not supported for now|model type",
     "This version of vLLM does not know the model: install a newer one, or serve it and use the engine openai."),
    (r"[Ss]leep mode", "Leave enable_sleep_mode out."),
    (r"compil|Inductor|g\+\+|Python\.h", "Give enforce_eager=true: then nothing is compiled."),
)  # fmt: skip


def advice(cause: str) -> str | None:
    """What to do about a root cause; None if only the cause itself helps."""
    for pattern, words in _ADVICE:
        if match := re.search(pattern, cause):
            return match.expand(words) if "\\1" in words else words
    return None


def killed_process(error: str, processes: Iterable[Any]) -> str | None:
    """Which process was ended by a signal, if one was.

    Args:
        error: the exception's text; vLLM puts exit codes into it where a process dies at its start.
        processes: the `multiprocessing.Process`es of an engine that did start.
    """
    exits = [(match[1], int(match[2])) for match in re.finditer(r"['\"]?([\w-]+)['\"]?: (-\d+)\b", error)]
    exits += [(process.name, process.exitcode) for process in processes if process.exitcode]
    for name, code in exits:
        if code < 0:
            has_name = -code in set(signal.Signals)  # most real-time signals have none
            return f"the process {name} was killed by {signal.Signals(-code).name if has_name else f'signal {-code}'}"
    return None


def not_a_model(pretrained: str) -> str | None:
    """What is wrong with a folder before anything is loaded; None for a name on the hub, and for what may be right."""
    path = Path(pretrained).expanduser()
    if path.is_dir():
        files = ("config.json", "params.json")
        if not any((path / name).is_file() for name in files) and not any(path.glob("*.gguf")):
            return f"pretrained={pretrained}: the folder holds no model (no config.json)"
        return None
    if not path.exists() and (pretrained.startswith((".", "/", "~")) or pretrained.count("/") > 1):
        return f"pretrained={pretrained}: there is no such folder"
    return None
