"""What an extension offers, found by its name, or all of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from harness.api.errors import SetupError, UserError
from harness.plugins import manifests
from harness.plugins.extension import SHIPPED, Offer

T = TypeVar("T")


def find_offer(point: str, name: str, wanted: str) -> Offer:
    """What an extension offers at a point under a name. Raises `SetupError` where none does; `wanted`: for what."""
    if (offer := manifests.offers(point).get(name)) is None:
        from harness.plugins.missing_extensions import bringer

        message = f"{wanted} comes with an extension that is not installed ([{point}] {name})"
        raise SetupError(message, hint=bringer(name, point))
    return offer


def loadable_classes(point: str, base: type[T]) -> dict[str, type[T]]:
    """Name → class of everything offered at a point, without classes of third parties that cannot be loaded.

    For callers that use all of them. A caller that uses one by its name gets the error.
    """
    classes = {}
    for name, offer in manifests.offers(point).items():
        try:
            classes[name] = offer.load_class(base)
        except (UserError, ModuleNotFoundError):
            if offer.extension.file.is_relative_to(SHIPPED):
                raise
    return classes


def requested(point: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Offer, dict[str, Any]]]:
    """(name, offer, its own arguments) of the offers at a point of which some parameter is set (0 counts as set)."""
    for name, offer in manifests.offers(point).items():
        own = {key: arguments.get(key) for key in offer.value.get("parameters", ())}
        if any(value is not None and value is not False and value != "" for value in own.values()):
            yield name, offer, own


def part(name: str, wanted: str) -> Any:
    """The part of an extension that the core asks for by name. Raises as `find_offer`."""
    return find_offer("parts", name, wanted).load_function()
