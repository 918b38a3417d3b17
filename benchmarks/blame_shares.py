"""How often the 95 % intervals of sampled shares cover the Shapley value, and what symmetric agents get.

    python benchmarks/blame_shares.py [--games N]

Games of 8, 16 and 30 agents whose values are known: each adds a number of its own (additive), so many are needed
(threshold), two certain ones (unanimity), one of three (substitutes), a majority of votes. N of each are drawn; shares
are sampled by 32 permutations, as `harness blame` does by default.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable
from fractions import Fraction
from math import comb

from harness.extensions.blame.shares import AgentGame, Coalition, Share

Worth = Callable[[Coalition], Fraction]
Game = tuple[Worth, dict[str, Fraction]]
"""What a coalition is worth, and each agent's Shapley value."""
SIZES = (8, 16, 30)
PERMUTATIONS = 32


def additive(agents: list[str], rng: random.Random) -> Game:
    """Each adds a number of its own; a tenth of the agents take away."""
    own = {agent: Fraction(rng.randint(1, 9) * (-1 if rng.random() < 0.1 else 1), 100) for agent in agents}
    return lambda coalition: sum((own[a] for a in coalition), Fraction(0)), own


def threshold(agents: list[str], rng: random.Random) -> Game:
    """So many are needed, whoever they are."""
    needed = rng.randint(1, len(agents))
    return lambda coalition: Fraction(len(coalition) >= needed), dict.fromkeys(agents, Fraction(1, len(agents)))


def unanimity(agents: list[str], rng: random.Random) -> Game:
    """Two certain agents are needed."""
    both = frozenset(rng.sample(agents, 2))
    return lambda coalition: Fraction(both <= coalition), {a: Fraction(a in both, 2) for a in agents}


def substitutes(agents: list[str], rng: random.Random) -> Game:
    """One of three certain agents is enough."""
    three = frozenset(rng.sample(agents, 3))
    return lambda coalition: Fraction(bool(three & coalition)), {a: Fraction(a in three, 3) for a in agents}


def majority(agents: list[str], rng: random.Random) -> Game:
    """More than half of all votes are needed; agents have one to five."""
    votes = {agent: rng.randint(1, 5) for agent in agents}
    total, n = sum(votes.values()), len(agents)
    values = {}
    for agent in agents:
        ways = {(0, 0): 1}  # (how many others, their votes) -> coalitions
        for other in agents:
            if other != agent:
                more = {(k + 1, v + votes[other]): count for (k, v), count in ways.items()}
                ways = {key: ways.get(key, 0) + more.get(key, 0) for key in ways.keys() | more.keys()}
        turned = ((k, count) for (k, v), count in ways.items() if 2 * v <= total < 2 * (v + votes[agent]))
        values[agent] = sum((Fraction(count, n * comb(n - 1, k)) for k, count in turned), Fraction(0))
    return lambda coalition: Fraction(2 * sum(votes[a] for a in coalition) > total), values


GAMES = {one.__name__: one for one in (additive, threshold, unanimity, substitutes, majority)}


def sampled(agents: list[str], worth: Worth, seed: int) -> dict[str, Share]:
    """Shares of a game in which every agent deviates."""

    async def play(coalition: Coalition) -> tuple[Fraction, Coalition]:
        return worth(coalition), frozenset()

    return asyncio.run(AgentGame(agents, play).shares(PERMUTATIONS, seed))


def row(kind: str, size: int, games: int) -> dict[str, object]:
    """How often intervals cover, how many have no width, how wide they are, and how far equal agents are apart."""
    rng, agents = random.Random(f"{kind} {size}"), [f"A{i}" for i in range(size)]
    covers, widths, none, apart, off = list[bool](), list[float](), 0, Fraction(0), Fraction(0)
    for number in range(games):
        worth, values = GAMES[kind](agents, rng)
        shares = sampled(agents, worth, number)
        equal: dict[Fraction, list[Fraction]] = {}
        for agent, share in shares.items():
            equal.setdefault(values[agent], []).append(share.value)
            off = max(off, abs(share.value - values[agent]))
            if share.low is None or share.high is None:
                none += 1
                continue
            covers.append(share.low - 1e-9 <= values[agent] <= share.high + 1e-9)
            widths.append(share.high - share.low)
        apart = max(apart, *(max(own) - min(own) for own in equal.values()))
    return {
        "game": kind,
        "agents": size,
        "covered": f"{sum(covers) / len(covers):.3f}" if covers else "exact",
        "zero width": sum(width == 0 for width in widths),
        "mean width": f"{sum(widths) / len(widths):.3f}" if widths else "-",
        "without": f"{none / (games * size):.2f}",
        "equal agents apart by": f"{float(apart):.3f}",
        "off by at most": f"{float(off):.3f}",
    }


def main(games: int) -> None:
    """Print a table."""
    rows = [row(kind, size, games) for kind in GAMES for size in SIZES]
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for one in rows:
        print("| " + " | ".join(map(str, one.values())) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=100)
    main(parser.parse_args().games)
