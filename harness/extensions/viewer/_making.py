"""What takes seconds to compute: made by a process that ends with it, in the background, and kept."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError

from ._reader_process import TABLE_SECONDS, Reader, TooSlowError

WAIT_SECONDS: Final = 0.3
"""How long a request waits for what is being made."""
_AT_ONCE: Final = 2  # processes, each of which may have all scores of many runs in memory


class Making:
    """Results of jobs of `_reader_process`. All methods may be called from any thread.

    Args:
        project: the root of the project whose plugins the jobs use.
        kept: how many results are kept, those last asked for.
    """

    def __init__(self, project: Path, kept: int) -> None:
        self._project, self._kept = project, kept
        self._lock = threading.Lock()
        self._free = threading.Semaphore(_AT_ONCE)
        self._made: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()  # key → stamp, what came of it
        self._makers: dict[str, threading.Thread] = {}
        self._readers: set[Reader] = set()
        self._is_closed = False

    def there(self, key: str, stamp: str) -> dict[str, Any] | None:
        """What was made or kept for a key while it had this stamp."""
        with self._lock:
            stamped = self._made.get(key)
            if stamped is None or stamped[0] != stamp:
                return None
            self._made.move_to_end(key)
            return stamped[1]

    def get(self, key: str, stamp: str, job: str, *arguments: Any) -> dict[str, Any] | None:
        """The object that a job gives as JSON, or {"problem": why it gives none}; None: it is still being made.

        Args:
            key: what it is of.
            stamp: changes when the job would give something else.
            job: its name; `arguments` are pickled.
        """
        if (there := self.there(key, stamp)) is not None:
            return there
        with self._lock:
            if self._is_closed:
                return {"problem": "the viewer is ending"}
            if key not in self._makers:
                work = (key, stamp, job, arguments)
                self._makers[key] = threading.Thread(target=self._make, args=work, name=job, daemon=True)
                self._makers[key].start()
            maker = self._makers[key]
        maker.join(WAIT_SECONDS)
        return self.there(key, stamp)

    def keep(self, key: str, stamp: str, made: dict[str, Any]) -> None:
        """Keep what need not be made."""
        with self._lock:
            self._made[key] = stamp, made
            self._made.move_to_end(key)
            if len(self._made) > self._kept:
                self._made.popitem(last=False)

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._is_closed = True
            readers = [*self._readers]
        for reader in readers:
            reader.close()

    def _make(self, key: str, stamp: str, job: str, arguments: tuple[Any, ...]) -> None:
        with self._free:
            reader = Reader(self._project)
            with self._lock:
                self._readers.add(reader)
                if self._is_closed:
                    reader.close()
            try:
                made: dict[str, Any] = json.loads(reader.do(job, *arguments, seconds=TABLE_SECONDS))
            except (DataError, TooSlowError) as error:
                made = {"problem": str(error)}
            finally:
                with self._lock:
                    self._readers.discard(reader)
                    self._makers.pop(key, None)
                reader.close()
        self.keep(key, stamp, made)
