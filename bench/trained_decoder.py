"""A small decoder of transformers, trained on English text that every Python has, and text that it has not seen.

The text is that of the language reference (`pydoc_data.topics`) and the docstrings of the standard library. Every tenth
topic is held out. Tokens are those of byte pairs, found in the text of the training.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

_HELD_OUT = 10  # of so many topics, one


@dataclass(frozen=True)
class Size:
    """How large the model is, and how long it is trained.

    Attributes:
        width: of the model.
        layers: of it.
        heads: of queries; half as many are of keys and values.
        symbols: tokens that there are.
        context: tokens of a text.
        batch: texts of a step.
        steps: of the training.
    """

    width: int = 256
    layers: int = 4
    heads: int = 4
    symbols: int = 2048
    context: int = 512
    batch: int = 4
    steps: int = 500


QUICK = Size(width=64, layers=2, heads=2, symbols=300, context=64, batch=2, steps=2)


def texts() -> tuple[str, str]:
    """What is learned, and what is held out."""
    from pydoc_data.topics import topics

    names = sorted(topics)
    held_out = names[1::_HELD_OUT]
    learned = [topics[name] for name in names if name not in held_out]
    return "\n".join([*learned, *_docstrings()]), "\n".join(topics[name] for name in held_out)


def _docstrings() -> Iterator[str]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("[a-z]*/*.py")):
        if {"site-packages", "dist-packages", "test", "idlelib", "lib2to3"}.isdisjoint(path.parts):
            tree = ast.parse(path.read_bytes())
            nodes = [x for x in ast.walk(tree) if isinstance(x, ast.Module | ast.ClassDef | ast.FunctionDef)]
            yield from filter(None, map(ast.get_docstring, nodes))


def encoded(size: Size) -> tuple[Tensor, Tensor]:
    """The tokens of both texts, int64."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    learned, held_out = texts()
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size.symbols, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(learned.splitlines(), trainer)
    first, second = (torch.tensor(tokenizer.encode(text).ids) for text in (learned, held_out))
    return first, second


def made(size: Size) -> Any:
    """The model, untrained."""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=size.symbols,
        hidden_size=size.width,
        intermediate_size=8 * size.width // 3,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads // 2,
        max_position_embeddings=8 * size.context,
        tie_word_embeddings=True,
    )
    return transformers.LlamaForCausalLM(config)


def trained(size: Size, tokens: Tensor) -> Any:
    """The model, float32, trained with AdamW and a rate that falls to zero."""
    model, rng = made(size), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=size.steps + 1, pct_start=0.1)
    for step in range(size.steps):
        starts = rng.integers(len(tokens) - size.context, size=size.batch)
        batch = torch.stack([tokens[start : start + size.context] for start in starts])
        optimizer.zero_grad()
        loss = model(batch, labels=batch).loss
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {float(loss.detach()):.3f}", flush=True)
    return model.eval()
