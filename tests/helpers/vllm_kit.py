"""`harness eval --model vllm …` with the tiny model, in a process of its own, as a user would run it.

It takes half a minute. Tests that are about what is played use `Driven.play`, with an engine that is started.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import VLLM_ENVIRONMENT

ROOT = Path(__file__).parent.parent.parent


def evaluate(
    spec: str | Path, model: Path, folder: Path, *more: str, **arguments: object
) -> subprocess.CompletedProcess[str]:
    """Evaluate `specs/SPEC.yaml`, or a spec's file; `arguments` go to the engine, `more` to the command."""
    args = {"pretrained": model, **arguments}
    command = [
        *(
            sys.executable,
            "-m",
            "harness",
            "eval",
            "--spec",
            str(spec) if isinstance(spec, Path) else f"specs/{spec}.yaml",
            "--model",
            "vllm",
        ),
        *("--model_args", ",".join(f"{key}={value}" for key, value in args.items())),
        *("--output_path", str(folder), *more),
    ]
    environment = {name: value for name, value in os.environ.items() if name not in VLLM_ENVIRONMENT}
    return subprocess.run(
        command, cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
