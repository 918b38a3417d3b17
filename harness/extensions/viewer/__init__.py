"""The viewer: a local web application over runs' folders. Needs the extra `view` (Starlette and uvicorn).

    _run_list        which runs there are, their states, their indexes (`run_index`)
    _reader_process  what loads plugins: a process of its own that may be ended
    _recording       an episode as its journal has it
    _results         tables and headlines of finished runs: as they wrote them (`saved_tables`), or made (`_making`)
    _boards          the leaderboard, and two runs side by side; `_board_jobs` computes them
    _transcripts     a transcript as plain JSON, long texts cut
    views            which plugin draws an episode, and its scenes as JSON; `generic` where none does
    _guard           which requests are allowed, and the headers of every answer
    _app             the routes, with `_http`
    _serve           ports, and the server

It only reads, below one folder, and writes nothing there; except that with `harness view --what_if` a reader can play
an episode on with another reply, which makes a run beside the first one.
"""
