"""A run as a record of Every Eval Ever, version 0.3.0 of its schema (https://github.com/evaleval/every_eval_ever).

A record has one model and no group: who talked with whom is a text in `additional_details`.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harness.api.printable import clean_name
from harness.evaluation.run import Run
from harness.tables import Cell, EpisodeScore
from harness.tables.table import text

from .form import ExportForm
from .single_model import declared_headline, file_stem, one_model, seated_engines
from .texts import as_json, plain

VERSION: Final = "0.3.0"
_SAMPLING: Final = ("temperature", "top_p", "top_k", "max_tokens")
_SELF_DEPLOYED: Final = ("vllm", "tiny")


def record(run: Run) -> dict[str, Any]:
    """The record: the headline over all episodes, and in each condition where there are several.

    Raises:
        DataError: as `one_model` and `declared_headline`.
    """
    model, cell, meta = one_model(run), declared_headline(run), run.meta
    developer, slash, _ = model.partition("/")
    [(name, arguments)] = seated_engines(run).items()
    own = (meta.get("identity") or {}).get("engine") or {}  # None for a model that the spec names
    engine = str(own.get("engine") or (meta.get("engine_types") or {}).get(name) or "unknown")
    created = _seconds(meta.get("end") or meta.get("start"))
    details = {
        "deployment_type": "self_deployed" if engine in _SELF_DEPLOYED else "unknown",
        "model_availability": "unknown",
        "engine_args": as_json(arguments),
    }
    made: dict[str, Any] = {
        "schema_version": VERSION,
        "evaluation_id": f"{run.spec.name}/{model}/{created}",
        "evaluation_timestamp": _seconds(meta.get("start")),
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": "mas-eval-harness",
            "source_type": "evaluation_run",
            "source_organization_name": (run.project.author if run.project else None) or "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "mas-eval-harness",
            "version": str((meta.get("versions") or {}).get("harness") or "unknown"),
        },
        "model_info": {
            "name": model,
            "id": model,
            **({"developer": developer} if slash else {}),
            "inference_engine": {"name": engine},
            "additional_details": details,
        },
        "evaluation_results": [_result(run, None, cell, run.scores), *_by_condition(run)],
    }
    return dict(plain(made))


def _by_condition(run: Run) -> list[dict[str, Any]]:
    groups: dict[str, list[EpisodeScore]] = {}
    for score in run.headline.selected(run.scores):
        groups.setdefault(score.condition, []).append(score)
    if len(groups) < 2:
        return []
    cells = {name: run.headline.cell(scores) for name, scores in groups.items()}
    return [_result(run, name, cell, groups[name]) for name, cell in cells.items() if cell.value is not None]


def _result(run: Run, condition: str | None, cell: Cell, scores: list[EpisodeScore]) -> dict[str, Any]:
    headline = run.headline
    low, high = run.metrics[headline.metric].bounds
    name = run.spec.name if condition is None else f"{run.spec.name}.{condition}"
    metric: dict[str, Any] = {
        "evaluation_description": str(run.spec.get("description") or run.spec.name),
        "metric_id": f"{run.spec.name}.{headline.metric}",
        "metric_name": headline.name,
        "lower_is_better": headline.better == "lower",
    }
    if math.isinf(low) or math.isinf(high):
        metric["additional_details"] = {"bounds": f"{low:g} to {high:g}"}
    else:
        metric |= {"score_type": "continuous", "min_score": low, "max_score": high}
    uncertainty: dict[str, Any] = {} if cell.n is None else {"num_samples": cell.n}
    if cell.stderr is not None:
        uncertainty["standard_error"] = {"value": cell.stderr, "method": "analytic"}
    if cell.low is not None and cell.high is not None:
        uncertainty["confidence_interval"] = {"lower": cell.low, "upper": cell.high, "confidence_level": 0.95}
    shared = {key: value for key, value in scores[0].labels.items() if all(s.labels.get(key) == value for s in scores)}
    others = (row for row in run.rows if row["condition"] == condition and row["value"] is not None)
    return {
        "evaluation_result_id": f"{name}/{headline.metric}",
        "evaluation_name": name,
        "source_data": {
            "dataset_name": run.spec.name,
            "source_type": "other",
            "additional_details": {
                "spec_digest": str(run.meta["spec_digest"]),
                **{f"digest of {what}": str(digest) for what, digest in (run.meta.get("cases") or {}).items()},
            },
        },
        "metric_config": metric,
        "score_details": {
            "score": cell.value,
            "details": {row["metric"]: f"{row['value']:.6g}" for row in others},
            "uncertainty": uncertainty,
        },
        "generation_config": _generation(run, {key: text(value) for key, value in shared.items()}),
    }


def _generation(run: Run, labels: dict[str, str]) -> dict[str, Any]:
    sampling = run.meta.get("generation_kwargs") or {}
    spec, group = run.spec.data, {}
    for key in ("protocol", "agents", "limits"):
        if spec.get(key) is not None:
            group[key] = as_json(spec[key])
    known = {key: sampling[key] for key in _SAMPLING if sampling.get(key) is not None}
    return {
        "generation_args": {**known, "agentic_eval_config": {"additional_details": {**group, **labels}}},
        "additional_details": {key: text(value) for key, value in sampling.items() if key not in known},
    }


def _seconds(stamp: Any) -> str:
    """A time of run.json as whole seconds since 1970; "unknown" for what is none."""
    try:
        return str(int(datetime.fromisoformat(str(stamp)).timestamp()))
    except ValueError:
        return "unknown"


def file_name(run: Run) -> str:
    """The file's name, a UUID of version 4 as the data store asks, from the run's identity: one run has one name."""
    parts = json.dumps([run.meta["run"], run.meta["spec_digest"], run.meta["model"], run.meta.get("start")])
    return f"{uuid.UUID(bytes=hashlib.sha256(parts.encode()).digest()[:16], version=4)}.json"


def _write(run: Run, folder: Path) -> str:
    made = record(run)
    (folder / file_name(run)).write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", "utf-8")
    owner, _, model = str(run.meta["model"]).rpartition("/")
    place = "/".join(map(file_stem, (run.spec.name, owner or "unknown", model)))
    count = len(made["evaluation_results"])
    return clean_name(f"a record of {count} result{'s' * (count > 1)}; its place in the data store is data/{place}/")


FORM: Final = ExportForm(lambda run: (file_name(run),), _write)
