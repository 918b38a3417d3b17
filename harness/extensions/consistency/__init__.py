"""Whether a plan fits together, known before it runs."""

from .plans import examine, misassigned
from .templates import TemplateReading, unknown

__all__ = ["TemplateReading", "examine", "misassigned", "unknown"]
