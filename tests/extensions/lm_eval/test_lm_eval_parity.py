"""Every kind of task in `tests/data/lm_eval/` by lm-eval's evaluator and by `harness eval`, with the same answers.

A model that answers by a hash of what it is asked stands on both sides; so prompts, continuations, filters, metrics,
groups and standard errors must be the same. `tests/extensions/vllm/test_vllm_lm_eval.py` compares the commands with
vLLM.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.engines.likelihoods import LikelihoodRequest
from harness.engines.mock import Mock
from harness.extensions.exports import export
from tests.helpers.mock_scores import mock_scores

TASKS = Path(__file__).parents[2] / "data" / "lm_eval"
KINDS = (
    "local_multiple_choice", "local_cloze", "local_two_filters", "local_rolling", "local_group", "local_functions",
    "local_macro_f1", "local_choice_list", "local_delimiter", "local_pronouns", "local_undeclared", "local_hub_metric",
)  # fmt: skip
CHAT = {"apply_chat_template": True, "system_instruction": "You are brief."}
ROUNDS = 1000  # resamples of a bootstrap; the command's 100,000 take minutes


def number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def likelihood(context: str, text: str) -> tuple[float, bool]:
    return -(number(context, text) % 100_003) / 3000, number("greedy", context, text) % 3 == 0


def reply(context: str, until: Sequence[str], most: int) -> str:
    text = "".join("abcdeiou xyz\nEU"[number(context, i) % 15] for i in range(most))
    for stop in until:
        text = text.split(stop)[0]
    return text


class Hashing:
    """lm-eval's side of the model: what an `LM` does. Its chat template renders a conversation as JSON."""

    tokenizer_name = "none"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, ...]] = []

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        self.asked += [tuple(request.args) for request in requests]
        return [likelihood(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        self.asked += [("", request.args[0]) for request in requests]
        return [likelihood("", request.args[0])[0] for request in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        self.asked += [(request.args[0],) for request in requests]
        return [reply(r.args[0], r.args[1]["until"], r.args[1]["max_gen_toks"]) for r in requests]

    def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
        return json.dumps(chat_history)

    def chat_template(self, chat_template: Any = False) -> str:
        return "none"


class Asked:
    """Our side of it, with all that it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.engine = Mock(function=mock_scores(self.likelihoods, self.complete))

    def complete(self, request: Request) -> str:
        context = rendered(request.thread.messages, request.thread.chat, request.prefill)
        self.asked.append((context,))
        return reply(context, request.sampling["stop"], request.sampling["max_tokens"])

    def likelihoods(self, request: LikelihoodRequest) -> list[tuple[float, bool]]:
        shared = rendered(request.thread.messages, request.thread.chat, request.prefill)
        pairs = []
        for continuation in request.continuations:
            context = shared if continuation.context is None else continuation.context
            if not isinstance(context, str):
                context = json.dumps(list(map(dict, context)))
            pairs.append(("" if request.rolling else context, continuation.text))
        self.asked += pairs
        return [likelihood(*pair) for pair in pairs]


def rendered(messages: Sequence[Mapping[str, str]], chat: bool, prefill: str) -> str:
    if not chat:
        return "".join(message["content"] for message in messages) + prefill
    begun = [{"role": "assistant", "content": prefill}] if prefill else []
    return json.dumps([*messages, *begun])


def both(
    tasks: Sequence[str], folder: Path, options: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[Any, Any, Hashing, Asked]:
    """(lm-eval's results with samples, ours as `harness export` writes them, the two models)."""
    from lm_eval.api.model import LM
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    class Theirs(Hashing, LM):  # type: ignore[misc]
        """It refuses what is no `LM`."""

    their, our = Theirs(), Asked()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        manager = TaskManager(include_path=str(TASKS), include_defaults=False)
        results = simple_evaluate(
            model=their, tasks=list(tasks), task_manager=manager, bootstrap_iters=ROUNDS, **options
        )
    spec = {"name": "parity", "protocol": "single", **more}
    spec["task"] = {"use": "lm_eval", "task": list(tasks), "include_path": str(TASKS), **options}
    done = harness.evaluate(spec, our.engine, output_path=folder / "run")
    files = export(done, "lm_eval", folder / "out").files
    exported = json.loads(next(file for file in files if file.suffix == ".json").read_text("utf-8"))
    exported["samples"] = {
        file.name.partition("_")[2].rpartition("_")[0]: list(map(json.loads, file.read_text("utf-8").splitlines()))
        for file in files
        if file.suffix == ".jsonl"
    }
    return json.loads(json.dumps(results, default=as_lm_eval)), exported, their, our


def as_lm_eval(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else str(value)


def check(results: Any, exported: Any) -> None:
    """Means are summed exactly here and one after another there: twelve digits are the same, the last may differ."""
    for part in ("results", "groups"):
        assert exported.get(part, {}).keys() == results.get(part, {}).keys()
        for name, row in results.get(part, {}).items():
            assert rounded(exported[part][name]) == rounded(row), name
    for part in ("group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples"):
        assert exported[part] == results[part], part
    assert exported["samples"].keys() == results["samples"].keys()
    for task, theirs in results["samples"].items():
        own = {(sample["doc_id"], sample["filter"]): sample for sample in exported["samples"][task]}
        assert own.keys() == {(sample["doc_id"], sample["filter"]) for sample in theirs}
        for sample in theirs:
            mine = own[sample["doc_id"], sample["filter"]]
            names = ["doc", "doc_hash", "prompt_hash", "target_hash", "metrics"]
            names += [name for name in sample["metrics"] if not has_text(sample[name])]
            assert {name: mine[name] for name in names} == {name: sample[name] for name in names}
            arguments = [list(one.values()) for one in mine["arguments"].values()]
            assert [own[0] for own in arguments] == [one[0] for one in sample["arguments"]]
            assert mine["resps"] == as_text(sample["resps"])
            assert mine["filtered_resps"] == as_text(sample["filtered_resps"])


def has_text(value: Any) -> bool:
    """Of a NumPy array lm-eval writes what Python prints."""
    return isinstance(value, str) or (isinstance(value, list) and any(map(has_text, value)))


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: f"{value:.12g}" if isinstance(value, float) else value for name, value in row.items()}


def as_text(value: Any) -> Any:
    return [as_text(item) for item in value] if isinstance(value, list | tuple) else str(value)


@pytest.mark.slow
def test_every_kind(tmp_path: Path) -> None:
    results, exported, their, our = both(KINDS, tmp_path, {}, {})
    check(results, exported)
    assert sorted(our.asked) == sorted(their.asked)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tasks", [["local_majority"], ["local_majority", "local_two_filters", "local_cloze"]], ids=len)
def test_repeats_and_majority(tmp_path: Path, tasks: list[str]) -> None:
    """Where one of several tasks has repeats, the others are asked once."""
    results, exported, their, our = both(tasks, tmp_path, {}, {})
    check(results, exported)
    assert sorted(our.asked) == sorted(their.asked)


@pytest.mark.slow
@pytest.mark.parametrize("multiturn", [True, False])
def test_conversations(tmp_path: Path, multiturn: bool) -> None:
    tasks = ["local_multiturn", "local_chat", "local_pronouns", "local_delimiter"]
    results, exported, their, our = both(tasks, tmp_path, CHAT | {"fewshot_as_multiturn": multiturn}, {})
    check(results, exported)
    assert sorted(our.asked) == sorted(their.asked)


@pytest.mark.slow
def test_numbers_with_a_bootstrap(tmp_path: Path) -> None:
    how = {"f1": "f1", "mcc": "matthews_corrcoef", "brier_score": "brier_score", "perplexity": "perplexity"}
    metrics: list[Any] = [
        {"use": "lm_eval", "metric": metric, "aggregation": name, "name": f"{metric},none", "bootstrap_iters": ROUNDS}
        for metric, name in how.items()
    ]
    metrics.append({"use": "grade", "of": "acc,none", "name": "acc,none"})
    tasks = ["local_aggregation", "local_last_word"]
    results, exported, their, our = both(tasks, tmp_path, {}, {"metrics": metrics, "tables": []})
    check(results, exported)
    assert sorted(our.asked) == sorted(their.asked)


@pytest.mark.slow
def test_options_of_the_command(tmp_path: Path) -> None:
    options = {"num_fewshot": 3, "system_instruction": "Think.", "limit": 4}
    results, exported, their, our = both(["local_cloze", "local_delimiter", "local_two_filters"], tmp_path, options, {})
    check(results, exported)
    assert sorted(our.asked) == sorted(their.asked)
    picked = {"samples": {"local_cloze": [1, 3, 9]}}
    results, exported, their, our = both(["local_cloze"], tmp_path / "picked", picked, {})
    assert sorted(our.asked) == sorted(their.asked)
    check(results, exported)


@pytest.mark.slow
def test_a_groups_answer_is_graded_as_a_reply_of_one(tmp_path: Path) -> None:
    """Agents who all reply the same are as good as one of them, and the export has all of their replies."""
    task = {"use": "lm_eval", "task": "local_two_filters", "include_path": str(TASKS)}
    engine = Mock(function=lambda request: "Perhaps e, no: i")
    runs = {}
    for protocol in ("single", "debate"):
        spec = {"name": "panel", "task": task, "protocol": protocol}
        done = harness.evaluate(spec, engine, output_path=tmp_path / protocol)
        files = export(done, "lm_eval", tmp_path / f"out-{protocol}").files
        results = json.loads(next(file for file in files if file.suffix == ".json").read_text("utf-8"))
        samples = [json.loads(line) for line in files[-1].read_text("utf-8").splitlines()]
        runs[protocol] = (results["results"], samples)
    assert runs["single"][0] == runs["debate"][0]
    alone, group = ({(s["doc_id"], s["filter"]): s for s in runs[protocol][1]} for protocol in runs)
    assert alone.keys() == group.keys()
    for key, sample in group.items():
        names = ("doc", "target", "filtered_resps", "doc_hash", "exact_match")
        assert {name: sample[name] for name in names} == {name: alone[key][name] for name in names}
        assert len(sample["resps"]) == len(sample["arguments"]) > len(alone[key]["resps"]) == 1
    assert {sample["filtered_resps"][0] for sample in group.values()} == {"e", "i"}
