"""A user's own network from an edge list: one pair of agents a line, by comma or blanks."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterator
from pathlib import Path

from harness.api import derive_seed
from harness.errors import DataError, Place

from ._graphs import Network, named
from ._names import draw

_HEADERS = {("source", "target"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("a", "b")}


def read(path: str, seed: int) -> Network:
    """The network in the file at `path`.

    Blank lines, lines that begin with # and a header (source,target · from,to · u,v · node1,node2) are
    skipped; an edge that is there twice counts once. Agents appear in the order in which the file names
    them. If all of them are whole numbers they get drawn names, else the file's own.

    Raises:
        DataError: if the file cannot be read, with file and line if a line is no pair.
    """
    nodes: dict[str, int] = {}
    edges: dict[frozenset[int], tuple[int, int]] = {}
    for place, fields in _rows(path):
        pair = _pair(place, fields)
        if not nodes and tuple(name.casefold() for name in pair) in _HEADERS:
            continue
        u, v = (nodes.setdefault(name, len(nodes)) for name in pair)
        edges.setdefault(frozenset((u, v)), (u, v))
    if not edges:
        raise DataError("the edge list has no edges", place=Place(path), hint="Write one pair of agents a line.")
    names = list(nodes)
    if all(re.fullmatch(r"\d+", name) for name in names):
        names = draw(random.Random(derive_seed("agentsnet", "edges", seed)), len(nodes))
    return Network(Path(path).stem, Path(path).stem, 0, named(names, edges.values()))


def _rows(path: str) -> Iterator[tuple[Place, list[str]]]:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
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
        problem = f"an agent cannot be its own neighbour: {fields[0][:80]}"
    elif "none" in (name.casefold() for name in fields):
        problem = "an agent cannot be called None, which is an answer in matching"
    if problem:
        raise DataError(problem, place=place, hint="Write one pair of agents a line, such as `Emma,Alan` or `0 1`.")
    return fields[0], fields[1]
