"""A circuit breaker: when an engine is gone, or fails at too much, nothing more is asked of any engine of the run."""

from __future__ import annotations

from collections import deque

from harness.api import Completion, Engine, Request
from harness.errors import ContextLengthError, EngineError, EngineFatalError, RefusedError, SetupError

from .wrappers import Wrapper


class Stop:
    """Whether a run is to end: the first reason is kept. One for all engines of the run."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.engines: list[Engine] = []

    def end(self, reason: str) -> None:
        """It is to end, for this reason unless there was one before; no engine tries anything again."""
        if self.reason is None:
            self.reason = reason
            for engine in self.engines:
                engine.halt(EngineFatalError(reason))

    def check(self) -> None:
        """Raise `EngineFatalError` if there is a reason."""
        if self.reason is not None:
            raise EngineFatalError(self.reason)


class Breaker(Wrapper):
    """Lets nothing more through once an engine of the run is gone, or too many of the last requests failed.

    A server that is dying fails request after request. Each failure that the engine gives up on is an error of its
    move and stays in the results; where that becomes the rule, the run had better stop and go on later.

    Args:
        inner: the engine; what it retries and with success is no failure here.
        stop: shared with the other engines of the run.
        max_error_rate: the share of the last `WINDOW` requests that may fail. A conversation that does not fit the
            context window is the conversation's fault and counts as answered.

    An engine that has answered nothing yet is given up after `FIRST` failures, whatever share that is.

    Attributes:
        answered: how many requests the engine has answered.
    """

    WINDOW = 100
    FIRST = 10

    def __init__(self, inner: Engine, stop: Stop, max_error_rate: float) -> None:
        super().__init__(inner)
        if not (type(max_error_rate) in (int, float) and 0 <= max_error_rate <= 1):
            raise SetupError(f"max_error_rate must be from 0 to 1, not {max_error_rate!r:.40}")
        self.stop, self.max_error_rate = stop, max_error_rate
        stop.engines.append(inner)
        self._last: deque[bool] = deque(maxlen=self.WINDOW)
        self._failed = self._lost = self.answered = 0

    @property
    def lenient(self) -> bool:
        """Whether any share may fail: failures then are results like others."""
        return self.max_error_rate >= 1

    async def complete(self, request: Request) -> Completion:
        """Raises `EngineFatalError` at once where the run is to end; what is in flight then comes to its own end."""
        self.stop.check()
        try:
            answer = await self.inner.complete(request)
        except EngineFatalError as error:
            self.stop.end(str(error))
            raise
        except ContextLengthError:
            self._note(False)
            raise
        except EngineError as error:
            self._note(True)
            self._lost += not isinstance(error, RefusedError)
            allowed = round(self.max_error_rate * self.WINDOW, 6)  # .29 * 100 is a little less than 29
            dead = not self.answered and self._lost >= self.FIRST and not self.lenient
            if self._failed > allowed or dead:
                said = f"{self._failed} of the last {len(self._last)} requests to {self.model} failed, the last with: "
                bound = f"max_error_rate allows {allowed:g} in {self.WINDOW}" + ", but not all of them" * dead
                self.stop.end(f"{said}{error} ({bound})")
            raise
        self._note(False)
        return answer

    def _note(self, failed: bool) -> None:
        if len(self._last) == self.WINDOW:
            self._failed -= self._last[0]
        self._last.append(failed)
        self._failed += failed
        self.answered += not failed
