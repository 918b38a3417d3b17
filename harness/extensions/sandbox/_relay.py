"""Runs in a confined program's own network: a port of 127.0.0.1 leads to a Unix socket outside. Then the program runs.

    python _relay.py PORT SOCKET PROGRAM [ARGUMENT …]

The program takes this process's place, and the relay is its child: it ends with the sandbox. Standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading

_CONNECTIONS = 128
"""Connections that wait, and connections that are open, at most."""


def serve(listener: socket.socket, target: str) -> None:
    """Pass on what each connection says, and what is answered; never returns."""
    free = threading.BoundedSemaphore(_CONNECTIONS)
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            continue
        free.acquire()
        threading.Thread(target=_connect, args=(near, target, free), daemon=True).start()


def _connect(near: socket.socket, target: str, free: threading.BoundedSemaphore) -> None:
    far = socket.socket(socket.AF_UNIX)
    with near, far, contextlib.suppress(OSError, RuntimeError):  # no such socket any more, or no thread
        far.connect(target)
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()
    free.release()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def main(port: str, target: str, *command: str) -> None:
    """Listen, then start the program."""
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=_CONNECTIONS)
    if os.fork():
        listener.close()
        try:
            os.execvp(command[0], command)
        except OSError as error:
            sys.exit(f"{command[0]}: {error.strerror}")
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):  # the program's output ends when the program does
        os.dup2(nothing, number)
    serve(listener, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
