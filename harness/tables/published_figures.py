"""Figures that papers have published, as plain data. The extension `analysis` reads them from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One published figure, with its standard error or standard deviation as printed.

    `overall` marks the figure of a row's summary column.
    """

    labels: Mapping[str, Any]
    metric: str
    value: float
    stderr: float | None = None
    n: int | None = None
    overall: bool = False
    std: float | None = None


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One published table.

    Attributes:
        id: what a spec's `published:` names, e.g. "agentsnet/table2".
        source: publication and table, e.g. "AgentsNet, Table 2".
        covers: label → the values its figures were averaged over; where a run differs, the table says so.
        warnings: what a reader must know before comparing.
        profile: the spec that plays as the figures were made; None if there is none.
        differs: how the run beside it is another game than that; None if it is not, or nothing was compared.
    """

    id: str
    source: str
    title: str
    records: tuple[PublishedFigure, ...]
    covers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    profile: str | None = None
    differs: str | None = None
