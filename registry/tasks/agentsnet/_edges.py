"""A network from an edge list: one pair of agents per line, separated by a comma or blanks."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterator
from pathlib import Path

from harness.api import DataError, Place, derive_seed
from harness.extensions.networks import Network, adjacency_of, draw_names

_HEADERS = {("source", "target"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("a", "b")}
_NUMBER = re.compile(r"\d+")
MAX_BYTES = 100_000_000


def read(path: str, seed: int, header: bool | None = None) -> Network:
    """Return the network in the file at `path`.

    Blank lines and lines that start with # are skipped; a repeated edge counts once. Agents are in order of appearance.
    If all of them are integers they get drawn names, else those of the file.

    Args:
        path: the file.
        seed: the seed of drawn names.
        header: whether the first line names the columns; None to guess. The guess is yes if it is source,target ·
            from,to · u,v · node1,node2 · a,b above a list of numbered agents.

    Raises:
        DataError: if the file cannot be read, with file and line if a line is not a pair, or may be header or edge.
    """
    rows = list(_rows(path))
    if rows and (
        _is_header(*rows[0], [name for _, fields in rows[1:] for name in fields]) if header is None else header
    ):
        del rows[0]
    nodes: dict[str, int] = {}
    edges: dict[frozenset[int], tuple[int, int]] = {}
    for place, fields in rows:
        u, v = (nodes.setdefault(name, len(nodes)) for name in _pair(place, fields))
        edges.setdefault(frozenset((u, v)), (u, v))
    if not edges:
        raise DataError("the edge list has no edges", place=Place(path), hint="Write one pair of agents per line.")
    agents = list(nodes)
    if all(map(_NUMBER.fullmatch, agents)):
        agents = draw_names(random.Random(derive_seed("agentsnet", "edges", seed)), len(nodes))
    return Network(Path(path).stem, Path(path).stem, 0, adjacency_of(agents, edges.values()))


def summary(network: Network, count: int = 4) -> str:
    """Return the size of a network and its first `count` edges, in one line, to compare with the file.

    >>> summary(Network("office", "office", 0, adjacency_of(["Ann", "Bo", "Cy"], [(0, 1), (1, 2)])))
    '3 agents, 2 edges: Ann–Bo, Bo–Cy'
    """
    edges: dict[frozenset[str], str] = {}
    for u, neighbors in network.adjacency.items():
        for v in neighbors:
            edges.setdefault(frozenset((u, v)), f"{u}–{v}")
    first = ", ".join([*edges.values()][:count]) + (", …" if len(edges) > count else "")
    return f"{len(network.adjacency)} agents, {len(edges)} edge{'s' * (len(edges) > 1)}: {first}"


def _is_header(place: Place, fields: list[str], others: list[str]) -> bool:
    """Return whether the first line cannot be an edge.

    Names that occur nowhere else prove nothing: two agents may have no other neighbor.
    """
    words = tuple(name.casefold() for name in fields)
    if len(words) != 2 or any(name in others for name in fields) or all(map(_NUMBER.fullmatch, words)):
        return False
    numbered = bool(others) and all(map(_NUMBER.fullmatch, others))
    if words in _HEADERS and numbered:
        return True
    if words in _HEADERS or numbered:
        hint = "Set `header: true` if it names the columns, `header: false` if it is the first edge."
        message = f"the first line may be a header or an edge: {', '.join(fields)[:80]}"
        raise DataError(message, place=place, hint=hint)
    return False


def _rows(path: str) -> Iterator[tuple[Place, list[str]]]:
    try:
        file = Path(path).expanduser()
        if file.exists() and not file.is_file():  # a device or a pipe may have no end
            raise DataError("the edge list is not a file", place=Place(path))
        if file.stat().st_size > MAX_BYTES:
            raise DataError(f"the edge list has more than {MAX_BYTES:,} bytes", place=Place(path))
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the edge list cannot be read: {error}", place=Place(path)) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            fields = next(csv.reader([line], skipinitialspace=True)) if "," in line else line.split()
            yield Place(path, number, 1), [field.strip() for field in fields]


def _pair(place: Place, fields: list[str]) -> tuple[str, str]:
    problem = None
    if len(fields) != 2 or not all(fields):
        problem = f"expected two agents, found {len(fields)}: {', '.join(fields)[:80]}"
    elif fields[0] == fields[1]:
        problem = f"an agent cannot be its own neighbor: {fields[0][:80]}"
    elif not all(map(str.isprintable, fields)):
        problem = f"an agent's name has printable characters only: {fields!r:.80}"
    elif "none" in (name.casefold() for name in fields):
        problem = "an agent cannot be called None, which is an answer in matching"
    if problem:
        raise DataError(problem, place=place, hint="Write one pair of agents per line, such as `Emma,Alan` or `0 1`.")
    return fields[0], fields[1]
