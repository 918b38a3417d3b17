"""What needs no start of vLLM to be known."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import SetupError
from harness.extensions.vllm._vllm_cpu import Machine, _has_bf16, _quota, choose, reasons
from harness.extensions.vllm._vllm_failures import advice
from harness.extensions.vllm._vllm_version import RANGE, outside
from harness.extensions.vllm.vllm import VLLM

GIB = 2**30
MACHINE = Machine(memory=8 * GIB, cores=8)
DEFAULT = {"enable_chunked_prefill": False, "block_size": 32, "kv_cache_memory_bytes": 2 * GIB}


def test_a_cpu_gets_settings_that_work() -> None:
    assert choose({"model": "m"}, {}, MACHINE) == (DEFAULT, {})


@pytest.mark.parametrize(
    ("arguments", "environment", "left_out"),
    [
        ({"enable_chunked_prefill": True}, {}, {"enable_chunked_prefill", "block_size"}),
        ({"enable_chunked_prefill": False}, {}, {"enable_chunked_prefill"}),
        ({"block_size": 64}, {}, {"block_size"}),
        ({"kv_cache_memory_bytes": 1}, {}, {"kv_cache_memory_bytes"}),
        ({"gpu_memory_utilization": 0.5}, {}, {"kv_cache_memory_bytes"}),
        ({}, {"VLLM_CPU_KVCACHE_SPACE": "4"}, {"kv_cache_memory_bytes"}),
    ],
)
def test_what_is_chosen_by_hand_stays(
    arguments: dict[str, Any], environment: dict[str, str], left_out: set[str]
) -> None:
    settings = choose(arguments, environment, MACHINE)[0]
    assert settings == {name: value for name, value in DEFAULT.items() if name not in left_out}


@pytest.mark.parametrize(
    ("arguments", "environment", "machine", "expected"),
    [
        ({}, {"OMP_NUM_THREADS": "2"}, MACHINE, {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}),
        ({}, {"OMP_NUM_THREADS": "2", "VLLM_CPU_OMP_THREADS_BIND": "0-3"}, MACHINE, {}),
        ({}, {}, Machine(8 * GIB, cores=64, quota=4), {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "3"}),
        ({}, {}, Machine(8 * GIB, cores=64, quota=1), {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}),
        ({}, {}, Machine(8 * GIB, cores=4, quota=4), {}),
        ({"tensor_parallel_size": 2}, {}, MACHINE, {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "3"}),
        ({"tensor_parallel_size": 2}, {}, Machine(8 * GIB, cores=8, nodes=2), {}),
    ],
)
def test_threads_go_by_what_may_be_used(
    arguments: dict[str, Any], environment: dict[str, str], machine: Machine, expected: dict[str, str]
) -> None:
    assert choose(arguments, environment, machine)[1] == expected


def test_workers_share_the_memory_and_nothing_is_compiled_without_a_compiler() -> None:
    machine = Machine(8 * GIB, cores=8, nodes=2, compiler=False)
    settings = choose({"tensor_parallel_size": 2, "data_parallel_size": 2}, {}, machine)[0]
    assert settings == {**DEFAULT, "kv_cache_memory_bytes": GIB // 2, "enforce_eager": True}
    assert "enforce_eager" not in choose({"enforce_eager": False}, {}, machine)[0]


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ({}, {"dtype": "float32", "enforce_eager": True}),
        ({"dtype": "auto"}, {"dtype": "float32", "enforce_eager": True}),
        ({"dtype": "bfloat16"}, {"enforce_eager": True}),
        ({"enforce_eager": False}, {"dtype": "float32"}),
        ({"dtype": "float16", "enforce_eager": False}, {}),
    ],
)
def test_without_bf16_it_is_float32_and_eager(arguments: dict[str, Any], chosen: dict[str, Any]) -> None:
    settings = choose(arguments, {}, Machine(8 * GIB, cores=8, bf16=False))[0]
    assert settings == {**DEFAULT, **chosen}
    assert len(reasons(settings)) == ("dtype" in chosen), "it changes replies, so the start says why"
    assert choose(arguments, {}, MACHINE)[0] == DEFAULT and reasons(DEFAULT) == ()


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("model name\t: A\nflags\t\t: fpu avx512f avx512_bf16 amx_tile\n", True),
        ("flags\t\t: fpu amx_bf16\n\nflags\t\t: fpu amx_bf16\n", True),
        ("flags\t\t: fpu avx2 avx512f avx512_vnni\n", False),
        ("flags\t\t: fpu no_avx512_bf16_here\n", False),
        ("Features\t: fp asimd bf16\n", True),
        ("Features\t: fp asimd\n", False),
        ("processor\t: 0\n", True),
        ("", True),
    ],
)
def test_instructions_for_bfloat16_are_read(tmp_path: Path, text: str, has: bool) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert _has_bf16(tmp_path / "cpuinfo") is has
    assert _has_bf16(tmp_path / "none")


@pytest.mark.parametrize(
    ("limit", "quota"), [("200000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", None), ("", None)]
)
def test_a_containers_quota_is_read(tmp_path: Path, limit: str, quota: int | None) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    assert _quota(tmp_path / "cpu.max") == quota
    assert _quota(tmp_path / "none") is None


def test_platform_defaults_are_no_part_of_what_the_engine_is() -> None:
    described = VLLM(pretrained="m").describe()
    assert described["block_size"] is None and described["enable_chunked_prefill"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pretrained": "/nowhere/model"}, "pretrained=/nowhere/model: there is no such folder"),
        ({"pretrained": "./a/b"}, "no such folder"),
        ({"pretrained": "models/of/mine"}, "no such folder"),
        ({"pretrained": "{empty}"}, "holds no model .no config.json"),
    ],
)
def test_a_folder_without_a_model_is_refused_before_loading(
    tmp_path: Path, arguments: dict[str, str], words: str
) -> None:
    arguments = {name: value.format(empty=tmp_path) for name, value in arguments.items()}
    with pytest.raises(SetupError, match=words):
        asyncio.run(VLLM(**dict[str, Any](arguments)).start())


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("CPU Generator does not use offset", "Leave enable_chunked_prefill"),
        ("… is larger than the available KV cache memory (1.5 GiB). Based on the available memory, the estimated "
         "maximum model length is 12288. Try …", "max_model_len=12288 or less"),
        ("Available memory on node 0 (5.8/7.3 GiB) on startup is less than desired CPU memory utilization",
         "gpu_memory_utilization="),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "several GPUs"),
        ("the process EngineCore was killed by SIGKILL", "memory has run out"),
        ("You are trying to access a gated repo. 401 Client Error", "Ask for access"),
        ("OSError: We couldn't connect to the hub to load the files", "hf download"),
        ("[Errno 28] No space left on device: '/psm_1'", "--shm-size"),
        ("[Errno 98] Address already in use", "VLLM_PORT"),
    ],
)  # fmt: skip
def test_common_causes_come_with_what_to_do(cause: str, words: str) -> None:
    assert words in (advice(cause) or "")


def test_an_unforeseen_error_has_no_text() -> None:
    assert advice("KeyError: 'x'") is None


def test_versions_outside_the_range_are_known() -> None:
    oldest, newest = RANGE
    assert not any(map(outside, (oldest, f"{oldest}.9", newest, f"{newest}.1+cu129")))
    assert all(map(outside, ("0.9.2", "0.19.1", "1.0.0", "0.99.0", "mine")))


def test_batch_invariance_is_refused_where_the_engine_would_die_of_it() -> None:
    with pytest.raises(SetupError, match="VLLM_BATCH_INVARIANT=1 needs a GPU") as caught:
        choose({}, {"VLLM_BATCH_INVARIANT": "1"}, MACHINE)
    assert "deterministic=true" in str(caught.value.hint)
    assert choose({"model": "m"}, {"VLLM_BATCH_INVARIANT": "0"}, MACHINE) == (DEFAULT, {})
