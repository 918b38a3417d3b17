"""A run as a data set of the Hugging Face hub: both tables, the run's record, a card, and entries for model cards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, SetupError
from harness.api.printable import clean_name
from harness.api.run_files import META, RESULTS, SPEC
from harness.config import yamls
from harness.evaluation.run import Run
from harness.report.render import markdown_escape, render
from harness.storage.redaction import redacted
from harness.tables import Table
from harness.tables.table import text
from harness.transcripts.inner_rows import COLUMNS

from .form import ExportForm
from .table_files import INNER, TABLES, counted, tables_of, write_tables
from .texts import plain

FILES: Final = (*(f"{name}.parquet" for name in TABLES), "README.md", META, SPEC, RESULTS)
MODEL_INDEX: Final = "model-index.yaml"
_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def files_of(run: Run) -> tuple[str, ...]:
    """The names of the files that `write_data_set` writes: no card where there is nothing to rank a model by."""
    files = (*FILES, f"{INNER}.parquet") if INNER in tables_of(run) else FILES
    return files if run.meta.get("policies_only") or run.headline_missing is not None else (*files, MODEL_INDEX)


def check_name(repo: str, option: str = "--repo") -> None:
    """Raise `DataError` unless `repo`, which an option gives, is `user/name`."""
    if not _REPO.fullmatch(repo):
        message = f"{option} {clean_name(repo):.100} is not the name of a data set"
        raise DataError(message, hint="Give it as user/name: letters, digits, '-', '_' and '.'.")


def write_data_set(run: Run, folder: Path) -> tuple[int, int]:
    """Write everything that is to be uploaded.

    Returns:
        how many episodes and turns there are.

    Raises:
        DataError: the journal is damaged.
        SetupError: a package is missing.
        OSError: a file cannot be written.
    """
    counts = write_tables(run, "parquet", folder)
    for name in (META, SPEC, RESULTS):
        (folder / name).write_bytes((run.folder / name).read_bytes())
    (folder / "README.md").write_text(_card(run, counts), encoding="utf-8")
    if MODEL_INDEX in files_of(run):
        (folder / MODEL_INDEX).write_text(yamls.dump({"model-index": model_index(run)}), encoding="utf-8")
    return counts


def upload(folder: Path, repo: str, *, public: bool = False, overwrite: bool = False) -> str:
    """Upload a folder as a data set in one commit, with the client's own token (`HF_TOKEN` or `hf auth login`).

    Args:
        folder: what `write_data_set` wrote.
        repo: `user/name`.
        public: whether everyone may read a data set that is created now.
        overwrite: add the commit to a data set that is there.

    Returns:
        the data set's address.

    Raises:
        DataError: it is there, or the hub refuses it.
        SetupError: the package or the token is missing.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
    except ImportError:
        hint = 'pip install "mas-eval-harness[hub]"'
        raise SetupError("uploading to the hub needs the package huggingface_hub", hint=hint) from None
    api = HfApi()
    try:
        api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=overwrite)
        api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=folder, commit_message="Add a run")
    except LocalTokenNotFoundError:
        hint = "Set HF_TOKEN, or log in with `hf auth login`."
        raise SetupError("the hub needs a token to upload, and there is none", hint=hint) from None
    except Exception as error:  # of the client, of HTTP, of the network
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        if status == 409 and not overwrite:
            hint = "Choose another --repo, or add --overwrite to add a commit to it."
            raise DataError(f"the data set {repo} is there already", hint=hint) from None
        if status in (401, 403):
            hint = "Set HF_TOKEN to a token that may write there, or log in with `hf auth login`."
            raise SetupError(f"the hub refuses to write to {repo} (HTTP {status})", hint=hint) from None
        why = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        message = f"cannot upload to {repo}: {redacted(clean_name(why)):.300}"
        raise DataError(message, hint="Nothing was committed. Try again, or write a folder with --output.") from None
    return f"{api.endpoint}/datasets/{repo}"


