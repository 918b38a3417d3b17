"""Independent solutions of II-17 to III-30: naive definitions, exact numbers, and library algorithms."""

import statistics
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import networkx as nx

from tests.benchmarks.silo.brute_base import Brute, flat


def exact(number: float) -> Fraction:
    """What is printed, as a fraction."""
    return Fraction(str(number))


def diff_array(shards: list[list[int]], known: dict[str, Any]) -> list[int]:
    everything = flat(shards)
    return [everything[j] - everything[j - 1] for j in range(1, len(everything))]


def list_ranking(shards: list[list[dict[str, int]]], known: dict[str, Any]) -> dict[str, int]:
    """All nodes but those from this one to the tail lie before it."""
    after = {node["id"]: node["next"] for node in flat(shards)}

    def to_tail(node: int) -> int:
        links = 0
        while (node := after[node]) != -1:
            links += 1
        return links

    return {str(node): len(after) - 1 - to_tail(node) for node in after}


def pipeline_hash(shards: list[list[str]], known: dict[str, Any]) -> list[list[int]]:
    """Each block on its own, from the beginning of the text of all blocks."""
    blocks = flat(shards)

    def hashed(upto: int) -> int:
        value = 0
        for block in blocks[: upto + 1]:
            value = ((sum(block.encode("ascii")) % 10000) ^ value) % 10000
        return value

    starts = [sum(map(len, shards[:i])) for i in range(len(shards))]
    return [[hashed(start + j) for j in range(len(shard))] for start, shard in zip(starts, shards, strict=True)]


def distributed_sort(shards: list[list[int]], known: dict[str, Any]) -> list[Any]:
    everything = flat(shards)
    counted = [value for value in range(1, 1001) for _ in range(everything.count(value))]
    size = len(shards[0])
    return counted if known["output"] == "global" else [counted[i : i + size] for i in range(0, len(counted), size)]


def graph(shards: list[Any], known: dict[str, Any], kind: Any = nx.Graph) -> Any:
    result = kind()
    result.add_nodes_from(range(known["nodes"]))
    result.add_edges_from(flat(shards))
    return result


def bfs_distance(shards: list[Any], known: dict[str, Any]) -> dict[str, int]:
    mapping = dict(nx.single_source_shortest_path_length(graph(shards, known), 0))
    return {str(node): mapping.get(node, -1) for node in range(known["nodes"])}


def k_means_iteration(shards: list[Any], known: dict[str, Any]) -> list[list[float]]:
    centroids = [[exact(value) for value in centroid] for centroid in known["centroids"]]
    members: list[list[list[Fraction]]] = [[] for _ in centroids]
    for point in flat(shards):
        place = [exact(value) for value in point]
        distances = [(place[0] - c[0]) ** 2 + (place[1] - c[1]) ** 2 for c in centroids]
        members[min(range(len(centroids)), key=lambda i: (distances[i], i))].append(place)
    return [
        [float(statistics.mean(p[axis] for p in inside)) if inside else float(centroid[axis]) for axis in (0, 1)]
        for centroid, inside in zip(centroids, members, strict=True)
    ]


def global_distinct(shards: list[list[int]], known: dict[str, Any]) -> int:
    ordered = sorted(flat(shards))
    return 1 + sum(a != b for a, b in pairwise(ordered))


def scores(shards: list[Any]) -> list[tuple[float, int, int]]:
    """All matches, best first."""
    users, items = (flat([shard[kind] for shard in shards]) for kind in ("users", "items"))
    every = [
        (-round(sum([a * b for a, b in zip(user["vector"], item["vector"], strict=True)]), 4), user["id"], item["id"])
        for user, item in product(users, items)
    ]
    return [(-minus, user, item) for minus, user, item in sorted(every)]


def collaborative_filtering(shards: list[Any], known: dict[str, Any]) -> list[list[float]]:
    return [[user, item, score] for score, user, item in scores(shards)[:3]]


def pagerank_step(shards: list[Any], known: dict[str, Any]) -> dict[str, float]:
    web, n = graph(shards, known, nx.DiGraph), known["nodes"]
    shares = {v: sum(Fraction(1, n * web.out_degree(u)) for u in web.predecessors(v)) for v in web}
    return {str(v): float(Fraction(15, 100) / n + Fraction(85, 100) * share) for v, share in shares.items()}


def load_balance(shards: list[Any], known: dict[str, Any]) -> dict[str, float]:
    loads = [0] * int(known["workers"])
    tasks = sorted(flat(shards), key=lambda task: int(task["id"]))
    for task in sorted(tasks, key=lambda task: int(task["dur"]), reverse=True):  # stable: equal ones stay in order
        loads[loads.index(min(loads))] += task["dur"]
    variance = statistics.pvariance([Fraction(load) for load in loads])
    return {"variance": float(variance), "max_load": max(loads), "min_load": min(loads)}


def matrix_multiply(shards: list[Any], known: dict[str, Any]) -> list[list[int]]:
    a: Sequence[Sequence[int]] = flat([shard["rows"] for shard in shards])
    columns = flat([shard["columns"] for shard in shards])
    b = [[columns[c][r] for c in range(known["dim"])] for r in range(known["dim"])]
    c = [[0] * known["dim"] for _ in a]
    for r, row in enumerate(a):
        for t, factor in enumerate(row):
            c[r] = [entry + factor * other for entry, other in zip(c[r], b[t], strict=True)]
    return c


SOLUTIONS: dict[str, Brute] = {
    "diff_array": diff_array,
    "list_ranking": list_ranking,
    "merge_neighbors": lambda shards, known: sorted(set(flat(shards))),
    "pipeline_hash": pipeline_hash,
    "distributed_sort": distributed_sort,
    "median_of_medians": lambda shards, known: statistics.median_high(flat(shards)),
    "graph_components": lambda shards, known: nx.number_connected_components(graph(shards, known)),
    "bfs_distance": bfs_distance,
    "k_means_iteration": k_means_iteration,
    "global_distinct": global_distinct,
    "collaborative_filtering": collaborative_filtering,
    "pagerank_step": pagerank_step,
    "load_balance": load_balance,
    "matrix_multiply": matrix_multiply,
}
