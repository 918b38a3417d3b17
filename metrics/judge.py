from __future__ import annotations

from harness.api import plugin
from harness.extensions.judges.judge_task import JudgedMetric


@plugin
class Judge(JudgedMetric):
    """What a judge gives: a model that rates the answers when all episodes are played."""
