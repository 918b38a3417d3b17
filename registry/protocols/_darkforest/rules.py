"""DarkForest's choices as values: those of the paper, and presets with those of its public artifact.

A preset is only a mapping: YAML can set each of its parameters. Agents stand for the artifact's models in the order of
its panels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from harness.api import PluginError

from .belief import TIES, Backing, Term, Tie
from .disclosure import SUMMARY, Disclosure, Field

Preset = Literal[
    "paper",
    "artifact/math",
    "artifact/humaneval",
    "artifact/mmlu_pro",
    "artifact/gpqa",
    "artifact/finqa",
    "artifact/legalbench",
]
Terms = Literal["uniform", "agent", "full"]
Outputs = Literal["valid", "all"]
"""The outputs over which a share of correct ones is taken: those with an answer, or all."""
Coordinate = Literal["always", "doubt", "disagreement", "uncertain", "never"]
"""When the coordinator acts."""
Unusable = Literal["none", "top", "anchor"]
"""What counts if the coordinator's reply has no answer and no candidate is trusted."""

TERMS: Mapping[str, tuple[Term, ...]] = {"uniform": (), "agent": ("agent",), "full": get_args(Term)}


@dataclass(frozen=True)
class Rules:
    """Every choice. Fields are `DarkForest`'s parameters of the same names; defaults are the paper's."""

    terms: tuple[Term, ...] = TERMS["full"]
    correlated: tuple[tuple[str, str], ...] = ()
    ties: tuple[Tie, ...] = TIES
    priority: tuple[str, ...] = ()
    min_count: int = 5
    fallback: float = 1.0
    c_miss: float = 0.5
    c_min: float = 0.1
    c_max: float = 0.9
    lambda_mal: float = 0.5
    lambda_min: float = 0.1
    gamma: float = 0.5
    gamma_min: float = 0.2
    alpha_over: Outputs = "valid"
    alpha_by: str = ""
    quality_over: Outputs = "valid"
    tau_u: float = 0.60
    tau_delta: float = 0.15
    coordinator: str = "Coordinator"
    coordinate: Coordinate = "always"
    compared: tuple[str, ...] = ()
    anchor: str = ""
    unusable: Unusable = "none"
    guardrail: bool = True
    k: int = 2
    tau_p: float = 0.66
    tau_m: float = 0.25
    trusts: tuple[Backing, ...] = ("size",)
    trusts_by: Literal["all", "any"] = "all"
    patterns: tuple[tuple[str, ...], ...] = ()
    accept: float = 0.75
    anchor_posterior: float | Literal["never"] = "never"
    disclosure: Disclosure | tuple[Field, ...] = "belief_summary"
    summary: tuple[Field, ...] = SUMMARY
    reasoning_chars: int = 900
    trace_chars: int | Literal["all"] = "all"
    max_clusters: int | Literal["all"] = "all"
    digits: int = 3

    @property
    def disclosed(self) -> tuple[Field, ...]:
        """The fields that the coordinator sees."""
        more: dict[str, tuple[Field, ...]] = {"reasoning_summary": ("reasoning",), "full_traces": ("trace",)}
        if isinstance(self.disclosure, str):
            return (*self.summary, *more.get(self.disclosure, ()))
        return self.disclosure


A, B, C = "Agent-0", "Agent-1", "Agent-2"
_AGENT: tuple[Field, ...] = ("answer", "canonical", "status", "error")
_BLOCK: tuple[Field, ...] = ("posterior", "margin", "disagreement", "uncertain", "clusters")

