from __future__ import annotations

from harness.api import plugin
from harness.extensions.blame.credit import CreditMetric


@plugin
class Credit(CreditMetric):
    """What an agent or a group of agents adds to the episode's number, over a policy in its place: a Shapley value."""
