"""Which tables a name means: `harness report --table`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from harness.api.errors import DataError, HarnessError
from harness.config import yamls
from harness.config.project import find
from harness.tables import Table, TableSpec, text


def words_of(name: str) -> frozenset[str]:
    """Words and numbers of a table's name: mas_bench/table4 and "MAS-Bench, Table 4" have the same."""
    return frozenset(re.findall(r"[a-z]+|[0-9]+", name.casefold())) - {"bench"}


def called(table: TableSpec, name: str) -> bool:
    """Whether a name means a table: its title in any case, or its number in a paper ("AgentsNet 4", "Table 4", "4"), by
    its `paper` and by the published tables that are beside it."""
    if name.casefold() == table.title.casefold():
        return True
    words = words_of(name)
    return bool(words) and any(words <= words_of(number) for number in (*table.paper, *table.published))


def tables_named(tables: Sequence[Table], specs: Sequence[TableSpec], name: str) -> list[Table]:
    """The tables that a name means: a title, or a number in the paper; `specs` are their entries, in the same order.
    What follows without an entry is called by its title.

    Raises:
        DataError: naming near matches and all tables there are.
    """
    matches = [table for table, entry in zip(tables, specs, strict=False) if called(entry, name)]
    if matches:  # "4" is Table 4 where there is one, and else Figure 4
        numbered = [t for t, entry in zip(tables, specs, strict=False) if called(entry, f"table {name}")]
        return numbered or matches
    matches = [table for table in tables if name.strip() and name.casefold() in table.title.casefold()]
    if len(matches) != 1:  # part of a title, if only one has it
        numbers = {entry.title: ", ".join((*entry.paper, *entry.published)) for entry in specs}
        listed = "\n".join(f"  {title}{f' ({of_paper})' if of_paper else ''}" for title, of_paper in numbers.items())
        what = f"several tables have {name!r} in their title" if matches else f"no table is called {name!r}"
        likely = get_close_matches(name.casefold(), map(str.casefold, numbers), n=1)
        hint = next((f"Did you mean {title!r}?" for title in numbers if title.casefold() in likely), None)
        raise DataError(f"{what}; there are:\n{listed}", hint=hint or _elsewhere(name))
    return matches


def _elsewhere(name: str) -> str | None:
    """Which specs of the project have a table that the name means."""
    project, found = find(), []
    for spec, file in sorted(project.files("specs").items()):
        with contextlib.suppress(HarnessError, OSError, UnicodeDecodeError):
            if words_of(name) <= words_of(f"{file.stem} {file.read_text('utf-8')}"):
                entries = yamls.read(file).data.get("tables")
                found += [(spec, text(e["title"])) for e in entries or () if _means(name, e)]
    listed = "; ".join(f"{spec} has it ({title})" for spec, title in dict(reversed(found)).items())
    return f"Specs with other tables: {listed}. `harness eval --spec` plays one of them." if found else None


def _means(name: str, entry: Any) -> bool:
    """Whether a name means the table of an entry, which need not have been checked."""
    if not isinstance(entry, Mapping) or "title" not in entry:
        return False
    numbers = [entry.get(key, ()) for key in ("paper", "published")]
    paper, published = (tuple(map(text, [n] if isinstance(n, str) else n)) for n in numbers)
    return called(TableSpec(title=text(entry["title"]), cells=(), paper=paper, published=published), name)
