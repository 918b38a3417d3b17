#!/usr/bin/env python3
"""Whether versions of vLLM have every name, argument and field that the engine uses, read from their wheels.

    python .ci/check_vllm_versions.py                 # the oldest and the newest of the range that the package asks for
    python .ci/check_vllm_versions.py 0.19.0 0.34.0   # others
    python .ci/check_vllm_versions.py --all           # every version of the range, a wheel of 250 to 550 MB each

The wheels are those for NVIDIA GPUs. They are downloaded one after the other into a temporary folder, read and deleted;
nothing is installed, imported or run. Not part of every CI run.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.extensions.vllm._vllm_version import RANGE
from harness.extensions.vllm.vllm import PASSED

_SAMPLING = (
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "min_tokens", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "stop", "stop_token_ids", "ignore_eos", "bad_words", "logit_bias", "allowed_token_ids",
    "include_stop_str_in_output", "seed", "output_kind", "skip_clone", "detokenize", "structured_outputs",
    "skip_special_tokens", "spaces_between_special_tokens", "prompt_logprobs", "flat_logprobs",
    "skip_reading_prefix_cache",
)  # fmt: skip

USED: dict[str, tuple[str, ...]] = {
    "vllm.engine.arg_utils:AsyncEngineArgs": (*PASSED, "model", "disable_log_stats", "kv_cache_memory_bytes"),
    "vllm.usage.usage_lib:UsageContext": ("LLM_CLASS",),
    "vllm.v1.engine.async_llm:AsyncLLM": (
        "from_engine_args", "generate", "get_supported_tasks", "get_tokenizer", "sleep", "wake_up", "shutdown",
        "vllm_config", "model_config", "output_handler", "output_processor", "logger_manager", "log_stats",
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
    "vllm.platforms.interface:Platform": ("device_type", "is_cpu"),
    # Where the platform is a CPU.
    "vllm.utils.cpu_resource_utils:get_memory_node_info": (),
    "vllm.utils.cpu_resource_utils:get_visible_memory_node": (),
    "vllm.utils.cpu_resource_utils:MemoryNodeInfo": ("available_memory",),
    # Where a reasoning parser is named.
    "vllm.entrypoints.openai.chat_completion.protocol:ChatCompletionRequest": ("model", "messages", "tools"),
    "vllm.reasoning:ReasoningParserManager": ("get_reasoning_parser",),
    "vllm.reasoning.abs_reasoning_parsers:ReasoningParser": ("extract_reasoning",),
    # Where a tool parser is named.
    "vllm.tool_parsers:ToolParserManager": ("get_tool_parser", "tool_parsers", "lazy_parsers"),
    "vllm.tool_parsers.abstract_tool_parser:ToolParser.__init__()": ("tokenizer", "tools"),
    "vllm.tool_parsers.abstract_tool_parser:ToolParser.extract_tool_calls()": ("model_output", "request"),
    # Attributes of what it makes and hands back.
    "vllm.v1.engine.output_processor:OutputProcessor": ("log_stats",),
    "vllm.v1.metrics.loggers:StatLoggerManager": ("stat_loggers",),
    "vllm.v1.metrics.loggers:PrometheusStatLogger": (),
    "vllm.v1.metrics.loggers:StatLoggerBase": ("record", "log_engine_initialized", "log", "record_sleep_state"),
    "vllm.v1.metrics.stats:SchedulerStats": (
        "num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs", "kv_cache_usage", "prefix_cache_stats",
    ),
    "vllm.v1.metrics.stats:PrefixCacheStats": ("requests", "preempted_requests"),
    "vllm.config:VllmConfig": ("scheduler_config", "parallel_config", "model_config"),
    "vllm.config:SchedulerConfig": ("max_num_seqs",),
    "vllm.config:ParallelConfig": ("data_parallel_size",),
    "vllm.config:ModelConfig": ("max_model_len",),
    "vllm.outputs:RequestOutput": ("outputs", "num_cached_tokens", "prompt_token_ids", "prompt_logprobs"),
    "vllm.logprobs:FlatLogprobs": ("start_indices", "token_ids", "logprobs"),
    "vllm.outputs:CompletionOutput": ("text", "token_ids", "finish_reason", "stop_reason"),
}  # fmt: skip
"""module:name → what the engine uses of it; with `()` behind a name, the parameters that it must take."""
ENVIRONMENT = (
    "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_STREAM", "VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_KVCACHE_SPACE",
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
)  # fmt: skip
"""Variables that the engine or its documentation sets."""
PLATFORMS = [*(f"manylinux_2_{minor}_x86_64" for minor in range(17, 46)), "manylinux2014_x86_64", "manylinux1_x86_64"]


class Sources:
    """The Python files of one wheel, looked up by module and name."""

    def __init__(self, wheel: Path) -> None:
        self._archive = zipfile.ZipFile(wheel)
        self._names = frozenset(self._archive.namelist())

    def text(self, path: str) -> str:
        return self._archive.read(path).decode("utf-8") if path in self._names else ""

    @functools.cache  # noqa: B019 - one object a version, gone with the process
    def module(self, name: str) -> ast.Module | None:
        base = name.replace(".", "/")
        for path in (f"{base}.py", f"{base}/__init__.py"):
            if path in self._names:
                return ast.parse(self.text(path))
        return None

    def find(self, module: str, name: str, depth: int = 0) -> tuple[str, ast.AST] | None:
        """(module that defines it, its definition); follows imports from one module to another."""
        tree = self.module(module)
        if tree is None or depth > 8:
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                if node in _top(tree):
                    return module, node
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.find(self._source(module, node), alias.name, depth + 1)
        bound = (target for node in ast.walk(tree) for target in _targets(node))
        return (module, tree) if name in bound else None

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = f"{module.replace('.', '/')}/__init__.py" in self._names
        parts = module.split(".")[: None if package and node.level == 1 else -(node.level - package)]
        return ".".join([*parts, node.module] if node.module else parts)

    def members(self, module: str, kind: ast.ClassDef, depth: int = 0) -> set[str]:
        """Methods, fields and what methods set on `self`, those of the bases too."""
        names = {target for node in kind.body for target in _targets(node)}
        for node in ast.walk(kind):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                names.add(node.attr)
        for base in kind.bases if depth < 8 else ():
            there = self.find(module, base.id) if isinstance(base, ast.Name) else None
            if there is not None and isinstance(there[1], ast.ClassDef):
                names |= self.members(there[0], there[1], depth + 1)
        return names


def _top(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a module, those below `if` and `try` too."""
    statements: list[ast.stmt] = []
    left = list(tree.body)
    while left:
        node = left.pop()
        statements.append(node)
        if isinstance(node, ast.If | ast.Try):
            left += [*node.body, *node.orelse]
    return statements


