"""vLLM in this process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import field, fields
from itertools import count
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness.api import CallsTools, Completion, ContinuesText, Facts, Range, Request, StaysUp, Thread, plugin
from harness.api.errors import ContextLengthError, EngineFatalError, RefusedError, RequestError, SetupError, near
from harness.engines.chat_tokens import ChatTokens, Prompt, count_tokens, template_of, tokenizer_facts
from harness.engines.child_reaper import ChildReaper
from harness.engines.engine_output import Output, one_line
from harness.engines.gate import is_cancelled
from harness.engines.priority import PriorityGate
from harness.engines.sampling import normalize
from harness.extensions.vllm import _vllm_cpu, _vllm_version
from harness.extensions.vllm._vllm_code import ModelCode
from harness.extensions.vllm._vllm_failures import advice, killed_process, not_a_model
from harness.extensions.vllm._vllm_reasoning import vllm_parser
from harness.extensions.vllm._vllm_requests import as_written, generating, tokens_of, try_request
from harness.extensions.vllm._vllm_scoring import VLLMScoring
from harness.extensions.vllm._vllm_tools import THOUGHT_FIELDS, ReadCalls, call_reader
from harness.extensions.vllm._vllm_weights import WORKER, UpdatesWeights
from harness.extensions.vllm.background import in_background
from harness.extensions.vllm.load import Listener, Load, listen_only
from harness.storage.redaction import without_secrets

_log = logging.getLogger(__name__)
_engines = count()


@plugin
class VLLM(UpdatesWeights, VLLMScoring, CallsTools, ContinuesText, ModelCode, StaysUp):
    """vLLM's asynchronous engine in this process, fed with token ids.

    Args:
        pretrained: a Hugging Face folder or hub id.
        tokenizer: another tokenizer's folder or hub id.
        revision: branch, tag or commit on the hub.
        dtype, max_model_len: vLLM's engine arguments, as are `gpu_memory_utilization`, `tensor_parallel_size`,
            `pipeline_parallel_size`, `data_parallel_size`, `max_num_seqs`, `max_num_batched_tokens`,
            `enable_prefix_caching`, `enforce_eager`, `quantization`, `kv_cache_dtype`, `block_size`,
            `enable_chunked_prefill`, `trust_remote_code`, `seed` and `enable_sleep_mode`. None leaves them to vLLM, on
            a CPU some of them to `_vllm_cpu.choose`. With `--sequential_engines` one in sleep mode keeps its weights
            in the machine's memory, and needs no new start.
        chat_template: a file with a Jinja chat template, in place of the model's.
        chat_template_kwargs: further variables of the template, e.g. {enable_thinking: false}.
        reasoning_parser: vLLM's parser for the model's reasoning; None: a leading <think> block.
        tool_parser: vLLM's parser for the model's calls of tools, such as `hermes`; None: it is offered no tools.
        engine_args: every other engine argument of vLLM, passed through unchanged.
        deterministic: the same replies again, whatever else is asked: batch invariance on a GPU, one request at a time
            on a CPU. At its end a run asks a sample again and records whether that held.
        return_token_ids: completions have the token ids of their prompt and their reply, as vLLM read and gave them.
        return_logprobs: and the log-probability of each token of the reply: at temperature 1, before `top_p` and other
            changes of the distribution; with `engine_args: {logprobs_mode: processed_logprobs}` after all of them.
    """

    pretrained: str
    tokenizer: str | None = None
    revision: str | None = None
    dtype: str | None = None
    max_model_len: Annotated[int, Range(ge=2)] | None = None
    gpu_memory_utilization: Annotated[float, Range(gt=0, le=1)] | None = None
    tensor_parallel_size: Annotated[int, Range(ge=1)] | None = None
    pipeline_parallel_size: Annotated[int, Range(ge=1)] | None = None
    data_parallel_size: Annotated[int, Range(ge=1)] | None = None
    max_num_seqs: Annotated[int, Range(ge=1)] | None = None
    max_num_batched_tokens: Annotated[int, Range(ge=1)] | None = None
    enable_prefix_caching: bool = True
    enforce_eager: bool | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    block_size: Annotated[int, Range(ge=1)] | None = None
    enable_chunked_prefill: bool | None = None
    trust_remote_code: bool = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    reasoning_parser: str | None = None
    tool_parser: str | None = None
    seed: int | None = None
    enable_sleep_mode: bool | None = None
    engine_args: dict[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    return_token_ids: bool = False
    return_logprobs: bool = False

    incidental: ClassVar[frozenset[str]] = frozenset(
        {"gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "data_parallel_size", "enable_sleep_mode"}
        | {"return_token_ids", "return_logprobs"}
    )

    def __post_init__(self) -> None:
        self._engine: Any = None
        self._chat: Any = None
        self._read_calls: ReadCalls | None = None
        self._processes: list[Any] = []
        self._reaper: ChildReaper | None = None
        self._numbers, self._threads = count(), count()
        self._memo = f"replica/{next(_engines)}"
        self._counts: Counter[str] = Counter()
        self._load = Load(1)
        self._gate = PriorityGate(self._load.admits)
        self._asleep = self._given_up = False
        self._output = Output()
        self._platform: dict[str, Any] = {}

    @property
    def model(self) -> str:
        path = Path(self.pretrained)
        return path.absolute().name if path.is_dir() else self.pretrained

    @property
    def tools_problem(self) -> str | None:
        return None if self.tool_parser else "tool_parser is not set, e.g. --model_args …,tool_parser=hermes"

    # ------------------------------------------------------------------------------ life

    def check(self) -> None:
        """Raises `SetupError` without the package, and for a folder that holds no model."""
        _vllm_version.check_installed()
        self._check_model()

    def _check_model(self) -> None:
        if problem := not_a_model(self.pretrained):
            raise SetupError(problem, hint="pretrained= takes a folder in Hugging Face's format, or a name on the hub.")

    async def start(self) -> None:
        """Load the model; takes from half a minute upwards.

        Raises:
            SetupError: no `vllm` package, an argument it does not know, or a model it cannot load.
        """
        if self._asleep:
            await self._engine.wake_up()
            self._asleep = False
            return
        if bool(self._engine):  # up since another run
            self._counts.clear()
            self._load.begin()
            self._gate.longest = self._chat.appended = self._chat.encoded = 0
            return
        self._given_up = False
        self._check_model()
        template = template_of(self.chat_template)
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING" if self._output.path is None else "INFO")
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # standard output is for tables
        self._output.begin(f"vllm, {self.pretrained}")
        warning: str | None = None

        def load() -> tuple[str, ...]:
            nonlocal warning
            with self._output.diverted():
                installed, warning = _vllm_version.check()
            if warning:
                _log.warning(warning)
            with self._output.diverted():
                return installed, *self._load_model()

        def read_texts() -> None:
            with self._output.diverted():
                tokenizer = self._engine.get_tokenizer()
                parser = vllm_parser(self.reasoning_parser, tokenizer, self.pretrained)
                self._chat = ChatTokens(tokenizer, template, self.chat_template_kwargs, parser)
                self._read_calls = call_reader(self.tool_parser, tokenizer, self.pretrained)
                self._platform["tokenizer"] = tokenizer_facts(tokenizer, template, self._limit)

        try:
            settings = await in_background(title := f"vLLM loads {self.model}", load, self._give_up)
            engine: Any = self._engine
            # Asked for at the first request otherwise, which would wait forever if the process died just then.
            await engine.get_supported_tasks()
            config = engine.vllm_config
            self._load.capacity = config.scheduler_config.max_num_seqs * config.parallel_config.data_parallel_size
            self._limit = int(engine.model_config.max_model_len)
            await in_background(title, read_texts, self._give_up)
        except SetupError:
            await self.close()
            raise
        except asyncio.CancelledError:
            self._give_up()
            raise
        except Exception as error:  # from a missing file to a full GPU: vLLM's own words are the best
            killed = killed_process(str(error), self._processes)
            await self.close()
            if is_cancelled():  # Ctrl-C reaches its processes too, and they fail of it
                raise asyncio.CancelledError from None
            why = self._output.why(error, killed)
            hint = advice(why) or (_vllm_version.HINT if warning else None)
            raise SetupError(f"vLLM cannot load {self.pretrained!r}: {why}{self._output.place}", hint=hint) from error
        self._output.forget()
        # vLLM's and torch's hundreds of thousands of objects stay; a full collection would take a third of a second.
        gc.collect()
        gc.freeze()
        _log.info("%s%s", "; ".join(settings), self._output.place)

    def _give_up(self) -> None:
        """The run has ended: the model's processes are killed, and no more are started."""
        self._given_up = True
        if self._reaper is not None:
            self._reaper.kill()
        self._output.restore()

    def _load_model(self) -> tuple[str, ...]:
        """Start the engine; returns the settings that it got from us, in words."""
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.platforms import current_platform
        from vllm.usage.usage_lib import UsageContext
        from vllm.v1.engine.async_llm import AsyncLLM

        try_request()
        arguments = self._arguments({f.name for f in fields(AsyncEngineArgs)})
        more, environment = _vllm_cpu.choose_here(arguments) if current_platform.is_cpu() else ({}, {})
        if self.deterministic and current_platform.is_cpu():
            more |= {"max_num_seqs": 1, "enable_prefix_caching": False}
        elif self.deterministic:
            environment = {**environment, "VLLM_BATCH_INVARIANT": "1"}
        arguments |= more
        if current_platform.is_cpu():
            self._extended = arguments.setdefault("worker_extension_cls", WORKER) == WORKER
        settings = {**more, **environment}
        self._platform = {"platform": current_platform.device_type, "settings": settings}
        self._reaper = ChildReaper()
        if self._given_up:
            raise SetupError("the run has ended")
        with self._reaper.over_children() as self._processes, _vllm_cpu.set_variables(environment):
            self._engine = AsyncLLM.from_engine_args(
                AsyncEngineArgs(**arguments),
                # Batch sizes for work that is all there, as vLLM chooses them offline: twice to eight times larger.
                usage_context=UsageContext.LLM_CLASS,
                stat_loggers=[lambda config, replica=0: Listener(self._load, self._gate, replica)],
            )
        if arguments["disable_log_stats"]:
            listen_only(self._engine)
        return *(f"{name}={value}" for name, value in settings.items()), *_vllm_cpu.reasons(more)

    def log_to(self, path: Path) -> None:
        self._output.path = path if self._engine is None else self._output.path  # its processes stay with theirs

    async def sleep(self) -> bool:
        """Sleep, the weights in the machine's memory, if `enable_sleep_mode` is on."""
        if self._engine is None or not self.enable_sleep_mode:
            return False
        await self._engine.sleep(level=1)
        self._load.stopped()
        self._asleep = True
        return True

    async def close(self) -> None:
        """Shut the engine's processes down and wait for their end; on Ctrl-C kill them: there is nothing to save."""
        if is_cancelled():
            self._give_up()
        if self._engine is not None:
            await self._shut_down()
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None
            for process in self._processes:
                process.join(1)  # what the reaper has ended would stay a zombie
        self._output.close()

    async def _shut_down(self) -> None:
        self._load.stopped()
        self._asleep = False
        self._forget_update()
        with self._output.diverted():
            self._engine.shutdown()
            for process in self._processes:  # vLLM kills a slow one, but leaves it a zombie
                process.join(10)
        await asyncio.sleep(0)  # lets the tasks end that this has cancelled
        with warnings.catch_warnings():
            # AsyncLLM sits in reference cycles; left to interpreter exit its destructor prints errors. Its ZMQ context
            # is closed by nothing but being collected, which ZMQ finds worth a warning.
            warnings.simplefilter("ignore", ResourceWarning)
            self._engine = None
            gc.unfreeze()
            gc.collect()

    def report(self) -> Facts:
        if not self._counts["requests"]:
            return dict(self._platform)
        own = {"prompts_appended": self._chat.appended, "prompts_tokenized_whole": self._chat.encoded}
        return {**self._platform, **self._load.with_rates(self._counts), "queued_max": self._gate.longest, **own}

    def describe(self) -> Facts:
        """The fields, without secrets such as `engine_args: {hf_token: …}`."""
        return {**super().describe(), "engine_args": without_secrets(self.engine_args)}

    def _arguments(self, names: set[str]) -> dict[str, Any]:
        """The arguments of AsyncEngineArgs, whose `names` these are."""
        if unknown := next((name for name in self.engine_args if name not in names), None):
            raise SetupError(f"engine_args: vLLM has no argument {unknown!r}", hint=near(unknown, names))
        passed = {name: getattr(self, name) for name in PASSED if getattr(self, name) is not None}
        return {"model": self.pretrained, "disable_log_stats": True, **passed, **self.engine_args}

    # ------------------------------------------------------------------------------ one request

    async def complete(self, request: Request) -> Completion:
        """Generate one reply.

        Raises:
            ContextLengthError: if no token of the context window is left for it.
            RefusedError: if vLLM or the chat template refuses the request.
            RequestError: if vLLM gives no answer.
            EngineFatalError: if the engine's process has died.
            SetupError: for an unknown generation word.
        """
        if self._engine is None:
            raise EngineFatalError("the engine is not started, or closed")
        start = time.perf_counter()
        prompt = self._prompt(request)
        room = self._limit - len(prompt.ids)
        eos = self._chat.texts.eos
        output = await self._generate(request, prompt.ids, lambda: generating(request, room, eos, self.return_logprobs))
        reply, verbatim = output.outputs[0], request.thread.verbatim
        # Where vLLM stopped at a stop string it has taken that off the text, but not off the ids.
        cut_text = reply.text if isinstance(reply.stop_reason, str) else None
        if verbatim:
            reasoning, text = None, as_written(request, reply.text, eos)
        if not verbatim or request.thread.chat:
            formal = verbatim or bool(request.constraint)
            parts = self._chat.read(request.thread, prompt, reply.token_ids, cut_text, formal, bool(request.tools))
            if verbatim and parts != (None, text):
                self._chat.forget(request.thread)
            elif not verbatim:
                reasoning, text = parts
            if self.deterministic:  # after a resume the next prompt is tokenized whole too
                self._chat.forget(request.thread)
        calls = None
        if request.tools and self._read_calls is not None:
            text, calls = self._read_calls(text, request.tools)
        # The thought that led to calls is part of the conversation until they are answered; templates name it so or so.
        thought = dict.fromkeys(THOUGHT_FIELDS) if calls and reasoning else None
        self._counts["requests"] += 1
        self._counts["output_tokens"] += len(reply.token_ids)
        return Completion(
            text=text,
            reasoning=reasoning,
            finish_reason=reply.finish_reason,
            input_tokens=len(prompt.ids),
            output_tokens=len(reply.token_ids),
            cached_tokens=getattr(output, "num_cached_tokens", None),
            latency=time.perf_counter() - start,
            tool_calls=calls,
            provider_fields=thought and {"model": self.model, "message": thought},
            **(tokens_of(output, self.return_logprobs) if self.return_token_ids or self.return_logprobs else {}),
        )

    def count_tokens(self, text: str) -> int | None:
        """By the model's own tokenizer, even while the engine is not started."""
        if self._chat is not None:
            return len(self._chat.encode(text))
        return count_tokens(str(self.engine_args.get("tokenizer") or self.pretrained), text)

    def _prompt(self, request: Request) -> Prompt:
        """The request's prompt, with room for a token at least. A plain text that leaves too little room for the reply
        is cut on the left, as in lm-eval."""
        prompt: Prompt = self._chat.prompt(request.thread, request.prefill, request.tools)
        room = self._limit - len(prompt.ids)
        most = 0 if request.thread.chat else normalize(request.sampling).get("max_tokens", 0)
        if 0 < most < self._limit and room < most:
            return Prompt(prompt.text, prompt.ids[most - self._limit :])
        if room < 1:
            raise ContextLengthError(
                f"the prompt has {len(prompt.ids)} tokens; the model takes {self._limit}, one of them for the answer"
            )
        return prompt

    async def _generate(self, request: Request, ids: list[int], make_parameters: Callable[[], Any]) -> Any:
        """vLLM's final output for one prompt, when there is room for it."""
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError

        await self._has_weights()
        await self._gate.enter(request.thread.age)
        self._load.handed()
        number = f"{request.id}#{next(self._numbers)}"  # vLLM refuses an id that is still in flight
        output: Any = None
        try:
            parameters, rank = make_parameters(), self._replica(request.thread)
            async for some in self._engine.generate(tokens_input(ids), parameters, number, data_parallel_rank=rank):
                output = some  # the only one: FINAL_ONLY
        except EngineDeadError as error:
            why = self._output.why(error, killed_process("", self._processes))
            hint = f" ({words})" if (words := advice(why)) else ""
            raise EngineFatalError(f"vLLM's engine has died: {why}{self._output.place}{hint}") from error
        except (SetupError, MemoryError):
            raise
        except Exception as error:
            self._output.forget()
            why = f"{type(error).__name__}: {one_line(str(error.__cause__ or error), 1000)}"
            if "maximum model length" in why or "max_model_len" in why:
                raise ContextLengthError(why) from error
            raise (RefusedError if isinstance(error, ValueError | TypeError) else RequestError)(why) from error
        finally:
            self._load.finished()
            self._gate.leave()
        if output is None:
            raise RequestError("vLLM gave no output")
        if output.outputs[0].finish_reason == "abort":
            raise RequestError("vLLM aborted the request")
        self._counts["prompt_tokens"] += len(ids)
        self._counts["cached_tokens"] += getattr(output, "num_cached_tokens", None) or 0
        return output

    def _replica(self, thread: Thread) -> int | None:
        """Data parallel: threads are assigned in turn and stay, or the replica's prefix cache would be lost."""
        replicas = self._engine.vllm_config.parallel_config.data_parallel_size
        if replicas == 1:
            return None
        rank: int = thread.memo.setdefault(self._memo, next(self._threads) % replicas)
        return rank


_OURS = {"pretrained", "chat_template", "chat_template_kwargs", "tool_parser", "engine_args", "deterministic"}
_OURS |= {"return_token_ids", "return_logprobs"}
PASSED = tuple(f.name for f in fields(VLLM) if f.name not in _OURS)
"""Fields of the engine that go to vLLM under their own names; None leaves the choice to vLLM."""
