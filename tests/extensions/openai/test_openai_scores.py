"""Log-likelihoods, raw texts and begun replies by OpenAI-compatible servers, against a scripted one on loopback."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Thread
from harness.api.errors import EngineError, EngineFatalError, RefusedError, RequestError, SetupError
from harness.config.project import builtin
from harness.engines.likelihoods import Continuation, LikelihoodRequest
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.prompt_logprobs import Part, read_scores
from harness.extensions.openai.wire import GarbledError
from harness.runtime.runner import RunStoppedError
from tests.conftest import request
from tests.extensions.datasets.documents_kit import jsonl
from tests.helpers.fake_openai import Body, FakeOpenAI, echoed, empty_choices, garbage, raw, reset, status, value

AB = (Continuation(" A"), Continuation(" Bob"))


def plain(text: str) -> Thread:
    thread = Thread(chat=False)
    thread.add("user", text)
    return thread


def question(*texts: Continuation, thread: Thread | None = None, **more: Any) -> LikelihoodRequest:
    return LikelihoodRequest("q", thread or plain("The answer is"), continuations=texts or AB, **more)


def ask(server: FakeOpenAI, *requests: Any, **fields: Any) -> list[Any]:
    """The answers, or errors, of one engine to these requests, one after another. Retries take no time."""

    async def main() -> list[Any]:
        address = {"base_url": server.url, "model": "fake", "api_key_env": "NO_SUCH_KEY"}
        engine = OpenAI(**{**address, "backoff": 0.0, "max_backoff": 0.0, "max_retries": 2, **fields})
        await engine.start()
        answers: list[Any] = []
        try:
            for one in requests:
                call = engine.loglikelihood if isinstance(one, LikelihoodRequest) else engine.complete
                try:
                    answers.append(await call(one))
                except Exception as error:
                    answers.append(error)
        finally:
            await engine.close()
        return answers

    return asyncio.run(main())


def scores(server: FakeOpenAI, *texts: Continuation, thread: Thread | None = None, **fields: Any) -> Any:
    [answer] = ask(server, question(*texts, thread=thread), **fields)
    if isinstance(answer, Exception):
        raise answer
    return answer.likelihoods


# ---------------------------------------------------------------------------- what is sent and read


def test_the_texts_of_a_question_are_scored_in_one_request() -> None:
    with FakeOpenAI(echoed) as server:
        [answer] = ask(server, question())
    assert server.paths == ["/completions"]
    sent = {"model": "fake", "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}
    assert server.bodies == [{**sent, "prompt": ["The answer is A", "The answer is Bob"]}]
    # " A" is greedy for the fake, " Bob" is not; the choices come back in another order.
    assert answer.likelihoods == [[value(" is", " A"), True], [value(" is", " Bob"), False]]
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("", 10, 2) and answer.latency > 0


def test_a_text_of_several_tokens_is_the_sum_of_them() -> None:
    with FakeOpenAI(echoed) as server:
        [[number, greedy]] = scores(server, Continuation(" to be"))
    assert number == pytest.approx(value(" is", " to") + value(" to", " be")) and greedy is True


def test_blanks_at_the_end_of_a_prompt_are_the_texts() -> None:
    with FakeOpenAI(echoed) as server:
        same = scores(server, Continuation("A"), thread=plain("The answer is "))
        assert same == scores(server, Continuation(" A"))
    assert server.bodies[0]["prompt"] == server.bodies[1]["prompt"] == "The answer is A"


def test_contexts_of_their_own() -> None:
    own = [Continuation(" A", "Once upon"), Continuation(" A"), Continuation("", "Once")]
    with FakeOpenAI(echoed) as server:
        found = scores(server, *own)
    assert found == [[value(" upon", " A"), True], [value(" is", " A"), True], [0.0, True]]


@pytest.mark.parametrize("spelling", ["blanks lost", "nothing generated", "across the boundary"])
def test_the_text_is_found_however_the_server_names_tokens(spelling: str) -> None:
    def answer(body: Body) -> Body:
        data = echoed(body)
        for choice in data["choices"]:
            logprobs = choice["logprobs"]
            if spelling == "blanks lost":
                logprobs["tokens"] = [token.strip() for token in logprobs["tokens"]]
            elif spelling == "nothing generated":
                for values in logprobs.values():
                    values.pop()
            else:
                logprobs["tokens"][-3:-1] = [" i", "s A"]
        return data

    with FakeOpenAI(answer) as server:
        assert scores(server, Continuation(" A")) == [[value(" is", " A"), True]]


def test_the_bytes_of_a_letter_belong_to_it() -> None:
    def answer(body: Body) -> Body:
        tokens = ["", "In", "", "", "日", "", "本", "!"]
        logprobs = {"tokens": tokens, "token_logprobs": [None, *range(-1, -8, -1)], "top_logprobs": [None] * 8}
        return {"choices": [{"index": 0, "text": "In日本!", "logprobs": logprobs}]}

    with FakeOpenAI(answer) as server:
        assert scores(server, Continuation("日本", "In")) == [[-2.0 - 3 - 4 - 5 - 6, False]]
        assert scores(server, Continuation("In日本", "")) == [[-1.0 - 2 - 3 - 4 - 5 - 6, False]]


def test_a_conversation_is_scored_through_the_chat_endpoint() -> None:
    def answer(body: Body) -> Body:
        begun = len(body["messages"]) > 1 and body["messages"][0]["content"] == "How many?"
        words = ["<s>", "user", *([] if begun else ["\n"]), *body["messages"][-1]["content"].split()]
        rows: list[Any] = [None]
        for word in words[1:]:
            own = {"logprob": -len(word), "rank": 1 if len(word) < 4 else 9, "decoded_token": word}
            rows.append({"5": own} if own["rank"] == 1 else {"5": own, "6": {"logprob": -0.5, "rank": 1}})
        choice = {"index": 0, "message": {"role": "assistant", "content": "!"}}
        return {"choices": [choice], "prompt_logprobs": rows, "usage": {"prompt_tokens": len(words)}}

    thread = Thread()
    thread.add("user", "Which?")
    own = Continuation(" four", ({"role": "user", "content": "How many?"}, {"role": "assistant", "content": "I see"}))
    with FakeOpenAI(answer) as server:
        [found] = ask(server, question(Continuation("A"), Continuation("Bobby"), own, thread=thread))
    # The line break that the template puts before a reply is scored with it, as in lm-eval.
    assert found.likelihoods == [[-1.0 - 1, True], [-1.0 - 5, False], [-4.0, False]]
    assert found.input_tokens == 4 + 4 + 5 and found.output_tokens is None
    assert [body["messages"][-1]["content"] for body in server.bodies] == ["A", "Bobby", "I see four"]
    flags = {"prompt_logprobs": 1, "continue_final_message": True, "add_generation_prompt": False, "max_tokens": 1}
    assert all(flags.items() <= body.items() for body in server.bodies)
    assert len(thread.messages) == 1


def test_a_raw_text_is_continued() -> None:
    thread = plain("Once upon")
    thread.add("assistant", " a time")
    words: list[dict[str, Any]] = [{}, {"max_tokens": 9, "stop": ["\n"]}]
    for more in words:
        with FakeOpenAI(lambda body: " <think>there</think> was") as server:
            [answer] = ask(server, replace(request(""), thread=thread, sampling=more))
        assert answer.text == " <think>there</think> was" and answer.reasoning is None
        assert server.paths == ["/completions"] and server.bodies[0]["prompt"] == "Once upon a time"
        assert server.bodies[0]["max_tokens"] == more.get("max_tokens", 256)
        assert (answer.finish_reason, answer.input_tokens, answer.output_tokens) == ("stop", 7, 2)


def test_a_begun_reply_is_continued() -> None:
    begun = replace(request("Which?"), prefill="The answer is")
    with FakeOpenAI(lambda body: " B") as server:
        [answer] = ask(server, begun)
    assert answer.text == " B"
    assert server.bodies[0]["messages"][-1] == {"role": "assistant", "content": "The answer is"}
    assert (server.bodies[0]["continue_final_message"], server.bodies[0]["add_generation_prompt"]) == (True, False)
    assert len(begun.thread.messages) == 1
    begun.thread.verbatim = True
    with FakeOpenAI(lambda body: "<think>A</think>B") as server:
        [answer] = ask(server, replace(begun, prefill=""))
    assert (answer.text, answer.reasoning) == ("<think>A</think>B", None)
    with FakeOpenAI(faults=lambda body: status(400, "unknown parameter")) as server:
        [error] = ask(server, begun)
    assert type(error) is RefusedError and "unknown parameter" in str(error) and "SGLang" in str(error)


# -------------------------------------------------------------------------- servers without the ability


def without(*names: str) -> Callable[[Body], Body]:
    def answer(body: Body) -> Body:
        data = echoed(body)
        for choice in data["choices"]:
            for name in names:
                holder = choice if name == "logprobs" else choice["logprobs"]
                holder[name] = None
        return data

    return answer


def silent(body: Body) -> Body:
    """It ignores `echo`: log-probabilities of what it generated."""
    data = echoed(body)
    for choice in data["choices"]:
        choice["logprobs"] = {name: values[-1:] for name, values in choice["logprobs"].items()}
    return data


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (without("logprobs"), "its answer has no logprobs"),
        (without("token_logprobs"), "its answer has no logprobs"),
        (without("top_logprobs"), "its answer has no top_logprobs"),
        (silent, "in spite of echo"),
    ],
)
def test_without_the_ability_the_first_answer_ends_it(answer: Any, why: str) -> None:
    with FakeOpenAI(answer) as server:
        first, second = ask(server, question(), question())
    assert isinstance(first, EngineFatalError) and why in str(first) and "echo and logprobs, as vLLM" in str(first)
    assert isinstance(second, EngineFatalError) and len(server.bodies) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (status(400, "echo is not supported with logprobs"), r"it refuses to \(.*echo is not supported"),
        (status(404, "This is a chat model"), r"has no /v1/completions for fake: .*This is a chat model.*need"),
    ],
)
def test_a_server_that_refuses_stops_the_run_too(fault: Any, why: str) -> None:
    with FakeOpenAI(echoed, faults=lambda body: fault) as server, pytest.raises(EngineFatalError, match=why):
        scores(server)


def test_a_chat_server_without_prompt_logprobs() -> None:
    thread = Thread()
    thread.add("user", "Which?")
    with FakeOpenAI() as server, pytest.raises(EngineFatalError, match=r"no prompt_logprobs.*set tokenizer="):
        scores(server, thread=thread)


def test_a_server_that_takes_one_prompt_at_a_time_is_asked_so() -> None:
    def picky(body: Body) -> Any:
        return status(422, "prompt must be a string") if isinstance(body["prompt"], list) else None

    with FakeOpenAI(echoed, faults=picky) as server:
        first, second = ask(server, question(), question())
    assert first.likelihoods == second.likelihoods == [[value(" is", " A"), True], [value(" is", " Bob"), False]]
    assert [type(body["prompt"]) for body in server.bodies] == [list, str, str, str, str], "it remembers"


def test_one_that_answers_only_the_first_prompt_is_asked_one_by_one() -> None:
    def one(body: Body) -> Body:
        data = echoed(body)
        return {**data, "choices": data["choices"][-1:]}

    with FakeOpenAI(one) as server:
        assert scores(server) == [[value(" is", " A"), True], [value(" is", " Bob"), False]]


def test_a_refusal_after_scores_is_that_requests_own() -> None:
    with FakeOpenAI(echoed, script=[None, status(400, "flagged"), None]) as server:
        first, second, third = ask(server, *[question(Continuation(" A"))] * 3)
    assert isinstance(first, Completion) and type(second) is RefusedError and isinstance(third, Completion)


# ------------------------------------------------------------------------------------ hostile servers


def broken(change: Callable[[Body], object]) -> Any:
    data = echoed({"prompt": "The answer is A"})
    change(data["choices"][0]["logprobs"])
    return raw(json.dumps(data))


DAMAGE: dict[str, Any] = {
    "cut": broken(lambda it: it["token_logprobs"].pop()),
    "nan": broken(lambda it: it["token_logprobs"].__setitem__(-2, float("nan"))),
    "infinite": broken(lambda it: it["token_logprobs"].__setitem__(-2, float("inf"))),
    "positive": broken(lambda it: it["token_logprobs"].__setitem__(-2, 3.5)),
    "null": broken(lambda it: it["token_logprobs"].__setitem__(-2, None)),
    "text": broken(lambda it: it["token_logprobs"].__setitem__(-2, "-1.0")),
    "truth": broken(lambda it: it["token_logprobs"].__setitem__(-2, True)),
    "tops nan": broken(lambda it: it["top_logprobs"].__setitem__(-2, {"A": float("nan")})),
    "tokens a text": broken(lambda it: it.__setitem__("tokens", "The answer")),
    "garbage": garbage,
    "no choices": empty_choices,
    "a list": raw("[]"),
    "a choice of numbers": raw('{"choices": [5]}'),
    "an error behind 200": raw('{"error": "overloaded"}'),
    "reset": reset,
    "busy": status(503, "busy"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_answers_are_asked_for_again(name: str) -> None:
    with FakeOpenAI(echoed, script=[None, DAMAGE[name]]) as server:
        good, mended = ask(server, *[question(Continuation(" A"))] * 2)
    assert good.likelihoods == mended.likelihoods and len(server.bodies) == 3


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in DAMAGE if name != "reset"])
def test_lasting_damage_is_an_error_of_the_request(name: str) -> None:
    with FakeOpenAI(echoed, script=[None, *[DAMAGE[name]] * 3]) as server:
        good, failed, after = ask(server, *[question(Continuation(" A"))] * 3)
    assert isinstance(failed, RequestError) and not isinstance(failed, EngineFatalError)
    assert good.likelihoods == after.likelihoods


def test_impossible_and_huge_numbers_are_bounded() -> None:
    for number in ("-Infinity", "-1e308", "-" + "9" * 400):
        body = json.dumps(echoed({"prompt": "The answer is A"})).replace(f" {value(' is', ' A')},", f" {number},")
        with FakeOpenAI(script=[raw(body)]) as server:
            [[logprob, greedy]] = scores(server, Continuation(" A"))
        assert logprob == -9999.0 and type(greedy) is bool


@pytest.mark.slow
def test_deep_and_long_answers_cost_no_run() -> None:
    long = raw(json.dumps({"choices": [{"index": 0, "logprobs": {
        "tokens": ["a"] * 200_000, "token_logprobs": [-1] * 200_000, "top_logprobs": [None] * 200_000}}]}))  # fmt: skip
    deep = raw('{"choices": ' + "[" * 100_000)
    with FakeOpenAI(echoed, script=[None, long, *[deep] * 3]) as server:
        good, strange, failed, after = ask(server, *[question(Continuation(" A"))] * 4)
    assert isinstance(strange, RefusedError) and "do not spell" in str(strange)
    assert isinstance(failed, RequestError) and good.likelihoods == after.likelihoods


PARTS = [Part("a b", " b"), Part([1, 2], tokens=1), Part([{"role": "assistant", "content": "b"}], "b")]
KEYS = st.sampled_from(["index", "logprobs", "tokens", "rank", "logprob", "decoded_token", "error"])
LEAVES = st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=4)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
SHAPED = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {
                    "index": st.integers(-1, 2) | JSON,
                    "logprobs": st.fixed_dictionaries(
                        {
                            "tokens": st.lists(st.text(max_size=3) | JSON, max_size=4) | JSON,
                            "token_logprobs": st.lists(LEAVES, max_size=4) | JSON,
                            "top_logprobs": st.lists(JSON, max_size=4) | JSON,
                        }
                    )
                    | JSON,
                }
            )
            | JSON,
            max_size=3,
        )
        | JSON,
        "prompt_logprobs": st.lists(JSON, max_size=4) | JSON,
    }
)


@given(data=JSON | SHAPED, part=st.sampled_from(PARTS))
def test_any_json_is_scores_or_an_error_of_the_server(data: Any, part: Part) -> None:
    for parts in ([part], [part, part]) if not part.is_chat else ([part],):
        try:
            found = read_scores(data, parts)
        except (GarbledError, EngineError):
            continue
        assert len(found) == len(parts)
        assert all(-math.inf < number <= 0 and type(greedy) is bool for number, greedy in found)


# ------------------------------------------------------------------------------------ without a tokenizer


def test_what_only_a_tokenizer_can_say_is_said() -> None:
    spelled = ([Continuation("日本", "In ")], lambda body: _renamed(echoed(body)))
    cases: list[tuple[Any, Any, str]] = [
        (
            LikelihoodRequest("r", Thread(), continuations=(Continuation("a long text"),), rolling=True),
            echoed,
            "windows of tokens",
        ),
        (question(*spelled[0]), spelled[1], "do not spell the text ' 日本'"),
        (question(Continuation("Alone", "")), lambda body: echoed(body, start=""), "nothing stands before 'Alone'"),
    ]
    for one, answer, why in cases:
        with FakeOpenAI(answer) as server:
            [error] = ask(server, one)
        assert isinstance(error, SetupError | RefusedError) and why in str(error) and "Set tokenizer=" in str(error)
        assert not isinstance(error, EngineFatalError)


def _renamed(data: Body) -> Body:
    for choice in data["choices"]:
        choice["logprobs"]["tokens"] = ["\ufffd" for _ in choice["logprobs"]["tokens"]]
    return data


# ------------------------------------------------------------------------------------ in a run


def test_a_data_set_is_scored_by_a_server(tmp_path: Path) -> None:
    rows = [{"q": f"Is {i} odd?", "options": ["yes", "never"], "gold": i % 2} for i in range(6)]
    keys = {"doc_to_text": "q", "doc_to_target": "gold", "doc_to_choice": "options", "scoring": "loglikelihood"}
    what = {
        "name": "served",
        "task": {"use": "dataset_qa", "data_files": str(jsonl(tmp_path / "test.jsonl", rows)), **keys},
        "protocol": "single",
        "prompts": "qa/scored",
        "metrics": ["score"],
        "tables": [{"title": "Score", "rows": "model", "columns": "metric", "metrics": ["score"]}],
    }
    with FakeOpenAI(echoed) as server:
        model = OpenAI(base_url=server.url, model="fake", api_key_env="NO_SUCH_KEY")
        run = harness.evaluate(what, model, output_path=tmp_path / "run", project=builtin())
        best = int(value("Answer:", " A") < value("Answer:", " B"))
        assert [score.numbers["score"] for score in run.scores] == [float(i % 2 == best) for i in range(6)]
        assert len(server.bodies) == 6
    with FakeOpenAI(without("logprobs")) as server, pytest.raises(RunStoppedError, match="gives no log-likelihoods"):
        model = OpenAI(base_url=server.url, model="fake", api_key_env="NO_SUCH_KEY")
        harness.evaluate(what, model, output_path=tmp_path / "none", project=builtin(), max_concurrency=1)
    assert len(server.bodies) == 1
