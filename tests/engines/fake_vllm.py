"""A package that is called vllm and has the names that the engine uses, to fail in ways that a real one would."""

from pathlib import Path

from harness.engines._vllm_version import PASSED, USED

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
    async def generate(self, prompt, sampling_params, request_id, *, data_parallel_rank=None): ...
    async def get_supported_tasks(self): ...
    def get_tokenizer(self): ...
    async def sleep(self, level=1): ...
    async def wake_up(self): ...
    def shutdown(self): ...
"""


def make(folder: Path, version: str = "0.32.0", *, device: str = "cuda", without: str = "", start: str = FAILS) -> Path:
    """Write the package and its metadata into `folder`, which is to stand on the path.

    Args:
        folder: a new folder.
        version: what it says it is.
        device: what it finds to run on.
        without: an engine argument that it lacks.
        start: the body of `AsyncLLM.from_engine_args`.
    """
    names = [name for name in (*PASSED, "model", "disable_log_stats", "kv_cache_memory_bytes") if name != without]
    arguments = "".join(f"    {name}: object = None\n" for name in names)
    sampling = "".join(f"    {name} = None\n" for name in USED["vllm.sampling_params:SamplingParams"])
    files = {
        "__init__.py": "",
        "engine/arg_utils.py": f"from dataclasses import dataclass\n@dataclass\nclass AsyncEngineArgs:\n{arguments}",
        "usage/usage_lib.py": "class UsageContext:\n    LLM_CLASS = 1\n",
        "v1/engine/async_llm.py": ASYNC_LLM.format(start=start),
        "v1/engine/exceptions.py": "class EngineDeadError(Exception): ...\n",
        "inputs.py": "def tokens_input(prompt): ...\n",
        "sampling_params.py": (
            f"class SamplingParams:\n{sampling}"
            "class StructuredOutputsParams:\n    json = choice = regex = grammar = None\n"
            "class RequestOutputKind:\n    FINAL_ONLY = 1\n"
        ),
        "platforms/__init__.py": f"from .interface import Platform\ncurrent_platform = Platform({device!r})\n",
        "platforms/interface.py": (
            "class Platform:\n    def __init__(self, device_type): self.device_type = device_type\n"
            "    def is_cpu(self): return False\n"
        ),
    }
    for name, text in files.items():
        (folder / "vllm" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "vllm" / name).write_text(text)
    about = folder / f"vllm-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    return folder
