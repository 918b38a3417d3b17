"""Where a run's numbers come from, under the names that lm-eval's results have for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from harness.evaluation.run import Run

Json = dict[str, Any]


def provenance(run: Run) -> Json:
    """Environment, tokenizer, chat template and instruction of a run, as its record has them.

    Nothing is asked of this machine, which need not be the one that played. What the record does not know (of a
    server's tokenizer, say) is left out or None, as it is there.
    """
    task = run.spec.get("task")
    said: Mapping[str, Any] = task if isinstance(task, Mapping) and task.get("use") == "lm_eval" else {}
    chat = bool(said.get("apply_chat_template", False))
    multiturn = said.get("fewshot_as_multiturn")
    found = _tokenizer(run.meta)
    template = found.get("chat_template") if chat else None
    instruction = said.get("system_instruction")
    facts: Json = {
        "pretty_env_info": _environment(run.meta),
        "upper_git_hash": None,
        "system_instruction": instruction,
        "system_instruction_sha": _sha(instruction),
        "fewshot_as_multiturn": chat if multiturn is None else bool(multiturn),
        "chat_template": template,
        "chat_template_sha": _sha(template),
    }
    if found:
        tokens = {f"tokenizer_{kind}_token": [token, str(id)] for kind, (token, id) in found["tokens"].items()}
        facts |= {**tokens, "eot_token_id": found["tokens"]["eos"][1], "max_length": found["max_model_len"]}
    return facts


def seeds(run: Run) -> Json:
    """The keys of the configuration that say what was drawn with, of tasks of lm-eval."""
    from harness.extensions.lm_eval.aggregation import BOOTSTRAPS
    from harness.extensions.lm_eval.reply_grader import NUMPY_SEED

    task = run.spec.get("task")
    if not isinstance(task, Mapping) or task.get("use") != "lm_eval":
        return {}
    fewshot = task.get("fewshot_seed", 1234)
    return {"bootstrap_iters": BOOTSTRAPS, "numpy_seed": NUMPY_SEED, "torch_seed": None, "fewshot_seed": fewshot}


def _tokenizer(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the run's engine reported of its tokenizer; {} if there are several engines, or it has none of its own."""
    engines = meta.get("engines") or {}
    reports = [report for report in engines.values() if isinstance(report, Mapping)]
    found = reports[0].get("tokenizer") if len(reports) == 1 else None
    complete = isinstance(found, Mapping) and {"tokens", "max_model_len"} <= found.keys()
    return found if isinstance(found, Mapping) and complete else {}


def _environment(meta: Mapping[str, Any]) -> str:
    """Versions, machine and platform of the run, a line each."""
    lines = [f"{name} {version}" for name, version in (meta.get("versions") or {}).items()]
    lines += [f"{name}: {value}" for name, value in (meta.get("hardware") or {}).items()]
    for name, report in (meta.get("engines") or {}).items():
        if isinstance(report, Mapping) and "platform" in report:
            lines.append(f"engine {name}: {report['platform']}")
    return "\n".join(lines)


def _sha(text: Any) -> str | None:
    return hashlib.sha256(text.encode("utf-8")).hexdigest() if isinstance(text, str) and text else None
