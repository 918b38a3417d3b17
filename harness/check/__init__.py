"""What runs before a run: conformance of plugins and plans (`conformance`, for your tests and `harness validate`), and
an estimate of what a plan will request (`estimate`)."""

from .conformance import (
    Drive,
    check_channel,
    check_metric,
    check_policy,
    check_protocol,
    check_reply,
    check_task,
    check_world,
    drive,
    examine,
)
from .groups import misassigned
from .proof import Proof, prove
from .rehearsal import rehearse
from .views import check_view

__all__ = [
    "Drive",
    "Proof",
    "check_channel",
    "check_metric",
    "check_policy",
    "check_protocol",
    "check_reply",
    "check_task",
    "check_view",
    "check_world",
    "drive",
    "examine",
    "misassigned",
    "prove",
    "rehearse",
]
