"""What exactly was run, and how to run it again: run.json and spec.yaml as a page shows them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from harness.api.printable import clean, cut
from harness.api.run_files import SPEC
from harness.extensions.charts import Material
from harness.tables import text

from .page_html import plain_table, safe

_MAX_VALUE_CHARS: Final = 2_000
_SPEC: Final = 20_000


def record_html(material: Material) -> str:
    """A folded record for each run; the only one is open."""
    is_open = " open" if len(material.sources) == 1 else ""
    return "".join(
        f'<details class="printed"{is_open}><summary>{safe(text(source.run.run.get("run")))}: '
        f"{safe(text(source.run.run.get('model')))}</summary>{_run(source.run.run, source.folder)}</details>\n"
        for source in material.sources
    )


def _run(meta: Mapping[str, Any], folder: Path) -> str:
    again = command(meta)
    repeat = f"<p>Run it again:</p><pre>{escape(clean(again))}</pre>" if again else ""
    return plain_table(("", ""), _facts(meta), "record") + repeat + _spec(folder)


def command(meta: Mapping[str, Any]) -> str | None:
    """The command line that made the run; None if Python made it."""
    words = [str(word) for word in meta.get("command") or []]
    if not words or not ("harness" in Path(words[0]).parts[-2:] and Path(words[0]).name in ("harness", "__main__.py")):
        return None
    return shlex.join(["harness", *words[1:]])[:_MAX_VALUE_CHARS]


def _facts(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    git, hardware = meta.get("git") or {}, meta.get("hardware") or {}
    commit = git.get("commit")
    rows: dict[str, Any] = {
        "spec": f"{text(meta.get('spec'))}, digest {text(meta.get('spec_digest'))[:12]}",
        "model": meta.get("model"),
        "sampling": meta.get("generation_kwargs"),
        "engine": meta.get("engine_args"),
        "constrained decoding": meta.get("structured_output"),
        "versions": meta.get("versions"),
        "git": f"{commit}{' with changes' if git.get('dirty') else ''}" if commit else None,
        "hardware": hardware,
        "started": meta.get("start"),
        "ended": meta.get("end"),
        "duration": f"{meta['duration']:,.1f} s" if isinstance(meta.get("duration"), int | float) else None,
        "engine report": meta.get("engines"),
        "judges": {
            name: {
                key: one.get(key) for key in ("judge", "answers", "missing", "calls", "input_tokens", "output_tokens")
            }
            for name, one in (meta.get("judges") or {}).items()
        },
        "graded again": meta.get("graded_again"),
    }
    for name, value in rows.items():
        if value not in (None, {}, [], False, {"model": {}}):
            yield name, cut(_plain(value), _MAX_VALUE_CHARS)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping) and all(isinstance(x, Mapping) for x in value.values()):
        return "; ".join(f"{name}: {_plain(x)}" for name, x in value.items() if x)
    if isinstance(value, Mapping) and not any(isinstance(x, Mapping | list) for x in value.values()):
        return ", ".join(f"{name} {text(x)}" for name, x in value.items() if x not in (None, ""))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _spec(folder: Path) -> str:
    try:
        body = (folder / SPEC).read_text("utf-8", errors="replace")
    except OSError:
        return ""
    more = f"\n… {len(body) - _SPEC:,} more characters" if len(body) > _SPEC else ""
    return f"<details><summary>spec.yaml, resolved</summary><pre>{escape(clean(body[:_SPEC]))}{more}</pre></details>"
