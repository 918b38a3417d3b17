"""A tiny chat model with random weights, made in about a second with no download.

`make(folder)` writes a two-layer Llama and a byte-level BPE tokenizer with a ChatML-like template, so that any
engine which loads a Hugging Face folder can be driven end to end. What it says is noise; what surrounds it is real.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

POSITIONS = 8192
"""Length of the context window, in tokens."""

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# Enough English and JSON for a few hundred merges; every other byte stays a token of its own.
CORPUS = [
    "The agents of a network talk to their neighbors and agree on one answer.",
    '{"messages": {"Alice": "hello there", "Bob": "my colour is 3"}, "answer": "Group 1", "value": [1, 2, 3]}',
    "You are an agent connected with Carol and Dave. In each round you may send one message to every neighbor.",
    "Yes No Group 1 Group 2 Group 3 system user assistant final answer: \\boxed{42}",
]


def make_tokenizer(folder: Path, template: str = TEMPLATE) -> None:
    """Train the tokenizer on a few strings and save it into `folder` with `template` as its chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS, trainer)
    # Part of the vocabulary, as in real reasoning models, but not special: decoding keeps them visible.
    bpe.add_tokens(["<think>", "</think>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)


def llama(tokenizer: Any, width: int, seed: int = 0, **more: Any) -> Any:
    """A Llama of two layers with random weights, the same every time. `more`: further fields of its configuration."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=POSITIONS,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **more,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config)


def make(folder: Path, *, lively: bool = False) -> Path:
    """Write model and tokenizer into `folder`; the same weights every time.

    Args:
        folder: where to.
        lively: larger weights, so that replies and likelihoods differ more from prompt to prompt; blanks are then
            tokens as all others.
    """
    from transformers import AutoTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    make_tokenizer(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = llama(tokenizer, 64, bos_token_id=None, initializer_range=0.2 if lively else 0.02)
    if not lively:
        _avoid_blanks(model, tokenizer)
    model.save_pretrained(folder)
    return folder


def _avoid_blanks(model: Any, tokenizer: Any) -> None:
    """Where JSON allows blanks a random model would fill its reply with them: it never writes one."""
    import torch

    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 0.1  # the same for every token, and nothing changes it on its way
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight[:, 0] = 0
        model.lm_head.weight[[i for i in range(len(tokenizer)) if not tokenizer.decode([i]).strip()], 0] = -20


if __name__ == "__main__":
    make(Path(sys.argv[1]), lively="--lively" in sys.argv)
