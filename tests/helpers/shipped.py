"""What ships, read once: many files ask for it while they are collected."""

import functools

from harness.config.project import builtin
from harness.extensions.papers.published import load_published
from harness.tables import Published


@functools.cache
def specs() -> list[str]:
    """Names of the specs in alphabetical order, by their files: a listing would read each of them."""
    folder = builtin().root / "specs"
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.yaml"))


def two_of_each_family() -> list[str]:
    """Of the specs in one folder, or whose names begin alike (`silo_bench`, `silo_calls`), the first and the last."""
    families: dict[str, list[str]] = {}
    for name in specs():
        families.setdefault(name.split("/")[0].split("_")[0], []).append(name)
    return [name for family in families.values() for name in sorted({family[0], family[-1]})]


@functools.cache
def published() -> list[Published]:
    """The tables of published figures, of every file."""
    return [table for folder in builtin().published() for table in load_published(folder)]


def published_by(paper: str) -> dict[str, Published]:
    """Id of a paper's table → the table."""
    return {table.id: table for table in published() if table.id.startswith(f"{paper}/")}
