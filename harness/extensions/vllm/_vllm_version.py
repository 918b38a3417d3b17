"""The versions of vLLM that the engine was checked against."""

from __future__ import annotations

from harness.api.errors import SetupError
from harness.engines.engine_output import one_line
from harness.plugins.manifests import is_installed

RANGE = ("0.20", "0.33")
"""The oldest and the newest version (with all their patches) that have every name that the engine uses, by
`.ci/check_vllm_versions.py`. Only 0.32 was run."""


def check_installed() -> None:
    """Raise `SetupError` if there is no vLLM; it is not imported."""
    if not is_installed("vllm"):
        raise _missing("No module named 'vllm'")


def _missing(why: str) -> SetupError:
    hint = 'Install it: pip install "mas-eval-harness[vllm]" (without a GPU: docs/reference/vllm.md)'
    return SetupError(f"the engine vllm needs the package vllm ({why})", hint=hint)


def check() -> tuple[str, str | None]:
    """Import vLLM; returns what it is and runs on, and a warning if its version was never checked.

    Raises:
        SetupError: there is none, or it finds no device.
    """
    try:
        import vllm
        from vllm.platforms import current_platform
    except ImportError as error:
        raise _missing(one_line(str(error))) from error
    installed = f"vLLM {vllm.__version__}"
    if not current_platform.device_type:
        raise SetupError(
            f"{installed} finds no device that this build of it can use",
            hint="Look at `nvidia-smi` and CUDA_VISIBLE_DEVICES. Without a GPU: docs/reference/vllm.md.",
        )
    warning = f"{installed} was not checked with this engine; those from {RANGE[0]} to {RANGE[1]} were"
    return f"{installed} on {current_platform.device_type}", warning if outside(vllm.__version__) else None


HINT = f'Install vLLM {" to ".join(RANGE)}: pip install "mas-eval-harness[vllm]"'
"""What to do where another version fails."""


def outside(installed: str) -> bool:
    """Whether a version is older or newer than those that were checked.

    >>> outside("0.32.0"), outside("0.33.1+cu129"), outside("0.34.0"), outside("0.9.2")
    (False, False, True, True)
    """
    try:
        first = tuple(int(part) for part in installed.split(".")[:2])
    except ValueError:  # a build from source
        return True
    oldest, newest = (tuple(int(part) for part in end.split(".")) for end in RANGE)
    return not oldest <= first <= newest
