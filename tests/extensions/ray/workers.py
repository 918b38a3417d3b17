"""One worker, driven without a cluster."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import harness
from harness.config import resolve, spec
from harness.config.plan import Plan
from harness.config.project import Project
from harness.engines.mock import Mock
from harness.extensions.ray._worker import Worker, WorkerConfig
from harness.runtime.options import Options
from harness.runtime.sources import code
from tests.helpers.toy import TOY

Dice = TOY.load("engines", "dice")


def plan(*overrides: str, model: Any = None, project: Project = TOY) -> Plan:
    return resolve.plan(spec.load("toy", project, overrides), project, model)


NOTHING = (0, 0)
"""What a worker may use; it means nothing where there is no budget."""


def with_worker(
    folder: Path,
    engine: Any,
    act: Callable[[Worker, Plan], Awaitable[Any]],
    /,
    spent: Any = None,
    project: Project = TOY,
    live_models: Iterable[str] = (),
    **changes: Any,
) -> Any:
    """What `act` gives with a started worker, which is then stopped; or why it did not start."""
    result = plan(model=engine, project=project)
    options = Options(max_concurrency=2)
    config = WorkerConfig(result.spec, engine, options, folder, result.digest, harness.__version__, code(result), {})

    async def work() -> Any:
        worker = Worker()
        try:
            pickled = pickle.dumps(replace(config, **changes))
            failure = await worker.start(7, str(Path.cwd()), str(project.root), pickled, spent, live_models)
            return failure if failure is not None else await act(worker, result)
        finally:
            await worker.end(now=True)

    return asyncio.run(work())


def assigned(made: Plan) -> list[Any]:
    return [(condition.id, case, repeat, {}, []) for condition, case, repeat in made.episodes()]


class Slow(Mock):
    """Answers when it is let. (A worker has its own copy of an engine, but of no class.)"""

    asked: ClassVar[list[str]] = []
    let: ClassVar[asyncio.Event]

    async def complete(self, request: Any) -> Any:
        Slow.asked.append(request.id)
        await Slow.let.wait()
        return await super().complete(request)