_CHOICE: Mapping[str, Any] = {
    "terms": ("agent", "pattern"),
    "alpha_over": "all",
    "quality_over": "all",
    "ties": ("support", "candidate"),
    "guardrail": False,
    "trusts": ("size", "pattern", "reliable"),
    "patterns": ((A, B), (A, B, C)),
    "compared": (A, B),
    "summary": (*_AGENT, "option", "top", *_BLOCK, "pattern"),
    "trace_chars": 3000,
    "max_clusters": 3,
    "digits": 4,
}
_PROFESSIONAL: Mapping[str, Any] = {
    "terms": ("agent", "pattern"),
    "quality_over": "all",
    "ties": ("support", "order", "candidate"),
    "min_count": 3,
    "tau_m": 0.20,
    "coordinator": A,
    "trusts": ("size", "reliable", "only"),
    "trusts_by": "any",
    "summary": (*_AGENT, "top", *_BLOCK, "pattern"),
    "trace_chars": 3000,
    "max_clusters": 4,
    "digits": 4,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "artifact/math": {  # panel: qwen, mathstral twice
        "correlated": ((B, C),),
        "ties": ("order", "candidate"),
        "priority": (B, C, A),  # patterns as text: mathstral_1, mathstral_2, qwen
        "min_count": 10,
        "quality_over": "all",
        "coordinator": A,
        "guardrail": False,
        "summary": (*_AGENT, "confidence", "top", *_BLOCK, "counts", "score", "imputed", "guidance"),
        "reasoning_chars": 3000,
        "trace_chars": 3000,
        "digits": 16,
    },
    "artifact/humaneval": {  # qwen, qwen coder, mathstral
        "terms": ("agent", "pattern"),
        "alpha_over": "all",
        "quality_over": "all",
        "ties": ("support", "order"),
        "priority": (C, A, B),  # patterns as text: mathstral, qwen, qwen_coder
        "tau_m": 0.20,
        "coordinator": B,
        "anchor": B,
        "unusable": "anchor",
        "anchor_posterior": 0.80,
        "summary": (*_AGENT, *_BLOCK),
        "trace_chars": 4000,
        "max_clusters": 3,
        "digits": 4,
    },
    "artifact/mmlu_pro": {**_CHOICE, "coordinator": B},
    "artifact/gpqa": {**_CHOICE, "coordinator": A, "coordinate": "doubt", "anchor": A, "unusable": "anchor"},
    "artifact/finqa": {**_PROFESSIONAL, "alpha_over": "all"},  # its categories are one: reliability over all its rows
    "artifact/legalbench": {**_PROFESSIONAL, "alpha_by": "legal_task"},
}
"""Preset → parameters in which it differs from the paper."""


def rules_of(preset: str, parameters: Mapping[str, Any]) -> Rules:
    """Return the preset's rules; a parameter that is not None overrides the preset's.

    Raises:
        PluginError: for numbers that are not finite, a lower bound above its upper bound, and pairs of other than two
            agents.
    """
    for name, value in parameters.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise PluginError(f"{name} is {value}; it must be a finite number", at=(name,))
    overrides = {name: _frozen(value) for name, value in parameters.items() if value is not None}
    if isinstance(overrides.get("terms"), str):
        overrides["terms"] = TERMS[overrides["terms"]]
    rules = Rules(**{**PRESETS[preset], **overrides})
    if rules.c_min > rules.c_max:
        raise PluginError(f"c_min is {rules.c_min}, above c_max: {rules.c_max}", at=("c_min",))
    for pair in rules.correlated:
        if len(set(pair)) != 2 or len(pair) != 2:
            hint = "Write correlated: [[Agent-0, Agent-1]]. Three correlated agents are three pairs."
            raise PluginError(f"correlated has {list(pair)}, not a pair of agents", hint=hint, at=("correlated",))
    if rules.unusable == "anchor" and not rules.anchor:
        raise PluginError("unusable: anchor needs an anchor", hint="Set `anchor` to an agent.", at=("unusable",))
    return rules


def agent_references(rules: Rules) -> tuple[tuple[str, str], ...]:
    """Return (parameter, agent) for every member of the panel that the rules name."""
    agents_by_parameter: dict[str, tuple[str, ...]] = {
        "correlated": tuple(agent for pair in rules.correlated for agent in pair),
        "priority": rules.priority,
        "compared": rules.compared,
        "anchor": (rules.anchor,) if rules.anchor else (),
        "patterns": tuple(agent for pattern in rules.patterns for agent in pattern),
    }
    return tuple(dict.fromkeys((name, agent) for name, agents in agents_by_parameter.items() for agent in agents))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


PARAMETERS = tuple(field.name for field in fields(Rules))
