"""A quick spec of every family, for the small real model through llama.cpp and vLLM: one episode, few tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import storage

MOST = 40
SHORT = ("generation_kwargs.temperature=0.0", f"generation_kwargs.max_tokens={MOST}")
QUESTIONS: dict[str, Any] = {"use": "arithmetic", "size": 1, "terms": 2, "digits": 1, "operators": "+"}
PANEL: dict[str, Any] = {
    "name": "panel",
    "task": QUESTIONS,
    "protocol": {"use": "discussion", "max_rounds": 1, "agents": 2},
    "prompts": "panels/standard",
    "metrics": ["score", "calls"],
}
FAMILIES: dict[str, tuple[str | Mapping[str, Any], tuple[str, ...]]] = {
    "agentsnet": (
        "agentsnet_quick",
        ("matrix.problem=[consensus]", "matrix.graphs=[small_world]", "protocol.rounds=1", "protocol.max_chars=12"),
    ),
    "dpbench": ("dpbench_quick", ("matrix.condition=[sim3nc]", "repeats=1", "protocol.max_timesteps=1")),
    "silo": (
        "silo_quick",
        ("matrix.agents=[2]", "matrix.problem=[global_maximum]", "matrix.protocol=[P2P]", "protocol.max_rounds=1"),
    ),
    "mas_bench": (
        "mas_quick",
        (
            *("matrix.agents=[1]", "matrix.items=[2]", "matrix.condition=[Base]", "matrix.backend=[P2P]"),
            "protocol.max_rounds=1",
        ),
    ),
    "openspiel": (
        "repeated_dilemmas",
        ("matrix.stage=[prisoners dilemma]", "matrix.against=[itself]", "protocol.max_timesteps=2"),
    ),
    "world": ("tiny", ("matrix.condition=[chain]",)),
}
LONG = ("mas_bench", "silo")
"""Families whose replies may be longer than the bound."""
families = pytest.mark.parametrize("family", sorted(FAMILIES))


def moves(folder: Path) -> list[dict[str, Any]]:
    """The moves in a run's journal."""
    return [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]


def replies(folder: Path) -> dict[str, list[Any]]:
    """Episode → its moves, without what a clock says."""
    found: dict[str, list[Any]] = {}
    for move in moves(folder):
        texts = [call.get("text") for call in move["calls"]]
        found.setdefault(move["e"], []).append((move["b"], move["s"], json.dumps(move["a"]), texts))
    return {episode: sorted(each) for episode, each in found.items()}


def check_played(folder: Path, family: str) -> None:
    """Every move was answered in bounds; what decoding is held to was read, unless it was cut off."""
    played = moves(folder)
    calls = [call for move in played for call in move["calls"]]
    assert calls and all(0 < call["output_tokens"] <= MOST < call["input_tokens"] for call in calls)
    unread = [move for move in played if move.get("error")]
    assert {(move["error_kind"], move["calls"][-1]["finish_reason"]) for move in unread} <= {("parse", "length")}
    if family not in LONG:
        assert len(unread) < len(played)


def check_heard(folder: Path) -> None:
    """Later prompts of a panel are longer than the first ones: they hold what others said."""
    tokens: dict[int, list[int]] = {}
    for move in moves(folder):
        tokens.setdefault(move["b"], []).append(move["calls"][0]["input_tokens"])
    assert len(tokens) > 1 and min(tokens[max(tokens)]) > max(tokens[0])
