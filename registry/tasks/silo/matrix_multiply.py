"""SILO-Bench III-30 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import mul

from harness.api import Facts, plugin
from harness.extensions.networks.answers import ROWS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class MatrixMultiply(ShardedTask):
    """III-30 Matrix Multiply: the product of two square matrices, one held by rows, the other by columns.

    An agent holds k rows of A and k columns of B, both of N·k integers from 1 to 10.
    """

    items: Items = 1

    problem = "III-30"
    level = "III"
    question = (
        "Multiply two matrices distributed among the agents. A and B have {dim} rows and {dim} columns each. Agent 0 "
        "holds rows [0, k) of A and columns [0, k) of B, Agent 1 holds rows [k, 2k) of A and columns [k, 2k) "
        'of B, and so on, with k = {items}; under "rows" every list is one row of A, and under "columns" every list is '
        "one column of B, from top to bottom. The entry of C = A * B in row r and column c is the sum over all t of "
        "A[r][t] * B[t][c]. The answer is the complete matrix C."
    )
    form = ROWS
    credit = "cells"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[dict[str, list[list[int]]]], Facts]:
        """Uniform integers."""
        dim = n * self.items

        def lists() -> list[list[int]]:
            return [[rng.randint(1, 10) for _ in range(dim)] for _ in range(self.items)]

        return [{"rows": lists(), "columns": lists()} for _ in range(n)], {"dim": dim}

    def solve(self, shards: Sequence[dict[str, list[list[int]]]], public: Facts) -> list[list[int]]:
        """Rows times columns."""
        columns = [column for shard in shards for column in shard["columns"]]
        return [[sum(map(mul, row, column)) for column in columns] for shard in shards for row in shard["rows"]]