def model_index(run: Run) -> list[dict[str, Any]]:
    """The results as a model card's `model-index` states them: one entry per condition and metric.

    There are none where too few turns of the model were parsed: what reads a card ranks by any of them.
    """
    results: list[dict[str, Any]] = []
    for row in run.rows if run.headline_missing is None else ():
        if row["value"] is None:
            continue
        named = ", ".join(f"{label} {text(value)}" for label, value in row["labels"].items())
        metric = {"type": row["metric"], "name": row["metric"], "value": row["value"]}
        args: dict[str, Any] = {"n": row["n"], **({"read": row["read"]} if "read" in row else {})}
        if row["stderr"] is not None:
            args["stderr"] = row["stderr"]
        dataset = {"type": run.spec.name, "name": f"{run.spec.name} ({named})" if named else run.spec.name}
        if row["condition"]:
            dataset["config"] = row["condition"]
        task = {"type": "multi-agent", "name": "Multi-agent evaluation"}
        results.append({"task": task, "dataset": dataset, "metrics": [{**metric, "args": args}]})
    index: list[dict[str, Any]] = plain([{"name": str(run.meta["model"]), "results": results}])
    return index


def _card(run: Run, counts: tuple[int, int]) -> str:
    meta = run.meta
    front = {
        "pretty_name": f"{run.spec.name}: {meta['model']}",
        "tags": ["evaluation", "multi-agent", "mas-eval-harness"],
        "configs": [
            {"config_name": name, "data_files": f"{name}.parquet", **({"default": True} if name == TABLES[0] else {})}
            for name in tables_of(run)
        ],
    }
    versions = meta.get("versions") or {}
    record = {
        "spec": run.spec.name,
        "model": meta["model"],
        "sampling": ", ".join(f"{key} {value}" for key, value in (meta.get("generation_kwargs") or {}).items()),
        "episodes": f"{counts[0]:,}, of which {len(run.failed):,} failed",
        "turns": f"{counts[1]:,}",
        "seed": run.spec.get("seed", 0),
        "spec digest": meta["spec_digest"],
        "harness": versions.get("harness", ""),
        "start": meta.get("start", ""),
    }
    if meta.get("policies_only"):
        record["players"] = "scripted policies; no model took part"
    if meta.get("uses_ground_truth"):
        record["note"] = "some players knew the right answer"
    rows = "".join(f"| {key} | {markdown_escape(str(value))} |\n" for key, value in record.items() if value != "")
    columns = "".join(_columns(name, getattr(run.tidy, f"{name[:-1]}_columns")) for name in TABLES)
    columns += _columns(INNER, COLUMNS) if INNER in tables_of(run) else ""
    return "\n".join(
        (
            f"---\n{yamls.dump(front)}---\n",
            f"# {markdown_escape(run.spec.name)}: {markdown_escape(str(meta['model']))}\n",
            "A run of `harness` (mas-eval-harness): groups of agents, one row per episode and one row per turn.\n",
            *(render(table, "markdown") + "\n" for table in (*_headline(run), *run.tables) if not table.is_data),
            f"## Run\n\n| | |\n|---|---|\n{rows}",
            "`spec.yaml` is the resolved spec: `harness eval --spec spec.yaml` repeats the run. `run.json` is its",
            "record, and `results.json` has every metric in every condition with its standard error.\n",
            columns,
        )
    )


def _headline(run: Run) -> list[Table]:
    """The headline as a table of one number, where the spec names one."""
    declared = run.metrics and run.headline.declared
    return [run.headline.filled(run.scores)] if declared else []


def _columns(name: str, columns: Any) -> str:
    lines = "".join(
        f"| `{clean_name(column.name).replace('|', ' ')}` | {column.kind} | {markdown_escape(column.about)} |\n"
        for column in columns
    )
    return f"## {name.capitalize()}\n\n| column | kind | content |\n|---|---|---|\n{lines}\n"


FORM: Final = ExportForm(files_of, lambda run, folder: counted(*write_data_set(run, folder)))
