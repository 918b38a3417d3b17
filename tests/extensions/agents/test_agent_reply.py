"""What an A2A agent has answered: any events give a reply or an error of the engine, and streams are joined."""

from typing import Any

from a2a.types import (
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api.errors import EngineError
from harness.extensions.agents._agent_reply import Gathered, Whereabouts
from harness.extensions.agents.conversations import read_answer
from harness.extensions.openai.wire import GarbledError
from tests.helpers.samples import examples

TEXTS = st.text(max_size=6)
NAMES = st.sampled_from(["", "a", "b"])
FACTS = st.dictionaries(
    st.sampled_from(["input_tokens", "cost", "reasoning", "finish_reason", "other"]),
    st.one_of(st.none(), st.floats(), st.booleans(), TEXTS, st.lists(TEXTS, max_size=2)),
    max_size=3,
)
PARTS = st.lists(
    st.one_of(
        TEXTS.map(lambda text: Part(text=text)),
        st.just(Part(raw=b"x", media_type="\x1b[2J")),
        st.just(Part(url="http://x")),
        st.just(Part(data={"bool_value": True})),
        st.just(Part()),
    ),
    max_size=3,
)
MESSAGES = st.builds(
    lambda parts, context, facts: Message(parts=parts, context_id=context, metadata=facts), PARTS, NAMES, FACTS
)
STATES = st.builds(
    lambda state, message: TaskStatus(state=state, message=message),
    st.sampled_from([*TaskState.values(), 77]),
    MESSAGES,
)
ARTIFACTS = st.builds(
    lambda name, parts, facts: Artifact(artifact_id=name, parts=parts, metadata=facts), NAMES, PARTS, FACTS
)
EVENTS = st.one_of(
    st.just(StreamResponse()),
    MESSAGES.map(lambda one: StreamResponse(message=one)),
    st.builds(
        lambda name, context, status, artifacts: StreamResponse(
            task=Task(id=name, context_id=context, status=status, artifacts=artifacts)
        ),
        NAMES, NAMES, STATES, st.lists(ARTIFACTS, max_size=2),
    ),
    st.builds(
        lambda name, status, facts: StreamResponse(
            status_update=TaskStatusUpdateEvent(task_id=name, status=status, metadata=facts)
        ),
        NAMES, STATES, FACTS,
    ),
    st.builds(
        lambda name, artifact, append: StreamResponse(
            artifact_update=TaskArtifactUpdateEvent(task_id=name, artifact=artifact, append=append)
        ),
        NAMES, ARTIFACTS, st.booleans(),
    ),
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(EVENTS, max_size=6), st.one_of(st.none(), st.just(Whereabouts("c", "a", frozenset({"a"})))))
def test_any_events_are_a_reply_or_an_error(events: list[Any], before: Whereabouts | None) -> None:
    answer = Gathered(before)
    for event in events:
        answer.take(event)
    try:
        reply, after = answer.answer()
        completion = read_answer(reply)
    except (EngineError, GarbledError) as error:
        assert "\x1b" not in str(error)
        return
    assert isinstance(completion.text, str) and (after is None or after.context)
    assert completion.input_tokens is None or completion.input_tokens >= 0


@given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(TEXTS, max_size=3))
def test_chunks_are_joined_without_gaps_and_artifacts_by_lines(chunks: list[str], more: list[str]) -> None:
    answer = Gathered(None)

    def update(name: str, text: str, append: bool) -> None:
        artifact = Artifact(artifact_id=name, parts=[Part(text=text)])
        change = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
        answer.take(StreamResponse(artifact_update=change))

    for number, text in enumerate(chunks):
        update("a", text, append=number > 0)
    for number, text in enumerate(more):
        update(f"b{number}", text, append=False)
    done = TaskStatusUpdateEvent(task_id="t", status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
    answer.take(StreamResponse(status_update=done))
    reply, after = answer.answer()
    assert reply["text"] == "\n".join(["".join(chunks), *more]) and after == Whereabouts("c")
