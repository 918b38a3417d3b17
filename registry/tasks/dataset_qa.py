"""Any data set as a task, declared in YAML."""

from __future__ import annotations

from harness.api import plugin
from harness.extensions.datasets import DatasetTask


@plugin
class DatasetQA(DatasetTask):
    """Questions from a data set on the hub or from local files, declared in YAML with lm-eval's keys."""
