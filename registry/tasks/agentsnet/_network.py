"""The base of AgentsNet's five tasks: sources of networks, the round budget, the published suites."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from harness.api import Case, PluginError, Range
from harness.extensions.networks import Family, Network, NetworkTask, adjacency_of, draw_names, seeded

FINAL_ANSWER = "### Final Answer ###"
"""The line that announces the final answer (Section 4, "Final Response")."""


@dataclass(kw_only=True)
class AgentsNetTask(NetworkTask):
    """One problem on many networks.

    Attributes:
        graphs: the family of networks. AgentsNet has small_world, scale_free and delaunay.
        size: the number of agents.
        instances: the number of networks.
        source: "published": the paper's networks (27 of 4, 8 and 16 agents; 81 of 20 to 100), the same for every seed.
            "seeded": new ones of any family and size. "dataset": those of the data set. "edges": the one network in the
            file `edges`; `graphs`, `size` and `instances` have no effect.
        edges: the path of an edge list, one pair of agents per line.
        header: whether the first line of `edges` names the columns; None to guess, with an error if it may be either.
        scoring: "paper" follows Appendix B, see each task's grades. "reference" follows AgentsNet's own code: `solved`
            is a `score` of 1, one invalid answer makes a coloring 0, an incomplete vertex cover scores its coverage,
            and a vertex cover without coordinators has no number (such runs crashed there and seem to have been
            dropped).
        dataset_path: the name of the data set on the hub.
        data_dir: a folder with the data set's files, to read offline.
    """

    graphs: Family = "small_world"
    size: Annotated[int, Range(ge=2)] = 8
    instances: Annotated[int, Range(ge=1)] = 3
    source: Literal["published", "seeded", "dataset", "edges"] = "published"
    edges: str | None = None
    header: bool | None = None
    scoring: Literal["paper", "reference"] = "paper"
    dataset_path: str = "disco-eth/AgentsNet"
    data_dir: str | None = None

    def networks(self, seed: int) -> Iterable[Network]:
        """Yield the networks of `source`.

        Raises:
            PluginError: if there are no such published networks, or `edges` is missing.
            DataError: if a file or the data set cannot be read.
        """
        if self.source == "published":
            return published(self.graphs, self.size, self.instances)
        if self.source == "seeded":
            return seeded(self.graphs, self.size, self.instances, seed)
        if self.source == "dataset":
            from . import _dataset  # what only this source needs

            return _dataset.networks(self.dataset_path, self.data_dir, self.graphs, self.size, self.instances)
        return [self._own(seed)]

    def _own(self, seed: int) -> Network:
        if self.edges is None:
            raise PluginError("source: edges needs a file", hint="Set the path of an edge list: `edges: my.csv`.")
        from . import _edges

        return _edges.read(self.edges, seed, self.header)

    def inputs(self, seed: int) -> tuple[str, ...]:
        """A summary of the network that was read from `edges`."""
        if self.source != "edges":
            return ()
        from . import _edges

        return (f"{self.edges}: {_edges.summary(self._own(seed))}",)

    def rounds(self, case: Case) -> int:
        """Return the paper's round budget (Section 5.1, and Section 5.2 for more than 16 agents).

        It is 2D + 1 for a network of diameter D, so that all agents can ask all others and get an answer. For the local
        problems it is 4, 5 and 6 for up to 4, 8 and 16 agents.

        Raises:
            DataError: if the network is not connected.
        """
        n = len(case.agents)
        if n > 16 or self.is_global:
            return super().rounds(case)
        return 4 if n <= 4 else 5 if n <= 8 else 6


# ------------------------------------------------------------------------- the paper's two suites

PUBLISHED: tuple[Family, ...] = ("small_world", "scale_free", "delaunay")
SUITES = ((4, 8, 16), tuple(range(20, 101, 10)))
"""Numbers of agents in the benchmark of 27 graphs (Section 5.1) and in the scale-up of 81 (Section 5.2)."""


@lru_cache(maxsize=2)
def _draws(sizes: tuple[int, ...]) -> dict[tuple[str, int], list[tuple[int, list[str]]]]:
    """(family, size) → graph seed and names of each of the three samples of a published suite.

    One stream seeded with 42 gives the three graph seeds 1825, 410 and 4507, which every family and size
    share, and then the names, graph by graph. So the names of a graph depend on its place in the suite.
    """
    rng = random.Random(42)
    seeds = [rng.randint(1, 10000) for _ in range(3)]
    return {(family, n): [(seed, draw_names(rng, n)) for seed in seeds] for family in PUBLISHED for n in sizes}


@cache
def _edges_of_published() -> dict[str, str]:
    """ "family size seed" → the edges of a published graph, "0-1 0-3 …".

    They are kept as data, because a later version of networkx or scipy may draw other graphs from the same seed, and
    because both take longer to import than a short run plays. A test draws them again.
    """
    graphs: dict[str, str] = json.loads(Path(__file__).with_name("_published.json").read_bytes())
    return graphs


def published(family: Family, size: int, samples: int) -> Iterator[Network]:
    """Yield graphs of the paper's two suites.

    Raises:
        PluginError: for a family, size or number of samples that the paper does not have.
    """
    suite = next((sizes for sizes in SUITES if size in sizes), None)
    if suite is None or family not in PUBLISHED or samples > 3:
        sizes = ", ".join(str(n) for sizes in SUITES for n in sizes)
        raise PluginError(
            f"the published suites have no {samples} {family} graphs of {size} agents",
            hint=f"They have 3 samples of {', '.join(PUBLISHED)} with {sizes} agents each. "
            "For other networks use `source: seeded`.",
        )
    for sample, (seed, agents) in enumerate(_draws(suite)[family, size][:samples]):
        pairs = (pair.split("-") for pair in _edges_of_published()[f"{family} {size} {seed}"].split())
        adjacency = adjacency_of(agents, ((int(u), int(v)) for u, v in pairs))
        yield Network(f"{family}-{size}-{sample}", family, sample, adjacency)
