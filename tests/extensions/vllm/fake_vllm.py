"""A package that is called vllm and has the names that the engine uses, to fail in ways that a real one would."""

from pathlib import Path

from harness.extensions.vllm.vllm import PASSED

FAILS = """
        import os, subprocess, sys
        print("by print"); print("by print", file=sys.stderr)
        os.write(1, b"by C++\\n")
        subprocess.run([sys.executable, "-c", "raise ValueError('No available memory for the cache blocks.')"])
        raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
"""

ASYNC_LLM = """
class AsyncLLM:
    @classmethod
    def from_engine_args(cls, engine_args, *, usage_context=None, stat_loggers=None):
        {start}
"""

SAMPLING = """
class RequestOutputKind:
    FINAL_ONLY = 2

class SamplingParams:
    def __init__(self, **words): ...

class StructuredOutputsParams(SamplingParams): ...
"""


def make(folder: Path, version: str = "0.32.0", *, device: str = "cuda", without: str = "", start: str = FAILS) -> Path:
    """Write the package into `folder`, which is to stand on the path.

    Args:
        folder: a new folder.
        version: what it says it is.
        device: what it finds to run on.
        without: an engine argument that it lacks, or the name FINAL_ONLY.
        start: the body of `AsyncLLM.from_engine_args`.
    """
    names = [name for name in (*PASSED, "model", "disable_log_stats", "kv_cache_memory_bytes") if name != without]
    arguments = "".join(f"    {name}: object = None\n" for name in names)
    files = {
        "__init__.py": f"__version__ = {version!r}\n",
        "engine/arg_utils.py": f"from dataclasses import dataclass\n@dataclass\nclass AsyncEngineArgs:\n{arguments}",
        "inputs.py": "def tokens_input(ids): return ids\n",
        "sampling_params.py": SAMPLING.replace("FINAL_ONLY", "NO_MORE" if without == "FINAL_ONLY" else "FINAL_ONLY"),
        "usage/usage_lib.py": "class UsageContext:\n    LLM_CLASS = 1\n",
        "v1/engine/exceptions.py": "class EngineDeadError(Exception): ...\n",
        "v1/engine/async_llm.py": ASYNC_LLM.format(start=start),
        "platforms/__init__.py": f"from .interface import Platform\ncurrent_platform = Platform({device!r})\n",
        "platforms/interface.py": (
            "class Platform:\n    def __init__(self, device_type): self.device_type = device_type\n"
            "    def is_cpu(self): return False\n"
        ),
    }
    for name, text in files.items():
        (folder / "vllm" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "vllm" / name).write_text(text)
    return folder
