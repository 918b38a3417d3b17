"""Episodes on a Ray cluster: one process per worker, each with engines and a journal of its own.

This process, the driver, holds the run's lock, assigns episodes, collects their scores and plays none itself.
Ray carries cases one way and scores the other; what is said in an episode only goes to the worker's journal, in the
run's folder, which all machines share.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api import Facts
from harness.api.errors import SetupError
from harness.config.plan import Plan
from harness.plugins.approvals import NeedsApproval
from harness.plugins.needed_approval import NeededApproval
from harness.runtime.executors import Executor
from harness.runtime.options import Options
from harness.runtime.runner import Work

from . import worker_locks
from ._driver import Driver, Workers, worker_class

_OBJECTS = 128 << 20
"""Bytes of a local cluster's object store: the cases assigned to a worker are the largest thing in it."""
_REACHING = 10.0
"""Seconds in which a cluster's address has to answer at all; Ray itself would try for minutes."""


@dataclass(kw_only=True)
class Ray(Workers, Executor, NeedsApproval):
    """Workers of a Ray cluster play the episodes.

    Args:
        workers: how many.
        num_cpus, num_gpus, resources: what each of them needs, as Ray counts it.
        address: the cluster; "auto" for the one this machine belongs to, None for RAY_ADDRESS or, without it, a
            cluster of this machine alone, for the time of the run.
        max_restarts: how often a worker that was lost is replaced.
        start_timeout: seconds to wait for the cluster to have room for the first worker.
        ping_timeout: seconds after which a worker that answers no ping is replaced.
    """

    address: str | None = None

    @classmethod
    def clear(cls, folder: Path) -> None:
        """As `worker_locks.clear`."""
        worker_locks.clear(folder)

    def __post_init__(self) -> None:
        self._report: Facts | None = None

    def approvals(self) -> Iterable[NeededApproval]:
        """What a cluster that the spec names sends back: Python objects, which may bring code."""
        if self.address not in (None, "auto", "local"):
            what = f"what the Ray cluster at {self.address} sends"
            yield NeededApproval.declared(what, self.address, ("address",), "executor: ray")

    def check(self, plan: Plan, options: Options) -> None:
        """Raises `SetupError`: no Ray, an address it cannot take, or a run that only one process can play."""
        if self.address is not None and self.address.startswith("ray://"):
            message = f"address={self.address!r}: a Ray client is not on the cluster, whose workers share its files"
            raise SetupError(message, hint="Run harness on a machine of the cluster: ray job submit, address=auto.")
        if plan.dedupe_calls:
            message = "dedupe_calls: true asks equal calls once, which only one process can know of"
            raise SetupError(message, hint="Give --executor local, or --set dedupe_calls=false.")
        if alone := next((name for name in ("rpm", "tpm", "max_cost") if getattr(options, name) is not None), None):
            message = f"{alone} bounds what one process asks for, and a Ray cluster has many"
            raise SetupError(message, hint=f"Give --executor local, or leave {alone} out.")
        person = next((engine.model for engine in plan.engines.values() if engine.asks_people), None)
        if person is not None:
            message = f"{person} answers in a terminal, which workers of a Ray cluster do not have"
            raise SetupError(message, hint="Give --executor local.")
        collecting = next((engine.model for engine in plan.engines.values() if engine.collects), None)
        if collecting is not None:
            message = f"{collecting} answers in batches of all episodes, which one process has to hold open"
            raise SetupError(message, hint="Give --executor local: it only waits for the provider.")
        worker_class(package(), self.needs)

    async def play(self, work: Work) -> None:
        ray = package()
        with self._connected(ray):
            if work.options.use_cache and sum(bool(node["Alive"]) for node in ray.nodes()) > 1:
                message = "--use_cache keeps answers in a file that processes of one machine can share, not of several"
                raise SetupError(message, hint="Leave --use_cache out; what is recorded is never asked again anyway.")
            driver = Driver(work, self)
            try:
                await driver.play()
            finally:
                self._report = driver.report()

    def report(self) -> Facts | None:
        return self._report

    @contextlib.contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        """Within it there is a connection to a cluster. One that this process already had is left as it is."""
        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        alone = address == "local"
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if alone:
            cores = max(1, math.ceil(self.workers * self.num_cpus))
            options |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": _OBJECTS}
        terminated = signal.getsignal(signal.SIGTERM)
        try:
            reach(address)
            ray.init(address=address, **options)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            where = "on this machine" if alone else f"at {address!r}"
            raise SetupError(f"no Ray cluster {where}: {error}", hint="Start one: ray start --head") from None
        except SystemExit as end:  # Ray's own handler, which is in place until it has started
            if end.code != signal.SIGTERM or not callable(terminated):
                raise
            terminated(signal.SIGTERM, None)
            raise asyncio.CancelledError from None
        finally:
            if callable(terminated) and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, terminated)  # Ray puts its own there, which exits in the middle of things
        try:
            if alone:  # nothing that is missing will ever come
                there = ray.cluster_resources()
                for kind, each in {"GPU": self.num_gpus, **self.resources}.items():
                    if (all_of_them := self.workers * each) > there.get(kind, 0):
                        message = f"{self.workers} workers need {all_of_them:g} {kind}; here are {there.get(kind, 0):g}"
                        raise SetupError(message, hint="Take fewer, or give address= of a cluster.")
            yield
        finally:
            ray.shutdown()


def reach(address: str) -> None:
    """Raises `OSError` if nothing listens at host:port. Of other kinds of addresses Ray itself knows at once."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHING).close()


def package() -> Any:
    """Ray, without the notices that it would print among the tables; run.json says which workers were lost and why."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # read while it is imported
    try:
        import ray
    except ImportError:
        hint = 'pip install "mas-eval-harness[ray]"'
        raise SetupError("the executor 'ray' needs the package ray", hint=hint) from None
    return ray
