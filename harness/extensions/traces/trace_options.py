"""`--trace`: what it says, and the options. Imports next to nothing, because `harness eval --help` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from harness.api.errors import Place, SetupError, SpecError
from harness.cli.usage import Parser

if TYPE_CHECKING:
    from harness.runtime.listeners import RunListener

_PATH: Final = "/v1/traces"
_FORM: Final = "It takes otlp=URL, the address of a collector: --trace otlp=http://127.0.0.1:4318"


def from_arguments(arguments: Mapping[str, Any]) -> RunListener:
    """The listener that `trace` asks for.

    Raises:
        SpecError: it is none that can be sent to.
        SetupError: a package is missing.
    """
    if not arguments.get("trace"):
        raise SpecError("--trace_content without --trace", hint="Say where to send traces: --trace otlp=URL")
    endpoint = endpoint_of(arguments["trace"])
    try:
        import opentelemetry.exporter.otlp.proto.http
    except ImportError:
        hint = 'pip install "mas-eval-harness[otel]"'
        message = "--trace needs the packages of OpenTelemetry"
        raise SetupError(message, hint=f"{hint}; or export the run once it is played: --to otel") from None
    assert opentelemetry.exporter.otlp.proto.http is not None
    from .trace_listener import TraceListener

    return TraceListener(endpoint, content=bool(arguments.get("trace_content")))


def endpoint_of(text: object) -> str:
    """The address to which traces are sent. Raises `SpecError`."""
    place = Place("--trace")
    kind, equals, address = str(text).partition("=") if isinstance(text, str) else ("", "", "")
    if not equals or kind.strip().lower() != "otlp":
        raise SpecError(f"found {text!r:.80}", place=place, hint=_FORM)
    try:
        url = urlsplit(address.strip())
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        is_address = False
    if not is_address:
        raise SpecError(f"found otlp={address.strip()!r:.80}, which is no address", place=place, hint=_FORM)
    if url.username is not None or url.query or url.fragment:
        hint = "Keys go into the variable OTEL_EXPORTER_OTLP_HEADERS: authorization=Bearer%20KEY"
        raise SpecError("an address with a user, a query or a fragment is not sent to", place=place, hint=hint)
    path = url.path.rstrip("/")
    return urlunsplit((url.scheme, url.netloc, path if path.endswith(_PATH) else path + _PATH, "", ""))


def of_eval(command: Parser) -> None:
    """Add the options to `harness eval`."""
    group = command.group("output")
    text = "send OpenTelemetry spans to this collector while the run plays: otlp=http://127.0.0.1:4318"
    group.add_argument("--trace", metavar="otlp=URL", help=text)
    group.add_argument("--trace_content", action="store_true", help="with what models read and wrote")
