"""The routes. All answers but pages and whole texts are JSON; a failure is `{"error": text}`.

    GET /api/runs                                   {"root", "runs": [ListedRun.line()]}
    GET /api/runs/{id}                              one run: its record, tables, labels, metrics, counts, conditions
    GET /api/runs/{id}/episodes?offset=&limit=&sort=&desc=&outcome=&condition=&label.NAME=&q=
                                                    {"total", "episodes": […]}
    GET /api/runs/{id}/results                      its record, headline and tables, which need no index
    GET /api/runs/{id}/search?q=&limit=             {"hits": [{"episode", "turn", "agent", "snippet"}], "complete"}
    GET /api/runs/{id}/episode?episode=ID           a transcript, with "previous" and "next" in the list that the
                                                    parameters of `episodes` ask for
    GET /api/runs/{id}/text?episode=&turn=&part=    one text of it, whole, as text/plain
    GET /api/runs/{id}/inner?episode=&turn=&offset=   {"total", "calls", "cuts"}: what an agent's program asked its
                                                    model in a turn, some at a time
    GET /api/runs/{id}/state                        its status, start and counts; pages ask for it every few seconds
    GET /api/leaderboard?stamp=                     as `Boards.leaderboard`; `stamp`: of what the page has
    GET /api/leaderboard/tables?section=            {"tables"} of a section
    GET /api/compare?a=&b=                          two runs side by side, as `Boards.comparison`; where a is b,
        [&label=&first=&second=]                    two parts of it: those with two values of a label
    GET /api/compare/cases?…&metric=&offset=&limit=   {"total", "cases"}: in which they differ
    GET /api/what_if                                {"model"}: who may answer prompts; with the key of `WhatIf`
    GET /api/runs/{id}/what_if?episode=&turn=       what may take the place of the turn's reply
    POST /api/runs/{id}/what_if                     {"episode", "turn", "text", "player"} → {"run", "turns"}: plays the
                                                    episode on with this reply, as a run of its own
    GET /, /static/NAME                             the page

`sort` is a column, `labels.NAME` or `numbers.NAME`; `outcome` one of `index.FILTERS`; `part` as in
`_transcripts.part_of`. While the journal of a large run is being read for the first time, requests for that run get
status 503 with `{"error", "indexing": share done}` and Retry-After: ask again. `tables` of a run are null with
`"tables_pending": true` while they are being made.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.api.errors import DataError, UserError
from harness.api.run_files import META, SPEC
from harness.extensions.viewer.run_index import ClosedIndexError, EpisodeQuery
from harness.transcripts.moves import from_journal

from ._boards import Boards, Sides
from ._guard import Guard
from ._http import body_of, bug, http_error, json_answer, number, static
from ._inner import calls_of, inner_json, inner_part
from ._reader_process import SECONDS, Reader, TooSlowError
from ._recording import Recording
from ._results import Results
from ._run_list import ListedRun, RunList, StillIndexingError
from ._transcripts import as_json, part_of

Answer = Callable[[ListedRun, Request], Response]


@dataclass(frozen=True)
class WhatIf:
    """That readers may play episodes on with other replies, and how.

    Attributes:
        key: what their requests must show.
        model: the engine that may answer prompts, as a spec has it; None: none.
        max_calls: of that model, each time.
        seconds: what one episode may take.
    """

    key: str
    model: dict[str, Any] | None = None
    max_calls: int | None = None
    seconds: float = 600.0


def app(
    root: Path, project: Path, *, patience: float = 1.5, seconds: float = SECONDS, what_if: WhatIf | None = None
) -> Starlette:
    """The application over the runs below a folder. `app.state.close()` ends what it started.

    Args:
        root: a folder of runs, or one run's.
        project: the root of the project whose plugins render prompts and measure.
        patience: seconds that a request waits while a journal is being read.
        seconds: what playing an episode again may take.
        what_if: whether and how readers may play episodes on; None: the viewer only reads.
    """
    viewer = _Viewer(RunList(root, patience), project, seconds, what_if)
    runs = "/api/runs/{id}"
    application = Starlette(
        routes=[
            Route("/api/runs", viewer.runs),
            Route(runs, _of_run(viewer, viewer.run)),
            Route(f"{runs}/results", _of_run(viewer, viewer.results)),
            Route(f"{runs}/episodes", _of_run(viewer, viewer.episodes)),
            Route(f"{runs}/search", _of_run(viewer, viewer.search)),
            Route(f"{runs}/episode", _of_run(viewer, viewer.episode)),
            Route(f"{runs}/text", _of_run(viewer, viewer.text)),
            Route(f"{runs}/inner", _of_run(viewer, viewer.inner)),
            Route(f"{runs}/state", _of_run(viewer, viewer.state)),
            Route("/api/leaderboard", _made(lambda one: viewer.boards.leaderboard(one.query_params.get("stamp", "")))),
            Route("/api/leaderboard/tables", _made(lambda one: viewer.boards.tables(number(one, "section", 0)))),
            Route("/api/compare", _made(lambda one: viewer.boards.comparison(viewer.sides(one)))),
            Route("/api/compare/cases", _made(viewer.cases)),
            Route("/api/what_if", viewer.what_if),
            Route(f"{runs}/what_if", _of_run(viewer, viewer.form)),
            Route(f"{runs}/what_if", viewer.play, methods=["POST"]),
            Route("/", static),
            Route("/static/{name:path}", static),
        ],
        middleware=[Middleware(Guard, key=None if what_if is None else what_if.key)],
        exception_handlers={HTTPException: http_error, Exception: bug},
    )
    application.state.run_list = viewer.run_list
    application.state.close = viewer.close
    application.state.warm = viewer.warm
    return application


class _Viewer:
    """What the routes share."""

    def __init__(self, found: RunList, project: Path, seconds: float, what_if: WhatIf | None) -> None:
        self.run_list, self._project, self._seconds, self._what_if = found, project, seconds, what_if
        self._reader = Reader(project)
        self._player, self._playing = Reader(project), threading.Lock()  # a long episode keeps nobody from reading
        self._too_slow: dict[tuple[str, str], dict[str, str]] = {}  # run, stamp → episode → why it is not played again
        self._results = Results(project)
        self.boards = Boards(found, project, self._reader.project_state)

    def warm(self) -> None:
        """Start what the first episode needs."""
        threading.Thread(target=self._reader.warm, daemon=True).start()

    def close(self) -> None:
        """End the child process, close indexes."""
        self._reader.close()
        self._player.close()
        self._results.close()
        self.boards.close()
        self.run_list.close()

    async def runs(self, request: Request) -> Response:
        """All runs."""

        def work() -> Response:
            runs = self.run_list.all()
            lines = self.run_list.lines(runs)
            self._results.look(run for run, line in zip(runs, lines, strict=True) if line["status"] in _WITH_RESULTS)
            lines = [self._with_headline(run, line) for run, line in zip(runs, lines, strict=True)]
            return json_answer({"root": self.run_list.root.name, "runs": lines})

        return await run_in_threadpool(work)

    def _with_headline(self, run: ListedRun, line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "headline": self._results.headline(run) if line["status"] in _WITH_RESULTS else None}

    def run(self, run: ListedRun, request: Request) -> Response:
        """One run, with what its journal says."""
        found = {**self._of_results(run), "words": run.words()}
        if found["status"] == "other version":
            return json_answer({**found, "labels": {}, "metrics": [], "counts": {}, "conditions": []})
        index = run.index()
        return json_answer(
            {
                **found,
                "problem": run.standing()[1],
                **{name: counted for name, counted in run.line().items() if name in ("episodes", "tokens")},
                "labels": index.labels(),
                "metrics": index.metrics(),
                "counts": index.counts(),
                "conditions": index.conditions(),
                "damage": [str(damage) for damage in index.damage],
            }
        )

    def results(self, run: ListedRun, request: Request) -> Response:
        """What is known of a run before its journal is read."""
        return json_answer(self._of_results(run))

    def _of_results(self, run: ListedRun) -> dict[str, Any]:
        line = run.line(may_read=False)
        tables, wrong, pending = self._results.tables(run) if line["status"] in _WITH_RESULTS else ([], None, False)
        return {
            **line,
            "spec_name": line["spec"],
            "spec": run.spec(),
            "meta": run.public_meta(),
            "headline": self._results.headline(run),
            "tables": tables,
            "tables_problem": wrong,
            "tables_pending": pending,
        }

    def sides(self, request: Request) -> Sides:
        """The runs `a` and `b` of a request; of one run the parts in which `label` is `first` and `second`."""
        found = [self.run_list.get(request.query_params.get(side, "")) for side in ("a", "b")]
        if (a := found[0]) is None or (b := found[1]) is None:
            raise HTTPException(404, _NO_RUN)
        label, first, second = (request.query_params.get(name, "") for name in ("label", "first", "second"))
        return a, b, (label, first, second) if label and a.id == b.id else None

    def cases(self, request: Request) -> dict[str, Any]:
        """Cases in which two runs differ."""
        metric = request.query_params.get("metric", "")
        page = number(request, "offset", 0), number(request, "limit", 50)
        return self.boards.cases(self.sides(request), metric, *page)

    def episodes(self, run: ListedRun, request: Request) -> Response:
        """A page of episodes."""
        total, rows = run.index().page(_query(request))
        return json_answer({"total": total, "episodes": rows})

    def search(self, run: ListedRun, request: Request) -> Response:
        """Turns in which something was said."""
        index, text = run.index(), request.query_params.get("q", "")
        hits, complete = index.search(text[:1000], min(number(request, "limit", 50), 200))
        return json_answer({"hits": [asdict(hit) for hit in hits], "complete": complete})

    def episode(self, run: ListedRun, request: Request) -> Response:
        """A transcript."""
        recording, more = self._recording(run, request)
        played = self._play(run, "episode", recording, more)
        if isinstance(played, str):
            batches, end, problem = recording.read()
            return json_answer(
                {**as_json(from_journal(recording.episode, batches, end, problem or played), []), **more}
            )
        return Response(played, media_type="application/json")

    def inner(self, run: ListedRun, request: Request) -> Response:
        """Inner calls of a turn; no plugin is needed to read them."""
        recording, _ = self._recording(run, request)
        calls = calls_of(recording, number(request, "turn", 0))
        return json_answer(inner_json(calls, number(request, "offset", 0), run.meta, run.prices()))

    def text(self, run: ListedRun, request: Request) -> Response:
        """One text, whole."""
        recording, _ = self._recording(run, request)
        turn, part = number(request, "turn", 0), request.query_params.get("part", "")
        if part.startswith("inner."):
            text = inner_part(calls_of(recording, turn), part)
        elif self._was_too_slow(run, recording) is not None:
            turns = from_journal(recording.episode, *recording.read()[:2], "").turns
            text = part_of(turns[turn], part) if turn < len(turns) else None
        else:
            text = self._play(run, "text", recording, turn, part)
        if text is None:
            raise HTTPException(404, f"turn {turn} of {recording.episode!r} has no {part!r:.80}")
        data = text.encode("utf-8", "backslashreplace")
        return Response(data, media_type="text/plain", headers={"Content-Disposition": "inline"})

    def _recording(self, run: ListedRun, request: Request) -> tuple[Recording, dict[str, Any]]:
        """(where the episode stands that is asked for, entries to add to its transcript)."""
        start = run.standing()[2].get("start")  # before the rest: a page with an old start asks again
        name = request.query_params.get("episode", "")
        there = run.index().episode(name, _query(request))
        if there is None:
            raise HTTPException(404, f"the run has no episode {name!r:.200}")
        scores = {key: there.row[key] for key in ("numbers", "labels", "error")}
        stamp = f"{_stamp(run)} {self._reader.project_state()}"
        recording = Recording(run.folder, stamp, name, there.journals, there.places, there.ending, there.inner, scores)
        more = {key: there.row[key] for key in ("limited", "calls", "input_tokens", "output_tokens", "latency")}
        more |= {"result": there.row["outcome"], "words": run.words(), "start": start, "parent": self._parent_of(run)}
        return recording, {**more, "previous": there.previous, "next": there.next}

    def _play(self, run: ListedRun, job: str, recording: Recording, *more: Any) -> Any:
        """What the child returns for an episode; if it cannot make the transcript, a text that says why."""
        if job == "episode" and (why := self._was_too_slow(run, recording)) is not None:
            return why
        try:
            return self._reader.do(job, recording, *more, seconds=self._seconds)
        except TooSlowError as error:
            why = f"prompts cannot be shown: {error}"
            self._too_slow.setdefault((run.id, recording.stamp), {})[recording.episode] = why
            return why if job == "episode" else None
        except DataError as error:
            return f"prompts cannot be shown: {error}" if job == "episode" else None

    def _was_too_slow(self, run: ListedRun, recording: Recording) -> str | None:
        """Why an episode is not played again: it took too long, or so many others of its run did."""
        known = self._too_slow.get((run.id, recording.stamp), {})
        return next(iter(known.values())) if len(known) >= _MAX_SLOW_EPISODES else known.get(recording.episode)

    async def what_if(self, request: Request) -> Response:
        """Who may answer prompts when an episode is played on."""
        model = self._what_if.model if self._what_if is not None else None
        return json_answer({"model": model and str(model.get("pretrained") or model.get("model") or model["use"])})

    def form(self, run: ListedRun, request: Request) -> Response:
        """What may take the place of a turn's reply."""
        episode, turn = request.query_params.get("episode", ""), number(request, "turn", 0)
        return json_answer(self._reader.do("form", run.folder, episode, turn, seconds=self._seconds))

    async def play(self, request: Request) -> Response:
        """Play an episode on; the new run's folder lies beside the first one's."""
        try:
            asked = _request_fields(await body_of(request))
        except DataError as error:
            return json_answer({"error": str(error)}, 400)
        if not self._playing.acquire(blocking=False):
            return json_answer({"error": "another episode is being played on; try again when it has ended"}, 409)
        try:
            return await _of_run(self, lambda run, _: self._play_on(run, asked))(request)
        finally:
            self._playing.release()

    def _play_on(self, run: ListedRun, asked: dict[str, Any]) -> Response:
        how = self._what_if
        assert how is not None  # the guard lets no other request through
        try:
            done = self._player.do("play", run.folder, asked, how.model, how.max_calls, seconds=how.seconds)
        except TooSlowError as error:
            raise DataError(f"{error}: the same change goes on where it stopped, from the command line") from None
        folder = Path(done["folder"]).resolve()
        made = next((one for one in self.run_list.all() if one.folder.resolve() == folder), None)
        if made is None:
            raise DataError(f"the new run is in {folder}, which is not below the folder that is shown")
        return json_answer({"run": made.id, "turns": done["turns"]})

    def _parent_of(self, run: ListedRun) -> str | None:
        """The id of the run that this one plays again, if it is shown, too."""
        if (folder := run.parent()) is None:
            return None
        return next((one.id for one in self.run_list.all() if one.folder == folder), None)

    def state(self, run: ListedRun, request: Request) -> Response:
        """A value that changes when a page needs an update."""
        status, problem, meta = run.standing()
        state: dict[str, Any] = {"status": status, "problem": problem, "of": meta.get("planned")}
        state["start"] = meta.get("start")
        try:
            index = run.index()
            state |= {**index.counts(), **index.totals()}
        except ClosedIndexError:
            raise
        except DataError as error:
            state["problem"] = str(error)
        return json_answer(state)


_STRANGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
"""What files of strange shapes raise."""
_WITH_RESULTS = ("finished", "damaged")
_MAX_SLOW_EPISODES = 3  # episodes that took too long, after which the others of their run are not tried
_TRIES = 5
_NO_RUN = "no such run below the folder that is shown"


def _of_run(viewer: _Viewer, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """A route whose work is done in a thread, with what it raises as an answer."""

    def work(request: Request) -> Response:
        run = viewer.run_list.get(request.path_params["id"])
        if run is None:
            raise HTTPException(404, _NO_RUN)
        try:
            return _tried(answer, run, request)
        except StillIndexingError as error:
            reply = json_answer({"error": str(error), "indexing": round(error.progress, 3)}, 503)
            reply.headers["Retry-After"] = "1"
            return reply
        except OSError as error:
            return json_answer({"error": f"cannot read the run: {error.strerror or error}"}, 400)
        except UserError as error:
            return json_answer({"error": str(error)}, 400)
        except _STRANGE as error:
            return json_answer(
                {"error": f"the run's files are not as they should be: {type(error).__name__}: {error}"[:500]}, 400
            )

    async def route(request: Request) -> Response:
        return await run_in_threadpool(work, request)

    return route


def _made(answer: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
    """A route whose work is done in a thread, with a mistake as its answer."""

    def work(request: Request) -> Response:
        try:
            return json_answer(answer(request))
        except (UserError, OSError) as error:
            return json_answer({"error": str(error)}, 400)

    async def route(request: Request) -> Response:
        return await run_in_threadpool(work, request)

    return route


def _request_fields(body: Any) -> dict[str, Any]:
    """What to play: episode, turn, text (None: the message is not sent), player. Raises `DataError`."""
    types: dict[str, tuple[type, ...]] = {
        "episode": (str,),
        "turn": (int,),
        "text": (str, type(None)),
        "player": (str, type(None)),
    }
    if not isinstance(body, dict) or body.keys() != types.keys():
        raise DataError(f"expected an object with {', '.join(types)}")
    for name, allowed in types.items():
        if not isinstance(body[name], allowed) or isinstance(body[name], bool):
            raise DataError(f"{name}: found {body[name]!r:.80}")
    return body


def _tried(answer: Answer, run: ListedRun, request: Request) -> Response:
    """The answer, from another index where this one was closed for another request's."""
    for _ in range(_TRIES):
        with contextlib.suppress(ClosedIndexError):
            return answer(run, request)
    return answer(run, request)


def _stamp(run: ListedRun) -> str:
    """What changes when a run's record or spec does."""
    parts = []
    for name in (META, SPEC):
        path = run.folder / name
        parts.append(str(path.stat().st_mtime_ns) if path.exists() else "")
    return " ".join(parts)


def _query(request: Request) -> EpisodeQuery:
    """The list of episodes that a request is about."""
    asked = request.query_params
    return EpisodeQuery(
        offset=number(request, "offset", 0),
        limit=number(request, "limit", 50),
        sort=asked.get("sort", ""),
        descending=asked.get("desc", "") in ("1", "true"),
        outcome=asked.get("outcome", ""),
        condition=asked.get("condition") or None,
        labels={name.partition(".")[2]: value for name, value in asked.items() if name.startswith("label.")},
        search=asked.get("q", ""),
    )
