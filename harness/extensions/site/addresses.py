"""Where pages are. An address comes from what its page is about and from nothing else, so it stays when others come."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from harness.tables import text

INDEX: Final = "index.html"
_DIGEST: Final = 10
"""Characters of a digest: 40 bits."""
_LONGEST: Final = 60
"""Characters of a name in an address."""
_BESIDE: Final = re.compile(rf"\.[a-z]|(^|-)[0-9a-f]{{{_DIGEST}}}$|^(con|prn|aux|nul|com\d|lpt\d)$")
"""Names that are not addresses as they are: they might be those of files (data.json), of other names with their digest,
or of devices of Windows."""


def slug(name: str, longest: int = _LONGEST) -> str:
    """A name as a part of an address, of lower-case letters, digits and `._-`.

    Names that are not such a part already end in their digest there, so no two have the same.

    >>> slug("dpbench_quick"), slug("Qwen/Qwen2.5-7B")
    ('dpbench_quick', 'qwen-qwen2.5-7b-401a4b448e')
    """
    plain = re.sub(r"[^a-z0-9._]+", "-", name.lower())
    plain = re.sub(r"\.{2,}", ".", plain)[:longest].strip("-._")
    if plain and plain == name and not _BESIDE.search(plain):
        return name
    return f"{plain}-{digest(name)}" if plain else digest(name)


def digest(value: str) -> str:
    """The beginning of a text's SHA-256."""
    return hashlib.sha256(value.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGEST]


def of_run(meta: Mapping[str, Any]) -> str:
    """A run's part of an address: its spec, its model, and the digest of what tells it from other runs (what
    `harness leaderboard` knows copies of a run by), not of where it lies.

    Args:
        meta: the content of run.json.
    """
    known = [text(meta.get(name)) for name in ("start", "spec_digest", "model", "command", "engine_args")]
    words = [slug(text(meta.get(name)), 24).rstrip("-") for name in ("spec", "model")]
    plain = [re.sub(rf"-[0-9a-f]{{{_DIGEST}}}$", "", word) for word in words]
    return "-".join((*plain, digest("\n".join(known))))


def relative(here: str, there: str) -> str:
    """How a page names another one, or a file; both by their paths in the site.

    >>> relative("models/a/index.html", "benchmarks/b/index.html")
    '../../benchmarks/b/index.html'
    """
    own, other = here.split("/")[:-1], there.split("/")
    while own and len(other) > 1 and own[0] == other[0]:
        own, other = own[1:], other[1:]
    return "/".join([".."] * len(own) + other)
