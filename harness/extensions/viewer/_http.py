"""Requests and answers: numbers and JSON of a request, JSON and files of an answer."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from harness.api.errors import DataError

from ._transcripts import dumped

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MAX_BODY_BYTES = 1 << 18


async def body_of(request: Request) -> Any:
    """The JSON of a request. Raises `DataError` if it is none, or longer than `_MAX_BODY_BYTES`."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _MAX_BODY_BYTES:
            raise DataError(f"the request is longer than {_MAX_BODY_BYTES:,} bytes", hint="Write a shorter reply.")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise DataError("the request is no JSON") from None


def number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 13 else default


def json_answer(data: Any, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(dumped(data).encode(), status, headers, media_type="application/json")


async def static(request: Request) -> Response:
    """A file of the page, by its name among those there are."""
    name = request.path_params.get("name", "index.html")
    file = _static_files(files("harness.extensions.viewer") / "static").get(name)
    if file is None:
        raise HTTPException(404, "no such page")
    data = file.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
    return Response(data, headers=headers, media_type=kind)


def _static_files(folder: Traversable, before: str = "") -> dict[str, Traversable]:
    found: dict[str, Traversable] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _static_files(entry, f"{before}{entry.name}/")
        elif Path(entry.name).suffix in _TYPES:
            found[f"{before}{entry.name}"] = entry
    return found


async def http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return json_answer({"error": error.detail if isinstance(error, HTTPException) else str(error)}, status)


async def bug(request: Request, error: Exception) -> Response:
    return json_answer({"error": f"{type(error).__name__}: {error}"[:500]}, 500)
