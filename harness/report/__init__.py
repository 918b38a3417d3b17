"""Tables made visible: text, Markdown, CSV, JSON; as LaTeX by an extension."""

from .render import FORMATS, render

__all__ = ["FORMATS", "render"]
