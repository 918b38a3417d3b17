"""Other weights for an engine that is up, as a trainer gives them between batches of episodes."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harness.api.errors import EngineFatalError, SetupError
from harness.engines.engine_output import one_line
from harness.engines.priority import PriorityGate

WORKER = "harness.extensions.vllm._vllm_worker.ReloadsHead"
_FILES = (".safetensors", ".bin", ".pt", ".gguf")
Transfer = Callable[[Any], Awaitable[Any] | Any]
"""A function that gives vLLM's `AsyncLLM` other weights; plain or a coroutine."""


class UpdatesWeights:
    """An engine of vLLM whose weights may change.

    Attributes:
        weights: a name of the weights; None: those that it was started with.
    """

    weights: str | None = None
    _engine: Any
    _gate: PriorityGate
    _counts: Counter[str]
    _update: asyncio.Future[None] | None = None  # done once the weights are there
    _extended = False  # whether its workers have the methods of `_vllm_worker`
    _undefined: str | None = None  # why the weights may be neither the old nor the new ones

    async def update_weights(self, source: str | Path | Transfer, name: str | None = None) -> str:
        """Give the model other weights of the same shapes, between batches of episodes.

        vLLM's prefix cache is emptied. Calls are known by the new weights from now on (`Engine.weights`), so that no
        cached or recorded reply of the old ones is taken for theirs. Requests that come meanwhile wait.

        Args:
            source: a folder with a checkpoint in Hugging Face's format; or a function of vLLM's `AsyncLLM`, which
                transfers them, such as by `collective_rpc`.
            name: what the weights are called; None: a digest of the checkpoint's files, or for a function a name that
                is used once.

        Returns:
            The name.

        Raises:
            EngineFatalError: the engine is not started, or closed.
            SetupError: requests are in flight, there is no checkpoint, or it cannot be loaded. In the last case the
                engine answers nothing until an update succeeds.
        """
        if self._engine is None:
            raise EngineFatalError("the engine is not started, or closed")
        if self._update is not None or self._gate.in_flight:
            what = "another update is under way" if self._update is not None else "requests are in flight"
            raise SetupError(f"the weights cannot change now: {what}", hint="Update between batches of episodes.")
        self._update = asyncio.get_running_loop().create_future()
        try:
            if not callable(source):
                name = name or await asyncio.to_thread(digest_of, Path(source))
            await self._transfer(source)
            # The undefined state has a name of its own too.
            self.weights, self._undefined = name or f"update-{uuid.uuid4().hex[:16]}", None
            self._counts["weight_updates"] += 1
        finally:
            self._update.set_result(None)
            self._update = None
        return self.weights

    async def _transfer(self, source: str | Path | Transfer) -> None:
        self._undefined = "an update of its weights did not end"
        try:
            if callable(source):
                done = source(self._engine)
                if inspect.isawaitable(done):
                    await done
            else:
                method = "reload_with_head" if self._extended else "reload_weights"
                await self._engine.collective_rpc(method, kwargs={"weights_path": str(source)})
            if await self._engine.reset_prefix_cache() is False:
                raise RuntimeError("vLLM did not empty its prefix cache")
        except Exception as error:  # whatever vLLM, torch or the function raises
            self._undefined = f"the update of its weights failed: {type(error).__name__}: {one_line(str(error), 500)}"
            self.weights = f"undefined-{uuid.uuid4().hex[:16]}"
            place = "" if callable(source) else f" of {source}"
            hint = "The shapes must be those of the model that was started. Update again, or start the engine anew."
            raise SetupError(f"vLLM cannot take the weights{place}: {self._undefined}", hint=hint) from error

    async def _has_weights(self) -> None:
        """Wait while the weights change. Raises `EngineFatalError` where they are undefined."""
        while self._update is not None:
            await self._update
        if self._undefined is not None:
            raise EngineFatalError(self._undefined)

    def _forget_update(self) -> None:
        """The engine has ended: the next start loads its own weights."""
        self.weights = self._undefined = None


def digest_of(folder: Path) -> str:
    """A digest of a checkpoint's weights: of the names and contents of its files. Raises `SetupError`."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in _FILES and path.is_file())
        if not files:
            hint = "A checkpoint is a folder in Hugging Face's format, as `save_pretrained` writes it."
            raise SetupError(f"{folder} holds no weights ({', '.join(_FILES)})", hint=hint)
        total = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                total.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    except OSError as error:
        raise SetupError(f"no checkpoint {folder}: {error.strerror or error}") from error
    return f"sha256:{total.hexdigest()[:32]}"
