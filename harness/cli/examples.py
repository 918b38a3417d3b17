"""What the help of every command ends with. Tests run them one after another, as they stand here.

Imports nothing, because `harness --help` reads it.
"""

from __future__ import annotations

from typing import Final

SERVER: Final = "base_url=http://localhost:8000/v1,model=Qwen/Qwen3-8B"
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "eval": (
        "harness eval --spec agentsnet_quick --output_path results/scripted",
        f"harness eval --spec agentsnet_quick --model openai --model_args {SERVER} --output_path results/qwen",
    ),
    "fit": ("harness fit --spec darkforest_quick --limit 8 --quiet",),
    "validate": ("harness validate agentsnet_quick",),
    "plan": ("harness plan --spec agentsnet_quick",),
    "show": ("harness show --spec agentsnet_quick --case 0 --round 1",),
    "list": ("harness list specs",),
    "schema": ("harness schema tasks agentsnet/coloring",),
    "score": ("harness score results/scripted",),
    "plot": ("harness plot results/scripted --kind failures --by problem -o failures.svg",),
    "report": ("harness report results/scripted --format html -o report.html",),
    "leaderboard": ("harness leaderboard results",),
    "compare": ("harness compare results/scripted results/qwen",),
    "judge": (f"harness judge results/scripted results/qwen --judge openai --judge_args {SERVER}",),
    "agreement": ("harness agreement results/scripted --metric solved --labels labels.csv",),
    "messages": ("harness messages results/scripted",),
    "trust": ("harness trust results/scripted",),
    "view": ("harness view results/scripted",),
    "export": ("harness export results/scripted --to csv",),
    "convert": ("harness convert lm_eval gsm8k -o gsm8k.yaml",),
    "new": ("harness new my_project",),
}
"""Command → command lines that can be given as they are, where a server answers and labels.csv has labels of people."""


def ending(command: str) -> str:
    """The last part of a command's help."""
    lines = EXAMPLES[command]
    return "\n".join([f"example{'s' * (len(lines) > 1)}:", *map(_folded, lines)])


def _folded(line: str) -> str:
    """The line, indented; of a long one each option that would stand beyond 78 columns begins another line."""
    lines = [" "]
    for part in line.replace(" --", "\n--").replace(" -o", "\n-o").split("\n"):
        if len(lines[-1]) + len(part) < 76:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}")
    return " \\\n".join(lines)
