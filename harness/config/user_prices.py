"""What models cost, by a file of the user's own: `prices.yaml` in the folder of their configuration."""

from __future__ import annotations

import math
from pathlib import Path

from harness.api.errors import SetupError
from harness.plugins.approval_record import config_folder
from harness.tables.cost import Price

NAME = "prices.yaml"


def file() -> Path:
    """Where it is, if there is one."""
    return config_folder() / NAME


def user_prices() -> dict[str, Price]:
    """Model → price; none without a file.

    The file is as a spec's `prices:`, `MODEL: {input: USD, output: USD}` a line, in USD per million tokens.
    `batch: 0.5` beside them says that replies in batches cost half.

    Raises:
        SetupError: a file that says something else.
    """
    path = file()
    if not path.is_file():
        return {}
    from harness.config import yamls

    content = yamls.read(path).data
    if not isinstance(content, dict):
        raise SetupError(f"{path}: must be a mapping of models to prices", hint=_HINT)
    return {str(model): _price(path, str(model), entry) for model, entry in content.items()}


_HINT = "A line is MODEL: {input: USD, output: USD}, per million tokens; with batch: 0.5 batches cost half."


def _price(path: Path, model: str, entry: object) -> Price:
    parts = entry if isinstance(entry, dict) and {*entry} - {"batch"} == {"input", "output"} else {}
    numbers = [float(one) for one in parts.values() if type(one) in (int, float) and math.isfinite(one) and one >= 0]
    if not parts or len(numbers) < len(parts):
        what = f"the price of {model} must be {{input: …, output: …}}, found {entry!r:.100}"
        raise SetupError(f"{path}: {what}", hint=_HINT)
    return Price(**parts)
