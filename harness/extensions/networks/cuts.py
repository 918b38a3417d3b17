"""How an input is cut into one shard per agent, and put together again.

An input is a list, a text, or a mapping of several that are cut alike. What puts shards together sees nothing but the
shards, so a truth over the whole input is one that agents can work out.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.api.errors import PluginError

Sequenced = list[Any] | str
Positions = Sequence[Sequence[int]]
"""For each agent the places of its items in the input."""


def contiguous(size: int, agents: int, overlap: int = 0) -> Sequence[range]:
    """Consecutive parts of equal size, as far as possible, each with the first `overlap` items after it."""
    ends = [i * size // agents for i in range(agents + 1)]
    return [range(start, min(size, end + overlap)) for start, end in itertools.pairwise(ends)]


def interleaved(size: int, agents: int) -> Sequence[range]:
    """Items dealt out in turn."""
    return [range(i, size, agents) for i in range(agents)]


def shuffled(size: int, agents: int, rng: random.Random) -> Positions:
    """Consecutive parts of the items in random order."""
    order = list(range(size))
    rng.shuffle(order)
    return [order[part.start : part.stop] for part in contiguous(size, agents)]


def keyed(values: Sequence[Any], agents: int, number: Callable[[Any, int], Any]) -> Positions:
    """Every item to the agent that `number(item, place)` names.

    Raises:
        PluginError: if that is not the number of an agent.
    """
    places: list[list[int]] = [[] for _ in range(agents)]
    for place, value in enumerate(values):
        agent = number(value, place)
        if type(agent) is not int or not 0 <= agent < agents:
            raise PluginError(
                f"the item {value!r:.60} goes to agent {agent!r:.40}, and there are agents 0 to {agents - 1}",
                hint="Write … % agents to stay within them.",
            )
        places[agent].append(place)
    return places


def cut(values: Any, agents: int, places: Callable[[Sequenced], Positions]) -> list[Any]:
    """Return the shards of an input.

    Args:
        values: the input.
        agents: the number of agents.
        places: gives for a list or text the places of each agent's items.

    Raises:
        PluginError: if the input is not of this kind.
    """
    if isinstance(values, Mapping):
        parts = {key: cut(value, agents, places) for key, value in values.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(agents)]
    if isinstance(values, str):
        return ["".join(_items_at(values, part)) for part in places(values)]
    if isinstance(values, list):
        return [_items_at(values, part) for part in places(values)]
    raise PluginError(f"data is {values!r:.60}; only a list, a text, or a mapping of them can be cut")


def _items_at(values: Sequenced, places: Sequence[int]) -> list[Any]:
    if isinstance(places, range):
        return list(values[places.start : places.stop : places.step])
    return [values[place] for place in places]


def put_together(shards: Sequence[Any], how: Callable[[Sequence[Any]], list[Any]] | None = None) -> Any:
    """Return the input of these shards.

    Args:
        shards: lists, texts, or mappings of them; all alike.
        how: gives the items of several shards in their order; by default one shard after another.

    Raises:
        PluginError: for other shards.
    """
    first = shards[0] if shards else []
    if isinstance(first, Mapping) and all(isinstance(one, Mapping) for one in shards):
        return {key: put_together([one[key] for one in shards], how) for key in first}
    if not isinstance(first, (list, str)) or any(type(one) is not type(first) for one in shards):
        raise PluginError(
            f"shards such as {first!r:.60} are not part of one input",
            hint="A list, a text or a mapping of them can be put together; other shards have the name `shards` alone.",
        )
    items = [item for shard in shards for item in shard] if how is None else how(shards)
    return "".join(items) if isinstance(first, str) else items


def dealt(shards: Sequence[Any]) -> list[Any]:
    """The items of interleaved shards in their order."""
    longest = max(map(len, shards), default=0)
    return [shard[turn] for turn in range(longest) for shard in shards if turn < len(shard)]


def without_overlap(shards: Sequence[Any], overlap: int) -> list[Any]:
    """The items of overlapping shards, each once."""
    own: list[Any] = []
    after = 0
    for shard in reversed(shards):
        count = len(shard) - min(overlap, after)
        own.append(shard[:count])
        after += count
    return [item for shard in reversed(own) for item in shard]
