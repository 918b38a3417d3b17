"""A causal language model of `transformers` as the trainer's model: many replies at once, with their token ids.

model = TransformersModel(model, tokenizer, max_new_tokens=64)
rollouts = env.batched(model, group_size=8)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.api import Completion
from harness.api.errors import SetupError

from .learner import PendingTurn
from .token_model import TokenChats, Tokens

try:
    import torch
except ModuleNotFoundError as error:
    hint = "Install it: pip install 'mas-eval-harness[trl]'"
    raise SetupError(f"the package torch cannot be imported: {error}", hint=hint) from None


class TransformersModel:
    """Writes replies by `model.generate`, in batches, by the torch generator's own chance.

    The log-probabilities are those of the distribution that was drawn from, temperature and `top_p` included.
    Prompts continue the token ids of earlier replies wherever the chat template allows it, so that most conversations
    are one sample each.

    Args:
        model: a causal language model, maybe with adapters.
        tokenizer: its tokenizer, with a chat template.
        max_new_tokens, temperature, top_p: of every reply; None: as the spec's generation_kwargs say, else 256, 1, 1.
            Temperature 0 is greedy.
        batch_size: the most replies at once.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        batch_size: int = 64,
    ) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.chats = TokenChats(tokenizer)
        self._given = {"max_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p}

    def __call__(self, turns: Sequence[PendingTurn]) -> list[Completion]:
        """A reply to each of these turns."""
        replies: list[Completion | None] = [None] * len(turns)
        alike: dict[tuple[float, ...], list[int]] = {}
        for at, turn in enumerate(turns):
            alike.setdefault(self._sampling(turn), []).append(at)
        for (most, temperature, top_p), places in alike.items():
            for start in range(0, len(places), self.batch_size):
                batch = places[start : start + self.batch_size]
                written = self._write([turns[at] for at in batch], int(most), temperature, top_p)
                for at, reply in zip(batch, written, strict=True):
                    replies[at] = reply
        return [reply for reply in replies if reply is not None]

    def _sampling(self, turn: PendingTurn) -> tuple[float, ...]:
        default = {"max_tokens": 256, "temperature": 1.0, "top_p": 1.0}
        chosen = {**default, **{key: turn.sampling[key] for key in default if turn.sampling.get(key) is not None}}
        chosen |= {key: value for key, value in self._given.items() if value is not None}
        return tuple(float(chosen[key]) for key in default)

    def _write(self, turns: Sequence[PendingTurn], most: int, temperature: float, top_p: float) -> list[Completion]:
        prompts = [self.chats.prompt(turn) for turn in turns]
        longest = max(len(prompt.ids) for prompt in prompts)
        device = next(self.model.parameters()).device
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self.tokenizer.eos_token_id
        ids = torch.full((len(prompts), longest), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt.ids) :] = torch.tensor(prompt.ids)
            mask[row, longest - len(prompt.ids) :] = 1
        how: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            how = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                output = self.model.generate(
                    input_ids=ids.to(device),
                    attention_mask=mask.to(device),
                    max_new_tokens=most,
                    pad_token_id=pad,
                    return_dict_in_generate=True,
                    output_scores=True,
                    **how,
                )
        finally:
            self.model.train(was_training)
        ends = self._ends()
        new = output.sequences[:, longest:].tolist()
        scores = torch.stack([torch.log_softmax(step.float(), dim=-1) for step in output.scores], dim=1)
        written = []
        for row, (turn, prompt, generated) in enumerate(zip(turns, prompts, new, strict=True)):
            end = next((at + 1 for at, one in enumerate(generated) if one in ends), len(generated))
            own = generated[:end]
            logprobs = scores[row, range(end), own].tolist() if own else []
            tokens = Tokens(own, logprobs, "stop" if own and own[-1] in ends else "length")
            written.append(self.chats.reply(turn, prompt, tokens))
        return written

    def _ends(self) -> frozenset[int]:
        """Ids that end a reply."""
        ends = self.model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        return frozenset(one for one in (*ends, self.tokenizer.eos_token_id) if one is not None)
