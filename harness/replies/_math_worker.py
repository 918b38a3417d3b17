"""Compares pairs of mathematical answers in a process of its own; run by `equivalence.py`, imports nothing else of us.

One JSON line in, [a, b, seconds] where a and b are lists of texts, one out, true or false. The question's processor
time and the process's memory are limited by the system, whatever the libraries do:
it then dies, and that is an answer too.
"""

import json
import logging
import resource
import signal
import sys

MEMORY = 2 << 30
"""Bytes the process may address."""


def equal(a: list[str], b: list[str]) -> bool:
    """Whether the library `math-verify` finds some reading of either answer the same, in either direction."""
    from math_verify import parse, verify

    one, two = ([p for text in texts for p in parse(f"${text}$", parsing_timeout=None)] for texts in (a, b))
    return bool(verify(one, two, timeout_seconds=None) or verify(two, one, timeout_seconds=None))


def main() -> None:
    logging.disable(logging.CRITICAL)  # both say at every call that no timeout is set
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    equal(["1"], ["2"])  # imports and caches, which no question should pay for
    print("ready", flush=True)
    for line in sys.stdin:
        a, b, seconds = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF is not caught: the process ends, even within C code
        try:
            same = equal(a, b)
        except Exception:  # whatever text makes the libraries do
            same = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(same), flush=True)


if __name__ == "__main__":
    main()