def _targets(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def missing(sources: Sources, used: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What of `used` the sources lack."""
    absent: list[str] = []
    for where, names in used.items():
        module, _, path = where.partition(":")
        first, *more = path.removesuffix("()").split(".")
        there = sources.find(module, first)
        if there is not None and more:
            methods = [n for n in ast.walk(there[1]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            there = next(((there[0], n) for n in methods if n.name == more[0]), None)
        if there is None:
            absent.append(where)
            continue
        place, node = there
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            has = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        else:
            has = sources.members(place, node) if isinstance(node, ast.ClassDef) else set()
        absent += [f"{where} {name}" for name in names if name not in has]
    return absent


def check(version: str) -> list[str]:
    """Download one version's wheel and say what it lacks."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += [word for tag in PLATFORMS for word in ("--platform", tag)]
        subprocess.run([*command, "--dest", folder, f"vllm=={version}"], check=True)
        sources = Sources(next(Path(folder).glob("*.whl")))
        variables = [name for name in ENVIRONMENT if f'"{name}"' not in sources.text("vllm/envs.py")]
        return [*missing(sources, USED), *variables]


def of_the_range() -> list[str]:
    """Every published version from the oldest to the newest of the range, oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "vllm"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    listed = re.search(r"Available versions: (.*)", output)
    versions = sorted(listed[1].split(", ") if listed else [], key=_number)
    return [version for version in versions if _number(RANGE[0]) <= _number(version)[:2] <= _number(RANGE[1])]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def main(arguments: list[str]) -> int:
    versions = [argument for argument in arguments if not argument.startswith("-")] or of_the_range()
    if not arguments:
        versions = [versions[0], versions[-1]]
    failed = False
    for version in versions:
        absent = check(version)
        failed |= bool(absent)
        print(f"vllm {version}: {'has everything' if not absent else 'lacks'}", *absent, sep="\n  ", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
