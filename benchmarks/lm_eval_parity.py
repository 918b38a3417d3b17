"""The same tasks by the `lm_eval` command and by `harness eval`, with a tiny random model on vLLM's CPU engine.

    python benchmarks/lm_eval_parity.py [--each] [--documents 2000] [KIND …]

The first part runs every kind of task in tests/data/lm_eval/ with both commands and compares prompts (the texts that
lm-eval logs, and the token ids that reach vLLM), replies and log-likelihoods, metric values and standard errors: equal
means the same bytes and the same numbers to twelve digits (lm-eval adds floating-point numbers one after another, the
harness exactly, so that the sixteenth digit of a mean or its error may differ). Kinds with the same options share a
command, and its time, unless `--each` gives every kind commands of its own. The second part times both on many
documents: wall time of the whole command, and the CPU time of its main process, which is all that is not vLLM's engine.

Both get the same engine arguments: float32, nothing compiled; in the first part no prefix cache, so that as many tokens
are computed. It needs vllm and lm_eval.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
TASKS = ROOT / "tests" / "data" / "lm_eval"
Row = dict[str, object]
Json = dict[str, Any]

ARGUMENTS: Json = {
    "dtype": "float32",
    "max_model_len": 512,
    "max_num_seqs": 64,
    "enforce_eager": True,
    "enable_prefix_caching": False,
}
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "LMEVAL_LOG_LEVEL": "ERROR",
    "TOKENIZERS_PARALLELISM": "false",
}
CHAT = {"apply_chat_template": True}
SYSTEM = "You are brief. Answer with one letter."


@dataclass(frozen=True)
class Kind:
    """A kind of task: its title, the task's name, and what both commands are given besides."""

    title: str
    task: str
    options: Json = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether a row of the results belongs to it: the task, or a part of the group."""
        return name == self.task or name.startswith((f"{self.task}_", f"{self.task}::"))


KINDS = (
    Kind("multiple choice", "local_multiple_choice"),
    Kind("cloze with acc_norm", "local_cloze"),
    Kind("generate_until, two filters", "local_two_filters"),
    Kind(
        "few-shot multiturn, system instruction",
        "local_multiturn",
        {**CHAT, "fewshot_as_multiturn": True, "system_instruction": SYSTEM},
    ),
    Kind("chat template", "local_chat", CHAT),
    Kind("rolling perplexity", "local_rolling"),
    Kind("group with weights", "local_group"),
    Kind("!function processing", "local_functions"),
    Kind("aggregation: f1, mcc, brier", "local_aggregation"),
    Kind("aggregation of its own", "local_macro_f1"),
    Kind("repeats, majority filter", "local_majority"),
    Kind("doc_to_choice list, mutual information", "local_choice_list"),
    Kind("target_delimiter", "local_delimiter"),
    Kind("loglikelihood", "local_last_word"),
    Kind("one context a choice", "local_pronouns"),
)
SMOKE = ("local_cloze", "local_two_filters")


# ---------------------------------------------------------------------------------------------- both commands


@dataclass(frozen=True)
class Played:
    """What a command left.

    Attributes:
        results: the JSON of its results.
        samples: task → its samples.
        tokens: the token ids of all requests, sorted.
        wall: seconds of the whole command.
        cpu: seconds of its main process, without vLLM's engine.
    """

    results: Json
    samples: dict[str, list[Json]]
    tokens: list[list[int]]
    wall: float
    cpu: float


def theirs(model: Path, kinds: Sequence[Kind], folder: Path, *, noted: bool = True, include: Path = TASKS) -> Played:
    """Run `lm_eval` on kinds of the same options."""
    folder.mkdir()
    name = "vllm_noted" if noted else "vllm"
    command = [str(ROOT / "benchmarks" / "lm_eval_command.py"), "--model", name]
    command += ["--tasks", ",".join(kind.task for kind in kinds)]
    command += ["--model_args", words({"pretrained": model, **arguments(noted)}), "--include_path", str(include)]
    command += ["--output_path", str(folder / "out"), "--log_samples", "--batch_size", "auto"]
    for option, value in kinds[0].options.items():
        command += [f"--{option}"] if value is True else [f"--{option}", str(value)]
    wall, cpu = timed(command, folder, noted)
    return read(folder / "out", folder, wall, cpu)


def ours(model: Path, kinds: Sequence[Kind], folder: Path, *, noted: bool = True, include: Path = TASKS) -> Played:
    """Run `harness eval` on kinds of the same options, then `harness export --to lm_eval`."""
    project(folder)
    names = [kind.task for kind in kinds]
    task = {"use": "lm_eval", "task": names, "include_path": str(include), **kinds[0].options}
    spec = {"name": "parity", "task": task, "protocol": "single"}
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    command = ["-m", "harness", "eval", "--spec", "spec.yaml", "--output_path", str(folder / "run"), "--quiet"]
    command += [
        "--model",
        "noted" if noted else "vllm",
        "--model_args",
        words({"pretrained": model, **arguments(noted)}),
    ]
    wall, cpu = timed(command, folder, noted)
    export = [sys.executable, "-m", "harness", "export", str(folder / "run"), "--to", "lm_eval", "-o", "out"]
    subprocess.run(export, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return read(folder / "out", folder, wall, cpu)


def arguments(noted: bool) -> Json:
    """Of the engine. What is timed may use the prefix cache, as users do."""
    return {name: value for name, value in ARGUMENTS.items() if noted or name != "enable_prefix_caching"}


def words(values: Json) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())


NOTED = '''\
import json, os
from dataclasses import dataclass
from pathlib import Path

from harness.api import plugin
from harness.extensions.vllm.vllm import VLLM


@plugin
class Noted(VLLM):
    """vLLM that writes the token ids of each request into the file that the variable TOKENS names."""

    async def start(self) -> None:
        await super().start()
        generate = self._engine.generate

        def noted(prompt, *arguments, **more):
            with Path(os.environ["TOKENS"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(list(prompt["prompt_token_ids"])) + "\\n")
            return generate(prompt, *arguments, **more)

        self._engine.generate = noted
'''


def project(folder: Path) -> None:
    """A project on top of this checkout, with the engine `noted`."""
    (folder / "registry" / "engines").mkdir(parents=True)
    (folder / "registry" / "engines" / "noted.py").write_text(NOTED, "utf-8")
    (folder / "harness.yaml").write_text("parents: [harness_builtin]\n", "utf-8")


_MEASURED = """\
import json, os, resource, runpy, sys, time, atexit
began = time.perf_counter()
def end():
    own = resource.getrusage(resource.RUSAGE_SELF)
    with open(os.environ["MEASURED"], "w") as file:
        json.dump([time.perf_counter() - began, own.ru_utime + own.ru_stime], file)
