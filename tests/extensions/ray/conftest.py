"""A cluster for the tests that need one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from harness.extensions.ray.ray import package


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One cluster for all tests, in a folder with a short name: the names of sockets have an end."""
    ray = package()
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=100 << 20, _temp_dir=folder)  # fmt: skip
        yield
        ray.shutdown()
