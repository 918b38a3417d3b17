"""A program of its own: llama.cpp's server with one model. It prints its address when it is ready.

    python serve.py FILE NAME SLOTS WINDOW THREADS

It imports nothing of the harness, and ends when the engine ends it.
"""

import signal
import sys

import xllamacpp


def main(file: str, name: str, slots: int, window: int, threads: int) -> None:
    """Serve a GGUF file on a free port of 127.0.0.1.

    Args:
        name: what the server calls the model.
        slots: how many requests it works on at once.
        window: tokens of each of them, prompt and reply together.
        threads: of the CPU.
    """
    parameters = xllamacpp.CommonParams()
    parameters.model.path = file
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = slots
    parameters.n_ctx = slots * window
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
