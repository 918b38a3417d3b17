"""Bounds of networks that a spec asks for: generators of networkx that draw without end are stopped."""

import random

import networkx as nx
import pytest

from harness.extensions.yaml_tasks import graph_bounds as bounds


def test_draws_are_those_of_a_plain_generator() -> None:
    drawn, plain = bounds.Draws(7, bounds.deadline()), random.Random(7)
    assert [drawn.random(), drawn.randrange(9), drawn.gauss(0, 1)] == [
        plain.random(),
        plain.randrange(9),
        plain.gauss(0, 1),
    ]


def test_drawing_without_end_is_stopped() -> None:
    with pytest.raises(bounds.TooMuchError):  # each step of it takes 10**12 draws
        nx.duplication_divergence_graph(9, 1e-12, seed=bounds.Draws(7, 0.0))