atexit.register(end)
sys.argv = sys.argv[1:]
if sys.argv[0] == "-m":
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def timed(command: Sequence[str], folder: Path, noted: bool) -> tuple[float, float]:
    """(wall seconds of a Python command with its start and end, CPU seconds of its main process)."""
    environment = {**ENVIRONMENT, **os.environ, "MEASURED": str(folder / "measured.json")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    if noted:
        environment["TOKENS"] = str(folder / "tokens.jsonl")
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    wall = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return wall, float(json.loads((folder / "measured.json").read_text("utf-8"))[1])


def read(out: Path, folder: Path, wall: float, cpu: float) -> Played:
    """What a command wrote."""
    [path] = out.glob("*/results_*.json")
    samples = {
        file.name.partition("_")[2].rpartition("_")[0]: [
            json.loads(line) for line in file.read_text("utf-8").splitlines()
        ]
        for file in out.glob("*/samples_*.jsonl")
    }
    tokens: list[list[int]] = []
    with contextlib.suppress(FileNotFoundError):
        tokens = sorted(json.loads(line) for line in (folder / "tokens.jsonl").read_text("utf-8").splitlines())
    return Played(json.loads(path.read_text("utf-8")), samples, tokens, wall, cpu)


# ---------------------------------------------------------------------------------------------- differences


def differences(mine: Played, their: Played, chat: bool = False) -> Iterator[str]:
    """What is not equal, in words.

    Under a chat template lm-eval logs the rendered text and the harness the messages: there token ids alone compare.
    """
    if mine.tokens != their.tokens:
        requests = f"{len(mine.tokens)} requests, lm-eval {len(their.tokens)}"
        yield f"token ids: {requests}; {unlike(mine.tokens, their.tokens)}"
    if mine.samples.keys() != their.samples.keys():
        yield f"tasks: {sorted(mine.samples)}, lm-eval {sorted(their.samples)}"
    for task in mine.samples.keys() & their.samples.keys():
        own, other = (
            {(sample["doc_id"], sample["filter"]): sample for sample in played.samples[task]}
            for played in (mine, their)
        )
        if own.keys() != other.keys():
            yield f"{task}: documents {sorted(own)[:5]}…, lm-eval {sorted(other)[:5]}…"
        names = ["doc", "target", "resps", "filtered_resps", "doc_hash", "target_hash"]
        names += [] if chat else ["arguments", "prompt_hash"]
        for key in own.keys() & other.keys():
            for name in (*names, *other[key]["metrics"]):
                if not close(own[key].get(name), other[key][name]) and not has_text(name, other[key]):
                    yield f"{task} {key} {name}: {own[key].get(name)!r:.300}, lm-eval {other[key][name]!r:.300}"
    for part in ("results", "groups"):
        own_rows, other_rows = mine.results.get(part, {}), their.results.get(part, {})
        if own_rows.keys() != other_rows.keys():
            yield f"{part}: {sorted(own_rows)}, lm-eval {sorted(other_rows)}"
        for task in own_rows.keys() & other_rows.keys():
            for name in own_rows[task].keys() | other_rows[task].keys():
                if not close(own_rows[task].get(name), other_rows[task].get(name)):
                    found = f"{own_rows[task].get(name)!r}, lm-eval {other_rows[task].get(name)!r}"
                    yield f"{part} {task} {name}: {found}"
    for part in ("group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples"):
        if mine.results.get(part) != their.results.get(part):
            yield f"{part}: {mine.results.get(part)}, lm-eval {their.results.get(part)}"


def has_text(name: str, sample: Json) -> bool:
    """Whether a metric's value is a NumPy array, of which lm-eval writes what Python prints."""
    value = sample[name]
    return name in sample["metrics"] and isinstance(value, list) and any(isinstance(item, str) for item in value)


def close(mine: object, their: object) -> bool:
    """Whether two numbers have the same twelve digits, or two other things are equal."""
    if isinstance(mine, int | float) and isinstance(their, int | float):
        return math.isclose(mine, their, rel_tol=1e-12)
    return mine == their


def unlike(mine: list[list[int]], their: list[list[int]]) -> str:
    first = next((pair for pair in zip(mine, their, strict=False) if pair[0] != pair[1]), None)
    return "" if first is None else f"first {first[0]}, lm-eval {first[1]}"


def numbers(results: Json) -> list[tuple[str, str, object, object]]:
    """(task or group, "METRIC,FILTER", value, standard error), as lm-eval's table has them."""
    rows = []
    for name, row in results["results"].items():
        for key, value in row.items():
            metric, _, its_filter = key.partition(",")
            if its_filter and not metric.endswith("_stderr"):
                rows.append((name, key, value, row.get(f"{metric}_stderr,{its_filter}")))
    return rows


def compared(model: Path, kinds: Sequence[Kind], each: bool = False) -> tuple[list[Row], list[str]]:
    """A row for each number of each kind, and all differences."""
    batches: dict[str, list[Kind]] = {}
    for kind in kinds:
        batches.setdefault(kind.task if each else json.dumps(kind.options), []).append(kind)
    rows: list[Row] = []
    found: list[str] = []
    for batch in batches.values():
        with tempfile.TemporaryDirectory() as temporary:
            their, mine = theirs(model, batch, Path(temporary) / "theirs"), ours(model, batch, Path(temporary) / "ours")
        unequal = list(differences(mine, their, chat="apply_chat_template" in batch[0].options))
        found += unequal
        print(f"{', '.join(kind.task for kind in batch)}: {len(unequal)} differences", file=sys.stderr)
        times: Row = {"requests": len(their.tokens), "token ids": "=" if mine.tokens == their.tokens else "OTHER"}
        times |= {"lm_eval s": f"{their.wall:.0f}", "harness s": f"{mine.wall:.0f}"}
        for kind in batch:
            for task, metric, value, stderr in numbers(their.results):
                if kind.has(task):
                    own = mine.results["results"].get(task, {})
                    name, _, its_filter = metric.partition(",")
                    equal = close(own.get(metric), value) and close(own.get(f"{name}_stderr,{its_filter}"), stderr)
                    row: Row = {"kind": kind.title, "task": task, "metric": metric, "lm_eval": value, "stderr": stderr}
                    rows.append(row | {"harness": "=" if equal else own.get(metric)} | times)
                    times = dict.fromkeys(times, "")
    return rows, found


# ---------------------------------------------------------------------------------------------- many documents


def many(folder: Path, count: int) -> None:
    """Two tasks of so many documents: multiple choice, and generate_until."""
    rng = random.Random(0)
    lines = [json.loads(line) for line in (TASKS / "vowels.jsonl").read_text("utf-8").splitlines()]
    folder.mkdir()
    with (folder / "many.jsonl").open("w", encoding="utf-8") as file:
        for i in range(count):
            row = rng.choice(lines)
            options = rng.sample("aeiou", 4)
            about = " ".join(rng.choice(lines)["word"] for _ in range(rng.randint(10, 40)))
            question = f"({i}) {about}. Which vowel is {row['where']} in {row['word']}?"
            file.write(
                json.dumps({"question": question, "options": options, "gold": i % 4, "vowel": row["vowel"]}) + "\n"
            )
    shared = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / "many.jsonl")}}}
    shared |= {"test_split": "test", "doc_to_text": "Question: {{question}}\nAnswer:", "metadata": {"version": 1.0}}
    mean = {"aggregation": "mean", "higher_is_better": True}
    choice: Json = {
        "task": "many_choice",
        "output_type": "multiple_choice",
        "doc_to_choice": "options",
        "doc_to_target": "gold",
    }
    choice["metric_list"] = [{"metric": metric, **mean} for metric in ("acc", "acc_norm")]
    generate: Json = {"task": "many_generate", "output_type": "generate_until", "doc_to_target": "vowel"}
    generate["generation_kwargs"] = {"until": ["\n"], "do_sample": False, "max_gen_toks": 16}
    first = [{"function": "regex", "regex_pattern": "[aeiou]"}, {"function": "take_first"}]
    generate["filter_list"] = [{"name": "first-vowel", "filter": first}]
    generate["metric_list"] = [{"metric": "exact_match", **mean}]
    for task in (choice, generate):
        (folder / f"{task['task']}.yaml").write_text(yaml.safe_dump({**shared, **task}, sort_keys=False), "utf-8")


