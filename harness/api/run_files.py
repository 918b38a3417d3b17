"""The names of the files in a run's folder."""

from __future__ import annotations

from typing import Final

META: Final = "run.json"
SPEC: Final = "spec.yaml"
JOURNAL: Final = "journal.jsonl"
SCORES: Final = "scores.jsonl"
RESULTS: Final = "results.json"
TABLES: Final = "tables.json"
TABLES_MD: Final = "tables.md"
ERRORS: Final = "errors.jsonl"
SAMPLES: Final = "samples.jsonl"
REQUESTS: Final = "requests.jsonl"
ENGINE_LOG: Final = "engine.log"
SHARED_CALLS: Final = "shared.sqlite"
