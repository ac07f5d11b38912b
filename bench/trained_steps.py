"""Weights of a small transformer at steps of its training: what is sent, or stored, as differences.

    python bench/trained_steps.py FOLDER    trains it and keeps FOLDER/STEP.npy: minutes, on two cores

A character model learns the sources of Python's standard library. It is tuned on the text of the language reference
(`pydoc_data.topics`), and then by reinforcement learning, which rewards a letter. All is AdamW with float32 weights.
What is kept are all parameters end to end, float32; `pairs` says which steps are compared.
"""

from __future__ import annotations

import argparse
import copy
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

SYMBOLS = 128
REWARDED = ord("e")
TUNING_RATES = (1e-5, 1e-4)
REINFORCEMENT_RATES = (1e-7, 1e-6)

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Size:
    """How large the model is, and how long it is trained.

    Attributes:
        width: of the model.
        layers: of it.
        context: characters that it sees.
        batch: texts of a step.
        pretraining: steps before fine-tuning.
        warm: steps of a phase before the steps that are kept; moments of AdamW are those of a longer run then.
        distance: steps between two checkpoints of fine-tuning.
        sampled: characters that a text of reinforcement learning has.
    """

    width: int = 320
    layers: int = 6
    context: int = 96
    batch: int = 12
    pretraining: int = 400
    warm: int = 20
    distance: int = 100
    sampled: int = 16


QUICK = Size(width=32, layers=1, context=16, batch=4, pretraining=2, warm=1, distance=2, sampled=2)


class Transformer(nn.Module):
    """A decoder-only transformer over characters."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, size.width)
        self.position = nn.Parameter(0.02 * torch.randn(size.context, size.width))
        heads, inner = size.width // 32, 4 * size.width
        block = nn.TransformerEncoderLayer(
            size.width, heads, inner, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, size.layers, nn.LayerNorm(size.width), enable_nested_tensor=False)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits of the next symbol: int64 (texts, characters) to float32 (texts, characters, SYMBOLS)."""
        length = symbols.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.blocks(self.embedding(symbols) + self.position[:length], mask=mask, is_causal=True)
        return hidden @ self.embedding.weight.T


def steps(size: Size) -> Iterator[tuple[str, Weights]]:
    """Train, and give the weights of each step that is kept, by its name."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Transformer(size)
    sources, prose = _sources(), _prose()
    for _ in _learn(model, sources, 1e-3, size.pretraining, size, generator):
        pass
    yield "pretrained", _weights(model)
    far = size.warm + size.distance
    for rate in TUNING_RATES:
        tuned = copy.deepcopy(model)
        for number, _ in enumerate(_learn(tuned, prose, rate, far + 1, size, generator), 1):
            if number in (size.warm, far, far + 1):
                yield f"tuned {rate:.0e} {number}", _weights(tuned)
    for rate in REINFORCEMENT_RATES:
        policy = copy.deepcopy(tuned)
        for number, _ in enumerate(_reinforce(policy, prose, rate, size.warm + 1, size, generator), 1):
            if number >= size.warm:
                yield f"reinforced {rate:.0e} {number}", _weights(policy)


def pairs(size: Size) -> list[tuple[str, str, str]]:
    """What is measured of these steps: its name, the step before (the reference) and the step after."""
    warm, far = size.warm, size.warm + size.distance
    found = []
    for rate in (f"{rate:.0e}" for rate in REINFORCEMENT_RATES):
        found.append((f"RL, lr {rate}, 1 step", f"reinforced {rate} {warm}", f"reinforced {rate} {warm + 1}"))
    for rate in (f"{rate:.0e}" for rate in TUNING_RATES):
        found.append((f"tuning, lr {rate}, 1 step", f"tuned {rate} {far}", f"tuned {rate} {far + 1}"))
        found.append((f"tuning, lr {rate}, {size.distance} steps", f"tuned {rate} {warm}", f"tuned {rate} {far}"))
        found.append((f"tuned, lr {rate}, against pretrained", "pretrained", f"tuned {rate} {far}"))
    return found


def _weights(model: nn.Module) -> Weights:
    return np.asarray(nn.utils.parameters_to_vector(model.parameters()).detach().numpy().copy(), np.float32)


def _symbols(text: bytes) -> Tensor:
    return torch.from_numpy(np.minimum(np.frombuffer(text, np.uint8), SYMBOLS - 1).astype(np.int64))


def _sources() -> Tensor:
    folder = Path(sysconfig.get_paths()["stdlib"])
    return _symbols(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py"))))


def _prose() -> Tensor:
    from pydoc_data.topics import topics

    return _symbols("".join(topics[name] for name in sorted(topics)).encode())


def _batch(text: Tensor, length: int, size: Size, generator: torch.Generator) -> Tensor:
    starts = torch.randint(len(text) - length, (size.batch,), generator=generator)
    return torch.stack([text[start : start + length] for start in starts])


def _learn(
    model: nn.Module, text: Tensor, rate: float, count: int, size: Size, generator: torch.Generator
) -> Iterator[float]:
    """Minimize the cross-entropy of the next character; the loss after each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(count):
        symbols = _batch(text, size.context + 1, size, generator)
        loss = nn.functional.cross_entropy(model(symbols[:, :-1]).flatten(0, 1), symbols[:, 1:].flatten())
        yield _step(optimizer, model, loss)


def _reinforce(
    model: nn.Module, text: Tensor, rate: float, count: int, size: Size, generator: torch.Generator
) -> Iterator[float]:
    """Policy gradients with a group's mean as the baseline: texts of one beginning, each rewarded for a letter."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    for _ in range(count):
        symbols = _batch(text, size.context - size.sampled, size, generator)[:1].repeat(size.batch, 1)
        symbols = _sampled(model, symbols, size.sampled, generator)
        sampled = symbols[:, -size.sampled :]
        reward = (sampled == REWARDED).float().mean(1)
        advantage = (reward - reward.mean()) / (reward.std() + 1e-4)
        log_shares = model(symbols[:, :-1])[:, -size.sampled :].log_softmax(-1)
        taken = log_shares.gather(-1, sampled[..., None])[..., 0]
        yield _step(optimizer, model, -(advantage[:, None] * taken).mean())


@torch.no_grad()
def _sampled(model: nn.Module, symbols: Tensor, count: int, generator: torch.Generator) -> Tensor:
    for _ in range(count):
        following = torch.multinomial(model(symbols)[:, -1].softmax(-1), 1, generator=generator)
        symbols = torch.cat([symbols, following], 1)
    return symbols


def _step(optimizer: torch.optim.Optimizer, model: nn.Module, loss: Tensor) -> float:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def main() -> None:
    """Parse the command line, train, and keep the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="for the weights")
    parser.add_argument("--quick", action="store_true", help="a tiny model and few steps")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, weights in steps(QUICK if options.quick else Size()):
        np.save(options.folder / f"{name}.npy", weights)
        print(name, weights.size, flush=True)


if __name__ == "__main__":
    main()
