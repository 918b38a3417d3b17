"""One message a test from the workers to the process that prints."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class Reports:
    """A plugin that reports of a passed test its call alone, with the seconds of its set-up and its end in it.

    pytest makes three reports of each, and xdist sends five messages: for 9,000 short tests, a twelfth of the time.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test in a worker; in one process, pytest does it itself."""
        if not hasattr(item.config, "workerinput"):
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        called = next((report for report in reports if report.when == "call"), None)  # none with --setup-only
        if called is not None and all(report.passed for report in reports):
            called.duration = sum(report.duration for report in reports)
            reports = [called]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        return True
