"""What models cost, by a file of the user's own: `prices.yaml` in the folder of their configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.api.errors import SetupError
from harness.plugins.approval_record import config_folder
from harness.tables.cost import Price, read_prices

NAME = "prices.yaml"


def file() -> Path:
    """Where it is, if there is one."""
    return config_folder() / NAME


def user_prices() -> dict[str, Price]:
    """Model → price; none without a file.

    The file is as a spec's `prices:`, `MODEL: {input: USD, output: USD}` a line, in USD per million tokens; `cached:
    USD` if cached input has a price of its own, and `batch: 0.5` if replies in batches cost half.

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
    parts = entry if isinstance(entry, dict) and {*entry} - {"cached", "batch"} == {"input", "output"} else {}
    if not parts or not all(type(x) in (int, float) and math.isfinite(x) and x >= 0 for x in parts.values()):
        what = f"the price of {model} must be {{input: …, output: …}}, found {entry!r:.100}"
        raise SetupError(f"{path}: {what}", hint=_HINT)
    return read_prices({model: {name: float(number) for name, number in parts.items()}})[model]


def prices_of(spec: Mapping[str, Any]) -> dict[str, Price]:
    """The prices of models that may play a spec: its own, and of the user's those of models that it names.

    All of the user's for a spec that names no model with a price: any of them may play it. Raises as `user_prices`.
    """
    named = set(spec.get("models") or {})
    for entry in (spec.get("models") or {}).values():
        if isinstance(entry, Mapping):
            named |= {value for key in ("model", "pretrained") if isinstance(value := entry.get(key), str)}
    users = user_prices()
    return {
        **({name: price for name, price in users.items() if name in named} or users),
        **read_prices(spec.get("prices")),
    }


def known_prices(entry: Mapping[str, Any] | None) -> dict[str, Price]:
    """The prices of a spec (`entry`: its `prices:`), and for other models the user's. Raises as `user_prices`."""
    return {**user_prices(), **read_prices(entry)}
