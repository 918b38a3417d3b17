"""The real vLLM engine on the CPU, with a tiny random model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.api import Completion, Request, Thread, derive_seed
from harness.api.errors import ContextLengthError, EngineFatalError, RequestError, SetupError
from harness.extensions.vllm._vllm_reasoning import vllm_parser
from harness.extensions.vllm.vllm import VLLM
from tests.conftest import VLLM_ARGS, Driven, request

pytestmark = pytest.mark.vllm

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "why": {"type": "string", "maxLength": 20}},
    "required": ["colour", "why"],
    "additionalProperties": False,
}


def test_free_text_with_its_counts(vllm_engine: Driven) -> None:
    answer = vllm_engine.ask("Hello.", max_tokens=12)
    assert answer.text or answer.reasoning
    assert answer.finish_reason in {"length", "stop"}
    assert answer.output_tokens is not None and 0 < answer.output_tokens <= 12
    assert answer.input_tokens is not None and answer.input_tokens > 5
    assert answer.latency is not None and answer.latency > 0


def test_every_form_of_constraint_holds(vllm_engine: Driven) -> None:
    async def many(constraint: dict[str, object]) -> list[Completion]:
        requests = [request("Decide.", key=k, constraint=constraint, max_tokens=160) for k in range(8)]
        return await asyncio.gather(*map(vllm_engine.engine.complete, requests))

    for answer in vllm_engine.run(many({"choice": ["Yes", "No"]})):
        assert answer.text in {"Yes", "No"}
    for answer in vllm_engine.run(many({"regex": r"Group [123]"})):
        assert re.fullmatch(r"Group [123]", answer.text)
    for answer in vllm_engine.run(many({"json": SCHEMA})):
        data = json.loads(answer.text, strict=False)  # xgrammar lets raw tabs stand in strings
        assert data["colour"] in {"red", "blue"} and len(data["why"]) <= 20
    for answer in vllm_engine.run(many({"grammar": 'root ::= "up" | "down"'})):
        assert answer.text in {"up", "down"}


def test_tags_of_reasoning_in_a_constrained_answer_are_content(vllm_engine: Driven) -> None:
    answer = vllm_engine.ask("Decide.", constraint={"choice": ["<think>a</think>b"]})
    assert (answer.reasoning, answer.text) == (None, "<think>a</think>b")


def test_a_constraint_vllm_cannot_read_fails_that_request_only(vllm_engine: Driven) -> None:
    with pytest.raises(RequestError):
        vllm_engine.ask("Hello.", constraint={"regex": "(["})
    assert vllm_engine.ask("Hello.", constraint={"choice": ["a"]}).text == "a"


def test_a_seed_repeats_its_answer_and_another_seed_does_not(vllm_engine: Driven) -> None:
    first, again, other = (vllm_engine.ask("Speak.", key=key, max_tokens=40) for key in (1, 1, 2))
    assert (first.text, first.reasoning) == (again.text, again.reasoning)
    assert (first.text, first.reasoning) != (other.text, other.reasoning)


def test_a_bias_may_name_tokens_by_number_or_by_text(vllm_engine: Driven) -> None:
    answers = {vllm_engine.ask("Speak.", logit_bias={key: 100}, max_tokens=5).text for key in (40, "40")}
    assert len(answers) == 1 and len(set(answers.pop())) == 1


def test_do_sample_false_is_greedy(vllm_engine: Driven) -> None:
    answers = {vllm_engine.ask("Speak.", key=key, do_sample=False, max_tokens=8).text for key in range(3)}
    assert len(answers) == 1


def test_stop_strings_end_the_text_before_them(vllm_engine: Driven) -> None:
    for key in range(4):
        whole = vllm_engine.ask("Speak.", key=key, max_tokens=60)
        cut = vllm_engine.ask("Speak.", key=key, max_tokens=60, until=["e"])
        if whole.reasoning is None and "e" in whole.text:
            assert cut.text == whole.text.partition("e")[0]
            assert cut.finish_reason == "stop"
            break
    else:
        pytest.fail("no answer of four held the letter e")


def test_a_prompt_too_long_fails_alone(vllm_engine: Driven) -> None:
    async def mixed() -> list[Completion | BaseException]:
        requests = [request("word " * (5000 if k == 2 else 5), key=k, max_tokens=8) for k in range(5)]
        return await asyncio.gather(*map(vllm_engine.engine.complete, requests), return_exceptions=True)

    answers = vllm_engine.run(mixed())
    assert isinstance(answers[2], ContextLengthError)
    assert "2048" in str(answers[2])
    assert all(isinstance(a, Completion) for k, a in enumerate(answers) if k != 2)


def test_the_last_free_token_is_used_and_none_beyond(vllm_engine: Driven) -> None:
    overhead = vllm_engine.ask("x", max_tokens=1).input_tokens
    assert overhead is not None
    room = VLLM_ARGS["max_model_len"] - overhead  # every further x is a token of its own, as repeats do not merge
    fits = vllm_engine.ask("x" + "§x" * 500, max_tokens=5000)
    assert fits.input_tokens is not None and fits.output_tokens is not None
    assert fits.input_tokens + fits.output_tokens <= VLLM_ARGS["max_model_len"]
    exact = vllm_engine.ask("x" * room, ignore_eos=True, max_tokens=5000)
    assert exact.input_tokens == VLLM_ARGS["max_model_len"] - 1 and exact.output_tokens == 1
    with pytest.raises(ContextLengthError):
        vllm_engine.ask("x" * (room + 1))


def test_sixteen_conversations_at_once_only_tokenize_what_is_new(vllm_engine: Driven) -> None:
    async def talk(agent: int) -> Thread:
        thread = Thread()
        thread.add("system", f"You are agent {agent} of a network.")
        for turn in range(6):
            thread.add("user", f"Round {turn}: " + "the agents talk to their neighbors. " * 4)
            constraint = {"regex": "[a-z ]{10,30}"}
            seed = derive_seed(agent, turn)
            ask = Request(f"e/{agent}/{turn}/0", thread, {"max_tokens": 40}, seed, constraint)
            thread.add("assistant", (await vllm_engine.engine.complete(ask)).text)
        return thread

    async def all_of_them() -> list[Thread]:
        return await asyncio.gather(*(talk(agent) for agent in range(16)))

    vllm_engine.ask("Hello.", max_tokens=4)  # it reports nothing before its first request
    before = vllm_engine.engine.report()
    threads = vllm_engine.run(all_of_them())
    after = vllm_engine.engine.report()
    assert [len(t.messages) for t in threads] == [13] * 16
    assert after["prompts_tokenized_whole"] - before["prompts_tokenized_whole"] == 16  # only the first turns
    assert after["prompts_appended"] - before["prompts_appended"] == 16 * 5
    assert after["cached_tokens"] > before["cached_tokens"]
    again = vllm_engine.run(all_of_them())
    assert [t.messages for t in again] == [t.messages for t in threads]


def test_more_requests_than_it_can_run_wait_here_and_it_tells_of_its_load(vllm_engine: Driven) -> None:
    async def many() -> list[Completion]:
        requests = [request("Speak.", key=k, max_tokens=20, ignore_eos=True) for k in range(80)]
        return await asyncio.gather(*map(vllm_engine.engine.complete, requests))

    vllm_engine.ask("Hello.", max_tokens=4)
    before = vllm_engine.engine.report()
    assert len(vllm_engine.run(many())) == 80
    after = vllm_engine.engine.report()
    assert after["output_tokens"] - before["output_tokens"] == 80 * 20
    assert 80 - 16 - 16 <= after["queued_max"] < 80, "sixteen run, sixteen wait in the engine, the others here"
    assert after["running_max"] == 16 and 0 < after["waiting_max"] <= 16
    assert 0 < after["running_mean"] <= 16 and 0 < after["kv_cache_use_max"] <= 1
    assert 0 <= after["engine_idle_share"] < 1 and after["seconds"] > before["seconds"]
    assert after["prompt_tokens_per_second"] > 0 and after["output_tokens_per_second"] > 0
    assert after["preemptions"] >= 0


def test_vllm_keeps_no_statistics_of_requests_in_this_process(vllm_engine: Driven) -> None:
    """They cost half as much again as all the rest; the scheduler's come all the same."""
    vllm = vllm_engine.engine._engine
    assert vllm.logger_manager is not None and len(vllm.logger_manager.stat_loggers) == 1
    assert vllm.output_processor.log_stats is False
    assert vllm_engine.ask("Hello.", max_tokens=4).output_tokens
    assert "running_mean" in vllm_engine.engine.report()


