"""The command `lm_eval` and `harness eval` on the same tasks with the tiny model: nothing differs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLAIN = ("local_multiple_choice", "local_cloze", "local_two_filters", "local_rolling", "local_group", "local_functions")
CHAT = ("local_multiturn",)


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.parametrize("tasks", [PLAIN, CHAT], ids=["plain", "chat"])
def test_prompts_token_ids_replies_and_numbers_are_the_same(tasks: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "lm_eval_parity.py"), "--documents", "0", *tasks]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    assert "no differences" in done.stdout and "OTHER" not in done.stdout
    assert all(task in done.stdout for task in tasks)
