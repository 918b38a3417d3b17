"""The published graphs from the data set `disco-eth/AgentsNet`, or from files in its form.

This reader was written without access to the hub, so it is tolerant. It expects one row per graph (further rows with
the same graph, such as one for each task, are left out) with these fields, of which only the edges are required:

| fact | fields, in order of precedence | form |
|---|---|---|
| edges | edges, edge_list, links, edge_index, adjacency, adjacency_list; also in `graph` | see below |
| names | names, agent_names, agents, nodes | list or node → name; of objects their name, label or id |
| family | graphs, family, graph_type, graph_model, graph_generator, generator, topology, model | `ws`, … |
| sample | sample, graph_index, index, i | whole number |
| all three | graph_id, id, name, instance_id, or the file's name | `ws_8_0`: family, size, sample |

Edges are pairs, {"source", "target"} objects, two rows of node ids, or node → neighbors. Any field may be JSON
text. Without names the names are drawn as for seeded graphs.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.api import DataError, Place, SetupError, derive_seed
from harness.extensions.datasets.rows import READERS, read_files
from harness.extensions.networks import Network, adjacency_of, draw_names

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
    """Yield the first `samples` graphs of `family` with `size` agents.

    Raises:
        SetupError: if a package is missing or the hub cannot be reached.
        DataError: if there are no rows, a row is not a graph, or there is no such graph.
    """
    where = data_dir or dataset_path
    rows = _local(Path(data_dir).expanduser()) if data_dir else _hub(dataset_path)
    counts: Counter[tuple[str, int]] = Counter()
    seen: set[object] = set()
    for number, (place, row) in enumerate(rows):
        try:
            network = network_of(row, number, Path(place.file).stem)
        except (TypeError, ValueError, KeyError, IndexError, RecursionError) as error:
            raise DataError(
                f"a row is not a graph ({error}); its fields are {', '.join(map(str, row))}",
                place=place,
                hint="`registry/tasks/agentsnet/_dataset.py` lists the fields.",
            ) from error
        key = network.family, tuple(network.adjacency.items())
        if key not in seen:
            seen.add(key)
            kind = network.family, len(network.adjacency)
            counts[kind] += 1
            if kind == (family, size) and counts[kind] <= samples:
                yield network
    if not counts[family, size]:
        kinds = ", ".join(f"{name} {n}" for name, n in sorted(counts))
        raise DataError(f"{where} has no {family} graph of {size} agents", hint=f"Available: {kinds or 'no graphs'}.")


def network_of(row: Row, number: int, stem: str = "") -> Network:
    """Return the network in one row. The row's number and its file's stem replace a missing id.

    Raises:
        TypeError, ValueError, KeyError, IndexError or RecursionError: if the row is not a graph.
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
    index = {name: i for i, name in enumerate(agents)} | {node: i for i, node in enumerate(ids)}
    edges = list({frozenset((index[u], index[v])): (index[u], index[v]) for u, v in pairs}.values())
    if not edges or len(set(agents)) < len(agents) or any(u == v for u, v in edges):
        raise ValueError("it has no edges, an edge from an agent to itself, or two agents with one name")
    return Network(f"{family}-{len(ids)}-{sample}", family, sample, adjacency_of(agents, edges))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _value(row: Row, fields: Iterable[str]) -> Any:
    """Return the first field with a value, decoded if it is JSON text."""
    value = next((row[field] for field in fields if row.get(field) is not None), None)
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        return json.loads(value)
    return value


def _names(names: Any) -> dict[str, str]:
    """Return node id → name. A plain list names the nodes 0, 1, …"""
    if names is None:
        return {}
    if isinstance(names, Mapping):
        return {str(node): str(name) for node, name in names.items()}
    nodes = {}
    for i, node in enumerate(names):
        if isinstance(node, Mapping):
            node_id = _first(node.get("id"), i)
            nodes[str(node_id)] = str(_first(node.get("name"), node.get("label"), node_id))
        else:
            nodes[str(i)] = str(node)
    # A list of bare numbers has node ids, not names.
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
            hint="Set data_dir to a folder with its files, or use `source: published`: the same graphs, generated.",
        ) from error
    for split, rows in splits.items():
        for number, row in enumerate(rows, start=1):
            yield Place(f"{dataset_path}[{split}]", number, 1), row


def _local(folder: Path) -> Iterator[tuple[Place, Row]]:
    files = [folder] if folder.is_file() else sorted(folder.rglob("*")) if folder.is_dir() else []
    readable = [file for file in files if file.suffix in READERS]
    if not readable:
        raise DataError(
            "there is nothing to read", place=Place(str(folder)), hint=f"Looked for {', '.join(READERS)} files."
        )
    return read_files(readable, {**READERS, ".json": _json})


def _json(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number, row) of a list, of the list `data`, of a mapping id → row, or of a single row."""
    value = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(value, Mapping) and isinstance(value.get("data"), list):
        value = value["data"]
    if isinstance(value, Mapping) and not any(key in value for key in (*_EDGES, "graph")):
        value = [{"id": key, **row} if isinstance(row, Mapping) else row for key, row in value.items()]
    yield from enumerate(value if isinstance(value, list) else [value], 1)