def test_an_engine_without_sleep_mode_does_not_sleep(vllm_engine: Driven) -> None:
    assert vllm_engine.run(vllm_engine.engine.sleep()) is False


def test_an_unknown_generation_word_is_the_users_mistake(vllm_engine: Driven) -> None:
    with pytest.raises(SetupError, match="temperature"):
        vllm_engine.ask("Hello.", temprature=0.5)


def test_description_names_the_model_and_no_tensors(vllm_engine: Driven) -> None:
    facts = json.loads(json.dumps(vllm_engine.engine.describe()))
    assert "hf_1" not in str(VLLM(pretrained="m", engine_args={"hf_token": "hf_1"}).describe())
    assert facts["max_model_len"] == 2048
    assert vllm_engine.engine.model == "tiny-random-chat"


# Processes of their own: a start that fails, an engine that dies, an end without a sound.

SCRIPT = """
import asyncio, json, multiprocessing, os, signal, sys
from pathlib import Path
from tests.conftest import request
from harness.extensions.vllm._vllm_reasoning import vllm_parser
from harness.extensions.vllm.vllm import VLLM
from harness.api.errors import EngineFatalError

def engine_processes():
    return multiprocessing.active_children()

async def main():
    engine = VLLM(pretrained=sys.argv[1], **json.loads(sys.argv[3]))
    engine.log_to(Path(sys.argv[4]))
    await engine.start()
    if sys.argv[2] == "kill":
        work = asyncio.create_task(engine.complete(request("Speak.", max_tokens=2000, ignore_eos=True)))
        await asyncio.sleep(0)  # the request is on its way
        for child in engine_processes():
            child.kill()
        said = []
        for waiting in (work, engine.complete(request("And now?"))):
            try:
                await waiting
            except EngineFatalError as error:
                said.append(str(error))
        print(json.dumps(said))
    elif sys.argv[2] == "crowd":
        async def talk(k):
            asked = request(f"You are agent {k}. " + "Words. " * 40, key=k, ignore_eos=True)
            for turn in range(3):
                asked.thread.add("assistant", (await engine.complete(asked)).text)
                asked.thread.add("user", "And now?")
        await asyncio.gather(*(talk(k) for k in range(40)))
        print(json.dumps(engine.report()))
    elif sys.argv[2] == "talk":
        threads = [request(f"You are agent {k}.", key=k) for k in range(4)]
        for turn in range(3):
            for asked, answer in zip(threads, await asyncio.gather(*map(engine.complete, threads))):
                asked.thread.add("assistant", answer.text)
                asked.thread.add("user", "And now?")
        print([v for asked in threads for k, v in asked.thread.memo.items() if k.startswith("replica")])
    elif sys.argv[2] == "orphans":
        pids = sorted(int(name.name) for name in Path("/proc").iterdir() if name.name.isdecimal())
        ours = [os.getpid()]
        for pid in pids:  # parents have lower numbers, here
            try:
                if int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1]) in ours:
                    ours.append(pid)
            except OSError:
                pass
        print(json.dumps(ours[1:]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    print("CLOSING", file=sys.stderr, flush=True)
    pids = [c.pid for c in engine_processes()]
    await engine.close()
    print([pid for pid in pids if Path(f"/proc/{pid}").exists()])

if __name__ == "__main__":
    asyncio.run(main())
"""


