"""What ships, read once: many files ask for it while they are collected."""

import functools

from harness.config.project import builtin
from harness.extensions.analysis.published import load_published
from harness.tables.published_figures import PublishedTable


@functools.cache
def specs() -> list[str]:
    """Names of the specs in alphabetical order."""
    return plugins("specs")


@functools.cache
def plugins(kind: str, family: str = "") -> list[str]:
    """Names of a kind of plugins that begin so, in alphabetical order: `Project.listing` would read their files."""
    return sorted(name for name in builtin().files(kind) if name.startswith(family))


def two_of_each_family() -> list[str]:
    """Of the specs in one folder, or whose names begin alike (`silo_bench`, `silo_calls`), the first and the last."""
    families: dict[str, list[str]] = {}
    for name in specs():
        families.setdefault(name.split("/")[0].split("_")[0], []).append(name)
    return [name for family in families.values() for name in sorted({family[0], family[-1]})]


@functools.cache
def published() -> list[PublishedTable]:
    """The tables of published figures, of every file."""
    return [table for folder in builtin().published() for table in load_published(folder)]


def published_by(paper: str) -> dict[str, PublishedTable]:
    """Id of a paper's table → the table."""
    return {table.id: table for table in published() if table.id.startswith(f"{paper}/")}