def side_by_side(model: Path, count: int, passes: int) -> list[Row]:
    """Wall time and CPU time outside the engine of both commands, taken in turns; the least of each.

    `beyond 10` is what remains once the same command's figure for 10 documents is taken off: imports, vLLM's start.
    """
    rows: list[Row] = []
    ways = {"lm_eval": theirs, "harness": ours}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("many_choice", "many_generate"):
            figures: dict[tuple[str, int], list[Played]] = {}
            for size in (10, count):
                include = folder / f"{name}-{size}"
                many(include, size)
                for i in range(passes):
                    for way, play in ways.items():
                        place = folder / f"{name}-{size}-{way}-{i}"
                        played = play(model, [Kind(name, name)], place, noted=False, include=include)
                        figures.setdefault((way, size), []).append(played)
            for difference in differences(figures["harness", count][0], figures["lm_eval", count][0]):
                print(f"{name}: {difference}", file=sys.stderr)
            for way in ways:
                wall, cpu = (
                    {size: min(getattr(one, of) for one in figures[way, size]) for size in (10, count)}
                    for of in ("wall", "cpu")
                )
                row: Row = {"task": name, "documents": count, "command": way, "wall s": round(wall[count], 1)}
                row["wall s beyond 10"] = round(wall[count] - wall[10], 1)
                row["CPU s outside the engine"] = round(cpu[count], 1)
                row["CPU s beyond 10"] = round(cpu[count] - cpu[10], 1)
                row["value"] = numbers(figures[way, count][0].results)[0][2]
                rows.append(row)
    return rows


