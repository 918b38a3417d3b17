"""`harness eval --model vllm …` with the tiny model, in a process of its own, as a user would run it."""

import os
import subprocess
import sys
from pathlib import Path

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
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
