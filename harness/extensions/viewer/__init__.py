"""The viewer: a local web application over runs' folders. Needs the extra `view` (Starlette and uvicorn).

    _found        which runs there are, their states, their indexes
    _reading      episodes and tables, made in a process of its own that may be ended
    _recorded     an episode as its journal has it
    _results      tables and headlines of finished runs
    _transcripts  a transcript as plain JSON, long texts cut
    views         which plugin draws an episode, and its scenes as JSON; `generic` where none does
    _guard        which requests are allowed, and the headers of every answer
    _app          the routes
    _serve        ports, and the server

It only reads, below one folder, and writes nothing there; except that with `harness view --what_if` a reader can play
an episode on with another reply, which makes a run beside the first one.
"""
