"""Agents that act by themselves, through their seat's MCP server (`interface: mcp`)."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import builtin
from harness.storage import journals
from harness.storage.finished_episodes import batches
from tests.helpers.acting import ACTS, Writer

SPECS = {
    "agentsnet_quick": ("matrix.problem=[matching]", "matrix.graphs=[small_world]"),
    "silo_quick": (),
    "silo_calls": (),
    "mas_quick": (),
    "dpbench_quick": (),
    "game_suite": ("matrix.game=[tic_tac_toe]",),
    "worlds/commons": (),
    "worlds/dining_table": (),
}
"""Spec → changes that make it small: messages and choices, calls, submissions, legal moves, actions with parameters."""


def moves(folder: Path) -> dict[str, list[list[tuple[str, str, Any, str | None]]]]:
    """Episode → its moves, batch by batch: (agent, turn, action, error)."""
    return {
        str(end["e"]): [[(move.agent, move.turn, move.action, move.error) for move in batch] for batch in played]
        for end, played in batches(*journals(folder))
    }


@pytest.mark.parametrize("spec", SPECS)
def test_an_agent_that_acts_makes_the_moves_of_one_that_writes(spec: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"overrides": SPECS[spec], "limit": 1, "project": builtin()}
    written = harness.evaluate(spec, Writer(), output_path=tmp_path / "written", **how)
    assert written.scores and not written.failed and ACTS
    acting = {"call": "tests.helpers.acting:play", "interface": "mcp", "concurrency": 200}
    acted = harness.evaluate(spec, "agent", model_args=acting, output_path=tmp_path / "acted", **how)
    assert not acted.failed
    assert moves(tmp_path / "acted") == moves(tmp_path / "written")
    assert [score.numbers for score in acted.scores] == [score.numbers for score in written.scores]
