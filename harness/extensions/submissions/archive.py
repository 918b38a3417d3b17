"""A run as one file, and back: a zip with the files that it takes to check a run, and no others.

What comes from a stranger is bounded: names are known beforehand, so no path leads outside; sizes are counted while
the file is read, whatever it says about itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness import __version__, storage
from harness.api.errors import DataError, Place
from harness.api.printable import clean_name, cut
from harness.api.run_files import META, RESULTS, SCORES, SPEC, TABLES, TABLES_MD
from harness.storage.files import sha256_of

FORMAT: Final = 1
CARD: Final = "submission.json"
"""The file that lists the others with their SHA-256."""
FILES: Final = (META, SPEC, SCORES, RESULTS, TABLES, TABLES_MD)
_JOURNAL: Final = re.compile(r"journal(-\d{1,6})?\.jsonl")
MAX_BYTES: Final = 1 << 33
"""Bytes of a submission's files, unpacked."""
_MAX_FILES: Final = 10_000
_MAX_AUTHOR_CHARS: Final = 200
_CHUNK: Final = 1 << 20


def pack(folder: Path, target: Path, about: Mapping[str, Any]) -> list[str]:
    """Write the submission of the run in `folder`; returns the names of its files.

    Args:
        folder: a finished run.
        target: the file to write; it is replaced.
        about: what its author says of it, such as {"author": "A. Turing"}.

    Raises:
        DataError: a file cannot be read, or the target cannot be written.
    """
    paths = [folder / name for name in FILES if (folder / name).is_file()]
    paths += [path for path in storage.journals(folder) if path.is_file()]
    temporary = target.with_name(f".{target.name}.part")
    try:
        digests = {path.name: sha256_of(path) for path in paths}
        card = {"format": FORMAT, "harness": __version__, **about, "files": digests}
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(CARD, json.dumps(card, indent=1) + "\n")
            for path in paths:
                file.write(path, path.name)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"cannot write {target}: {error.strerror or error}") from None
    return [*digests]


def unpack(source: Path, folder: Path) -> dict[str, Any]:
    """Write the files of a submission into an empty folder; returns its card.

    Raises:
        DataError: it is no submission, holds other files, more than `MAX_BYTES`, or other bytes than its card says.
    """
    place = Place(str(source))
    try:
        with zipfile.ZipFile(source) as file:
            infos = file.infolist()
            if len(infos) > _MAX_FILES:
                raise DataError(f"holds {len(infos):,} files, more than {_MAX_FILES:,}", place=place)
            names = [info.filename for info in infos]
            for name in names:
                if not (name in (CARD, *FILES) or _JOURNAL.fullmatch(name)) or names.count(name) > 1:
                    raise DataError(f"holds {name!r:.100}, which is no file of a submission", place=place)
            left = MAX_BYTES
            digests: dict[str, str] = {}
            for info in infos:
                digest = hashlib.sha256()
                with file.open(info) as data, (folder / info.filename).open("xb") as out:
                    while chunk := data.read(_CHUNK):
                        if (left := left - len(chunk)) < 0:
                            raise DataError(f"holds more than {MAX_BYTES:,} bytes", place=place)
                        digest.update(chunk)
                        out.write(chunk)
                digests[info.filename] = digest.hexdigest()
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"is no zip file that can be read: {error}", place=place) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", place=place) from None
    except Exception as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is damaged: {type(error).__name__}: {error}", place=place) from None  # zlib.error
    if CARD not in digests:
        hint = "`harness submit RUN -o FILE` writes submissions."
        raise DataError(f"holds no {CARD}: no submission", place=place, hint=hint)
    card = storage.read_json(folder / CARD)
    stated = card.get("files")
    if card.get("format") != FORMAT or not isinstance(stated, dict):
        raise DataError(f"has the format {card.get('format')!r:.40}, this harness reads {FORMAT}", place=place)
    del digests[CARD]
    if wrong := sorted(name for name in {*stated, *digests} if stated.get(name) != digests.get(name)):
        raise DataError(f"its {wrong[0]} is not the file that its {CARD} lists", place=place)
    return card


def stated_author(folder: Path) -> str | None:
    """Who submitted the run in `folder`, by the card that `harness verify --output` keeps beside it; None without one.

    The card is a stranger's, so the text says whose word it is.
    """
    try:
        author = storage.read_json(folder / CARD).get("author")
    except DataError:
        return None
    if not isinstance(author, str) or not author.strip():
        return None
    return f"{cut(clean_name(author), _MAX_AUTHOR_CHARS)} (stated by the submitter)"
