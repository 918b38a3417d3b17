"""A decoder made from nothing: words as tokens, two layers, a hundred thousand parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

PIECES = re.compile(r" ?\w+|\s|[^\w\s]")
"""A word with the blank before it, a blank, or a sign."""


class Words:
    """Text as ids and back. Words that the training data lack become `unknown`."""

    pad, end, reply, unknown = range(4)

    def __init__(self, texts: Iterable[str]) -> None:
        pieces = sorted({piece for text in texts for piece in PIECES.findall(text)})
        self.pieces = ["", "", "", "\N{REPLACEMENT CHARACTER}", *pieces]
        self.ids = {piece: at for at, piece in enumerate(self.pieces) if at > self.unknown}

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(piece, self.unknown) for piece in PIECES.findall(text)]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.pieces[one] for one in ids)

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """A conversation up to the token after which the model writes."""
        return [one for message in messages for one in [*self.encode(message["content"]), self.reply]]


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(
        self, x: Tensor, mask: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x)), (k, v)


class Decoder(nn.Module):
    """A causal transformer.

    Args:
        words: how many tokens there are.
        width, layers, heads: its size.
        window: how many tokens a prompt and its reply may have together.
    """

    def __init__(self, words: int, width: int = 64, layers: int = 2, heads: int = 2, window: int = 48) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Embedding(window, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
        for table in (self.token, self.place):
            nn.init.normal_(table.weight, std=0.3)

    def _run(
        self, ids: Tensor, places: Tensor, mask: Tensor, past: list[tuple[Tensor, Tensor]] | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        x, kept = self.token(ids) + self.place(places), []
        for at, block in enumerate(self.blocks):
            x, own = block(x, mask, None if past is None else past[at])
            kept.append(own)
        return self.norm(x), kept

    def logprobs(self, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the replies' tokens, and the entropies of the choices among all tokens there.

        Both have the shape (replies, longest reply), and zeros after a reply's end.
        """
        whole = [torch.tensor([*p, *r]) for p, r in zip(prompts, replies, strict=True)]
        ids = nn.utils.rnn.pad_sequence(whole, batch_first=True, padding_value=Words.pad)
        length = ids.shape[1]
        x, _ = self._run(ids, torch.arange(length), torch.ones(length, length, dtype=torch.bool).tril(), None)
        longest = max(map(len, replies))
        at = torch.tensor([len(p) - 1 for p in prompts])[:, None] + torch.arange(longest)
        own = torch.arange(longest) < torch.tensor([len(r) for r in replies])[:, None]
        at = at.clamp(max=length - 2)
        scores = self.head(x.gather(1, at[..., None].expand(-1, -1, x.shape[2]))).log_softmax(-1)
        chosen = scores.gather(2, ids.gather(1, at + 1)[..., None])[..., 0]
        return chosen * own, -(scores.exp() * scores).sum(-1) * own

    def write(
        self, prompts: Sequence[Sequence[int]], chance: torch.Generator | None, longest: int = 6
    ) -> list[tuple[list[int], list[float]]]:
        """A reply to each prompt, with the log-probabilities of its tokens. Equal prompts are read once.

        `chance`: draws the tokens at temperature 1; None: the most probable ones.
        """
        with torch.no_grad():
            return self._write(prompts, chance, longest)

    def _write(
        self, prompts: Sequence[Sequence[int]], chance: torch.Generator | None, longest: int
    ) -> list[tuple[list[int], list[float]]]:
        unique = {tuple(prompt): at for at, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        width = max(map(len, unique))
        pads = torch.tensor([width - len(prompt) for prompt in unique])
        ids = torch.tensor([[Words.pad] * (width - len(prompt)) + [*prompt] for prompt in unique])
        columns = torch.arange(width)
        seen = (columns >= pads[:, None])[:, None, :] & (columns[:, None] >= columns) | torch.eye(
            width, dtype=torch.bool
        )
        x, past = self._run(ids, (columns - pads[:, None]).clamp(min=0), seen[:, None], None)
        which = torch.tensor([unique[tuple(prompt)] for prompt in prompts])
        pads, past = pads[which], [(k[which], v[which]) for k, v in past]
        scores = self.head(x[:, -1])[which].log_softmax(-1)
        written, likely, open_ = [], [], torch.ones(len(prompts), dtype=torch.bool)
        for step in range(longest):
            chosen = scores.argmax(-1) if chance is None else torch.multinomial(scores.exp(), 1, generator=chance)[:, 0]
            written.append(torch.where(open_, chosen, Words.pad))
            likely.append(scores.gather(1, chosen[:, None])[:, 0])
            open_ = open_ & (chosen != Words.end)
            if step == longest - 1 or not open_.any():
                break
            columns = torch.arange(width + step + 1)
            mask = (columns >= pads[:, None])[:, None, None, :]
            x, past = self._run(chosen[:, None], (width + step - pads)[:, None], mask, past)
            scores = self.head(x[:, -1]).log_softmax(-1)
        tokens, logs = torch.stack(written, 1).tolist(), torch.stack(likely, 1).tolist()
        lengths = [row.index(Words.end) + 1 if Words.end in row else len(row) for row in tokens]
        return [(row[:n], log[:n]) for row, log, n in zip(tokens, logs, lengths, strict=True)]