def alone(tmp_path: Path, model: Path, mode: str, **fields: object) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        [
            sys.executable,
            str(script),
            str(model),
            mode,
            json.dumps({**VLLM_ARGS, **fields}),
            str(tmp_path / "engine.log"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": root},
    )


@pytest.fixture(scope="module")
def crowd(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Forty conversations in a cache that holds a few of them, and the folder with the engine's log."""
    folder = tmp_path_factory.mktemp("crowd")
    return alone(folder, tiny_model, "crowd", engine_args={"num_gpu_blocks_override": 70}), folder


def test_a_small_cache_is_lived_with(crowd: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Every wait ends."""
    done, _ = crowd
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout.splitlines()[0])
    assert data["requests"] == 120 and data["queued_max"] > 0
    assert 0.5 < data["kv_cache_use_max"] <= 1


def test_it_ends_without_a_sound_and_leaves_no_process(
    crowd: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = crowd
    assert done.stdout.splitlines()[1:] == ["[]"]
    assert done.stderr == "CLOSING\n"
    assert "EngineCore" in (folder / "engine.log").read_text()


@pytest.mark.slow
def test_what_a_killed_process_leaves_behind_ends(tmp_path: Path, tiny_model: Path) -> None:
    done = alone(tmp_path, tiny_model, "orphans")  # returns when nobody holds its streams any more
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = json.loads(done.stdout)
    assert len(left) > 1
    assert all(map(ends, left))


def ends(pid: int) -> bool:
    """Whether a process that is no child of ours comes to its end."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    return bool(ready)


@pytest.mark.slow
def test_a_dead_engine_process_is_fatal_at_once(tmp_path: Path, tiny_model: Path) -> None:
    done = alone(tmp_path, tiny_model, "kill")
    assert done.returncode == 0, done.stderr
    text, left = map(json.loads, done.stdout.splitlines())
    assert len(text) == 2 and left == []
    assert "was killed by SIGKILL" in text[0] and f"its output: {tmp_path}/engine.log (Most often memory" in text[0]


@pytest.mark.slow
def test_data_parallel_replicas_share_the_threads_and_keep_them(tmp_path: Path, tiny_model: Path) -> None:
    done = alone(tmp_path, tiny_model, "talk", data_parallel_size=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0, 1, 0, 1]", "[]"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"engine_args": {"swap_spaces": 1}}, "no argument 'swap_spaces'"),
        ({"engine_args": {"max_logprob": 1}}, "max_logprobs"),
        ({"chat_template": "/nowhere/template.jinja"}, "chat_template"),
        ({"max_model_len": 100_000}, "max_model_len"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # what vLLM's dependencies say while they are imported
def test_what_cannot_start_says_why(tiny_model: Path, arguments: dict[str, object], words: str) -> None:
    engine = VLLM(**{"pretrained": str(tiny_model), **VLLM_ARGS, **arguments})  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=words):
        asyncio.run(engine.start())


def test_after_close_nothing_more_can_be_asked(tiny_model: Path) -> None:
    engine = VLLM(pretrained=str(tiny_model), **VLLM_ARGS)
    with pytest.raises(EngineFatalError, match="not started"):
        asyncio.run(engine.complete(request("Hello.")))
    asyncio.run(engine.close())


def test_vllms_own_reasoning_parsers_can_be_named(vllm_engine: Driven, tiny_model: Path) -> None:
    tokenizer = vllm_engine.engine._engine.get_tokenizer()
    read = vllm_parser("deepseek_r1", tokenizer, str(tiny_model))
    assert read is not None
    assert read("<think>hm</think>Yes") == ("hm", "Yes")
    assert read("hm") == ("hm", "")
    for parser, words in (("deepseek_r9", "no reasoning_parser 'deepseek_r9'"), ("openai_gptoss", "vllm serve")):
        with pytest.raises(SetupError, match=words):
            vllm_parser(parser, tokenizer, str(tiny_model))
