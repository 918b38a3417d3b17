"""The published graphs from the data set `disco-eth/AgentsNet`, or from files in its form.

The hub could not be read when this was written, so the reader is tolerant. It expects one row per graph
(further rows with the same graph, one for each task say, are left out) with these fields, of which only the
edges must be there:

| fact | field, the first that is there | form |
|---|---|---|
| edges | edges, edge_list, links, edge_index, adjacency, adjacency_list; also in `graph` | see below |
| names | names, agent_names, agents, nodes | list or node → name; of objects their name, label or id |
| family | graphs, family, graph_type, graph_model, graph_generator, generator, topology, model | `ws`, … |
| sample | sample, graph_index, index, i | whole number |
| all three | graph_id, id, name, instance_id, or the file's name | `ws_8_0`: family, size, sample |

Edges are pairs, {"source", "target"} objects, two rows of node ids, or node → neighbors. Any field may hold JSON
text. Without names, names are drawn as for seeded graphs.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.api import derive_seed
from harness.authoring.documents.rows import READERS, read_files
from harness.authoring.networks import Network, draw_names, named
from harness.errors import DataError, Place, SetupError

Row = Mapping[str, Any]

_EDGES = ("edges", "edge_list", "links", "edge_index", "adjacency", "adjacency_list")
_NAMES = ("names", "agent_names", "agents", "nodes")
_FAMILY = ("graphs", "family", "graph_type", "graph_model", "graph_generator", "generator", "topology", "model")
_SAMPLE = ("sample", "graph_index", "index", "i")
_ID = ("graph_id", "id", "name", "instance_id")
_ALIASES = {
    "ws": "small_world",
    "wattsstrogatz": "small_world",
    "smallworld": "small_world",
    "ba": "scale_free",
    "barabasialbert": "scale_free",
    "preferentialattachment": "scale_free",
    "scalefree": "scale_free",
    "dt": "delaunay",
    "delaunay": "delaunay",
    "delaunaytriangulation": "delaunay",
    "geometric": "delaunay",
}

_CODED = re.compile(
    r"(?<![a-z])(ws|ba|dt|small_world|scale_free|delaunay|watts_strogatz|barabasi_albert)[_-](\d+)[_-](\d+)",
    re.IGNORECASE,
)


def networks(dataset_path: str, data_dir: str | None, family: str, size: int, samples: int) -> Iterator[Network]:
    """The first `samples` graphs of `family` with `size` agents.

    Raises:
        SetupError: if a package is missing or the hub cannot be reached.
        DataError: if there are no rows to read, a row is no graph, or there is no such graph.
    """
    where = data_dir or dataset_path
    rows = _local(Path(data_dir).expanduser()) if data_dir else _hub(dataset_path)
    there: Counter[tuple[str, int]] = Counter()
    seen: set[object] = set()
    for number, (place, row) in enumerate(rows):
        try:
            network = network_of(row, number, Path(place.file).stem)
        except (TypeError, ValueError, KeyError, IndexError, RecursionError) as error:
            raise DataError(
                f"a row is no graph ({error}); its fields are {', '.join(map(str, row))}",
                place=place,
                hint="`registry/tasks/agentsnet/_dataset.py` says which fields are read.",
            ) from error
        same = network.family, tuple(network.adjacency.items())
        if same not in seen:
            seen.add(same)
            kind = network.family, len(network.adjacency)
            there[kind] += 1
            if kind == (family, size) and there[kind] <= samples:
                yield network
    if not there[family, size]:
        kinds = ", ".join(f"{name} {n}" for name, n in sorted(there))
        raise DataError(f"{where} has no {family} graph of {size} agents", hint=f"There are: {kinds or 'no graphs'}.")


def network_of(row: Row, number: int, stem: str = "") -> Network:
    """The network in one row. Its number and its file's stem stand in for an id that is not there.

    Raises:
        TypeError, ValueError, KeyError, IndexError or RecursionError: if the row is no graph.
    """
    graph = _value(row, ("graph",))
    inner = graph if isinstance(graph, Mapping) else {}
    label = str(_first(_value(row, _ID), ""))
    coded = _CODED.search(label) or _CODED.search(stem)
    family = str(_first(_value(row, _FAMILY), coded and coded[1], label or "unknown"))
    family = _ALIASES.get(re.sub(r"[^a-z]", "", family.casefold()), family)
    sample = int(_first(_value(row, _SAMPLE), coded and coded[3], number))

    pairs = list(_pairs(_first(_value(row, _EDGES), _value(inner, _EDGES))))
    names = _names(_first(_value(row, _NAMES), _value(inner, _NAMES)))
    ids = list(names) or sorted({node for pair in pairs for node in pair}, key=lambda node: (len(node), node))
    rng = random.Random(derive_seed("agentsnet", family, sample, len(ids)))
    agents = list(names.values()) or draw_names(rng, len(ids))
    place = {name: i for i, name in enumerate(agents)} | {node: i for i, node in enumerate(ids)}
    edges = list({frozenset((place[u], place[v])): (place[u], place[v]) for u, v in pairs}.values())
    if not edges or len(set(agents)) < len(agents) or any(u == v for u, v in edges):
        raise ValueError("it has no edges, an edge from an agent to itself, or two agents of one name")
    return Network(f"{family}-{len(ids)}-{sample}", family, sample, named(agents, edges))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _value(row: Row, fields: Iterable[str]) -> Any:
    """The first field that is there, decoded if it is JSON text."""
    value = next((row[field] for field in fields if row.get(field) is not None), None)
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        return json.loads(value)
    return value


def _names(listed: Any) -> dict[str, str]:
    """Node id → name. A plain list names the nodes 0, 1, … ."""
    if listed is None:
        return {}
    if isinstance(listed, Mapping):
        return {str(node): str(name) for node, name in listed.items()}
    nodes = {}
    for i, node in enumerate(listed):
        if isinstance(node, Mapping):
            given = _first(node.get("id"), i)
            nodes[str(given)] = str(_first(node.get("name"), node.get("label"), given))
        else:
            nodes[str(i)] = str(node)
    # a list of bare numbers lists the nodes, it does not name them
    return {} if all(re.fullmatch(r"\d+", name) for name in nodes.values()) else nodes


def _pairs(edges: Any) -> Iterator[tuple[str, str]]:
    if isinstance(edges, Mapping):
        edges = [(node, neighbor) for node, neighbors in edges.items() for neighbor in neighbors]
    edges = list(edges)
    if len(edges) == 2 and all(len(row) > 2 for row in edges if not isinstance(row, Mapping)):
        edges = list(zip(*edges, strict=True))
    for edge in edges:
        u, v = (edge["source"], edge["target"]) if isinstance(edge, Mapping) else (edge[0], edge[1])
        yield str(u), str(v)


# ------------------------------------------------------------------------------------------- places


def _hub(dataset_path: str) -> Iterator[tuple[Place, Row]]:
    try:
        import datasets
    except ImportError as error:
        raise SetupError(
            "reading a data set needs the `datasets` package", hint="pip install 'mas-eval-harness[data]'"
        ) from error
    try:
        splits = datasets.load_dataset(dataset_path)
    except Exception as error:  # the package raises dozens of kinds
        raise SetupError(
            f"the data set {dataset_path} cannot be loaded: {error}",
            hint="Give a folder with its files as data_dir, or say `source: published`: the same graphs, made here.",
        ) from error
    for split, rows in splits.items():
        for number, row in enumerate(rows, start=1):
            yield Place(f"{dataset_path}[{split}]", number, 1), row


def _local(folder: Path) -> Iterator[tuple[Place, Row]]:
    files = [folder] if folder.is_file() else sorted(folder.rglob("*")) if folder.is_dir() else []
    known = [file for file in files if file.suffix in READERS]
    if not known:
        raise DataError(
            "there is nothing to read", place=Place(str(folder)), hint=f"Looked for {', '.join(READERS)} files."
        )
    return read_files(known, {**READERS, ".json": _json})


def _json(file: Path) -> Iterator[tuple[int, Any]]:
    """Rows in a list, under `data`, or by their id; or one row alone."""
    found = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(found, Mapping) and isinstance(found.get("data"), list):
        found = found["data"]
    if isinstance(found, Mapping) and not any(key in found for key in (*_EDGES, "graph")):
        found = [{"id": key, **value} if isinstance(value, Mapping) else value for key, value in found.items()]
    yield from enumerate(found if isinstance(found, list) else [found], 1)