def tiny(folder: Path) -> Path:
    sys.path.insert(0, str(ROOT))
    from tests.helpers.tiny_model import make

    return make(folder, lively=True)


def run(smoke: bool) -> list[Row]:
    """For `benchmarks/run.py`: the second part alone, or in a smoke run two kinds and 20 documents."""
    with tempfile.TemporaryDirectory() as temporary:
        model = tiny(Path(temporary) / "tiny")
        if smoke:
            _, found = compared(model, [kind for kind in KINDS if kind.task in SMOKE])
            if found:
                raise SystemExit("\n".join(found))
        return side_by_side(model, 20 if smoke else 2000, 1 if smoke else 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="tasks; default: all")
    parser.add_argument("--each", action="store_true", help="commands of its own for every kind")
    parser.add_argument("--documents", type=int, default=2000, help="of the second part; 0: leave it out")
    parser.add_argument("--passes", type=int, default=3, help="of the second part")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if not options.kinds or kind.task in options.kinds]
    with tempfile.TemporaryDirectory() as temporary:
        model = tiny(Path(temporary) / "tiny")
        rows, found = compared(model, kinds, options.each)
        print(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True), flush=True)
        print("\n".join(found) or "no differences", flush=True)
        if options.documents:
            print(tabulate(side_by_side(model, options.documents, options.passes), headers="keys", tablefmt="github"))
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
