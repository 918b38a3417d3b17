"""What a run leaves on disk: the journal and the run's folder, locks, files that are not links, exceptions of plugins.

`redaction` keeps keys out of all of them. Nothing here knows plans, engines or tables.
"""

from harness.api.run_files import JOURNAL

from .files import file_name, read_json, read_own, write_atomically
from .journal import (
    MARKS,
    RESUME,
    SCHEMA,
    UNFINISHED,
    Journal,
    Line,
    end_line,
    first_damaged,
    journals,
    lines,
    move_line,
    move_of,
    of_worker,
    outcome_line,
    outcome_of,
    sealed,
    whole,
)
from .journal_state import JournalState
from .pending_failures import PASSING, RECORDED_ERRORS, REFUSALS, UNANSWERED, PendingFailures, refusals_line
from .token_ids import PromptIds, completion_of, fields_of

__all__ = [
    "JOURNAL",
    "MARKS",
    "PASSING",
    "RECORDED_ERRORS",
    "REFUSALS",
    "RESUME",
    "SCHEMA",
    "UNANSWERED",
    "UNFINISHED",
    "Journal",
    "JournalState",
    "Line",
    "PendingFailures",
    "PromptIds",
    "completion_of",
    "end_line",
    "fields_of",
    "file_name",
    "first_damaged",
    "journals",
    "lines",
    "move_line",
    "move_of",
    "of_worker",
    "outcome_line",
    "outcome_of",
    "read_json",
    "read_own",
    "refusals_line",
    "sealed",
    "whole",
    "write_atomically",
]
