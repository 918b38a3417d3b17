"""What ships, read once: many files ask for it while they are collected."""

import functools

from harness.config.project import builtin
from harness.report.published import load_published
from harness.tables import Published


@functools.cache
def specs() -> list[str]:
    """Names of the specs in alphabetical order, by their files: a listing would read each of them."""
    folder = builtin().root / "specs"
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.yaml"))


@functools.cache
def published() -> list[Published]:
    """The tables of published figures, of every file."""
    return [table for folder in builtin().published() for table in load_published(folder)]


def published_by(paper: str) -> dict[str, Published]:
    """Id of a paper's table → the table."""
    return {table.id: table for table in published() if table.id.startswith(f"{paper}/")}
