"""Fixtures that several folders share: the tiny model and one real vLLM engine per session."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import threading
import warnings
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else every worker has a thread a core, for matrices of ten rows

import harness
from harness.api import Completion, Engine, Request, Thread, derive_seed
from harness.config.project import builtin
from tests.helpers import finished
from tests.helpers.naming import Names
from tests.helpers.remembered import remember
from tests.helpers.reports import Reports
from tests.helpers.samples import Samples

if TYPE_CHECKING:
    from harness.extensions.vllm.vllm import VLLM

T = TypeVar("T")

VLLM_ARGS: dict[str, Any] = {"max_model_len": 2048, "max_num_seqs": 16, "enforce_eager": True}
"""Engine arguments for the tiny model where a test watches the engine's bounds: small ones, and nothing compiled."""
VLLM_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""Several engines at once: by default each binds itself to the same cores, and fills a fourth of the memory."""


FEW = 28
"""Test functions that one process runs in about the time that workers take to start."""
_TEST = re.compile(r"^(?:async )?def test_", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (Names(), Reports(), Samples()):
        config.pluginmanager.register(plugin)
    os.environ["LANGUAGE"] = "C"  # argparse looks for translations of every word of every parser
    os.fsync = lambda fd: None  # a run waits for the disk seven times, and no test for a power cut
    if config.option.markexpr == "vllm":
        for name, value in VLLM_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's background job: tests send Ctrl-C to themselves
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """How many workers `-n auto` starts.

    One process for single files and folders with few tests, where workers would cost more than they save (not so the
    commands of the docs), and for tests that share a cluster or an export. Two for tests with vLLM: each has an engine
    of its own. Otherwise a worker for every core.
    """
    if config.option.markexpr == "docs":
        return None
    files = all(argument.partition("::")[0].endswith(".py") for argument in config.args)
    paths = [config.invocation_params.dir / argument for argument in config.args if "::" not in argument]
    few = files or _functions(paths) <= FEW
    return 0 if few else {"ray": 0, "export": 0, "vllm": 2}.get(config.option.markexpr)


def _functions(paths: Iterable[Path]) -> int:
    """How many test functions there are below folders and in files; no more are counted than `FEW` and one."""
    files = (file for path in paths for file in ([path] if path.suffix == ".py" else path.rglob("test_*.py")))
    functions = (match for file in files if file.is_file() for match in _TEST.finditer(file.read_text("utf-8")))
    return sum(1 for _ in itertools.islice(functions, FEW + 1))


@pytest.fixture(autouse=True, scope="session")
def what_does_not_change() -> Iterator[None]:
    """Is asked once: a fifth of the time went into reading and compiling the same files."""
    with pytest.MonkeyPatch.context() as patch:
        remember(patch)
        yield


@pytest.fixture(autouse=True)
def surroundings() -> Iterator[None]:
    """Tests read what commands print in whole lines; one that leaves another working directory fails itself alone.

    In front of 9,000 tests, two fixtures or a `MonkeyPatch` would take a second more.
    """
    before, columns = os.getcwd(), os.environ.get("COLUMNS")  # noqa: PTH109
    os.environ["COLUMNS"] = "1000"  # tests of the fitting set widths of their own
    yield
    if columns is None:
        os.environ.pop("COLUMNS", None)
    else:
        os.environ["COLUMNS"] = columns
    after = os.getcwd()  # noqa: PTH109
    os.chdir(before)
    assert after == before, "the test left another working directory"


class Driven:
    """An engine and the event loop it lives in."""

    def __init__(self, engine: VLLM) -> None:
        self.engine = engine
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end in the engine's loop."""
        return self._runner.run(work)

    def ask(
        self, text: str, *, key: object = 0, constraint: dict[str, Any] | None = None, **sampling: Any
    ) -> Completion:
        """One question in a thread of its own; the same `key` gives the same seed."""
        return self.run(self.engine.complete(request(text, key=key, constraint=constraint, **sampling)))

    def play(self, spec: str | Mapping[str, Any], folder: Path, *overrides: str, **options: Any) -> harness.Run:
        """`harness.evaluate` with this engine, which stays started."""
        loop = self._runner.get_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            return harness.evaluate(
                spec, Lent(self.engine, loop), overrides=overrides, output_path=folder, project=builtin(), **options
            )
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def close(self) -> None:
        self._runner.run(self.engine.close())
        self._runner.close()


class Lent(Engine):
    """An engine that lives in a loop of its own, for a run that neither starts nor ends it."""

    def __init__(self, engine: VLLM, loop: asyncio.AbstractEventLoop) -> None:
        self._engine, self._loop = engine, loop
        self.deterministic = engine.deterministic
        self.return_token_ids, self.return_logprobs = engine.return_token_ids, engine.return_logprobs
        self.weights = engine.weights

    @property
    def model(self) -> str:
        return self._engine.model

    def count_tokens(self, text: str) -> int | None:
        return self._engine.count_tokens(text)

    async def complete(self, request: Request) -> Completion:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._engine.complete(request), self._loop))


def request(text: str, *, key: object = 0, constraint: dict[str, Any] | None = None, **sampling: Any) -> Request:
    """A request that asks `text` in a fresh thread."""
    thread = Thread()
    thread.add("user", text)
    return Request(f"test/{key}/0/0", thread, {"max_tokens": 32, **sampling}, derive_seed("test", key), constraint)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs of `tests/helpers/finished.py`."""
    folder = tmp_path_factory.mktemp("runs")
    finished.play(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random chat model (needs torch and transformers)."""
    from tests.helpers.tiny_model import make

    return make(tmp_path_factory.mktemp("tiny") / "tiny-random-chat")


@pytest.fixture(scope="session")
def vllm_engine(tiny_model: Path) -> Iterator[Driven]:
    """A started vLLM engine with the tiny model; half a minute, once."""
    yield from _started(tool_parser="hermes", pretrained=str(tiny_model), **VLLM_ARGS)


@pytest.fixture(scope="session")
def roomy_engine(tiny_model: Path) -> Iterator[Driven]:
    """Another one, with all the context that the tiny model has: for whole specs."""
    yield from _started(pretrained=str(tiny_model), enforce_eager=True)


@pytest.fixture(scope="session")
def small_model() -> Path:
    """The folder of a small real model (needs gguf and accelerate too): made once, and kept in the user's cache."""
    from harness.extensions.tiny import folder, weights
    from harness.storage.files import cache_folder

    return folder.make(cache_folder() / "models" / weights.SMOLLM2.name)


@pytest.fixture(scope="session")
def small_engine(small_model: Path) -> Iterator[Driven]:
    """vLLM with the small real model."""
    arguments = {**VLLM_ARGS, "dtype": "float32", "deterministic": True, "max_num_seqs": None}
    yield from _started(pretrained=str(small_model), **arguments)


def _started(**arguments: Any) -> Iterator[Driven]:
    from harness.extensions.vllm.vllm import VLLM  # where it is not installed, the core's tests run all the same

    engine = VLLM(**arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what vLLM's dependencies say while they are imported
        driven = Driven(engine)
        driven.run(driven.engine.start())
    yield driven
    driven.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium by Playwright, of which a process can have one."""
    from playwright.sync_api import sync_playwright

    from tests.extensions.viewer.browser.browsing import CHROMIUM_FLAGS, chromium_path

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield started
        started.close()
