"""What compressed activations do to gradients, by codec, and to the accuracy of what is trained with them.

`python bench/compressed_activations.py` trains a small residual network and a small transformer on scikit-learn's
handwritten digits, 60 steps, measures a batch of 64 with every codec, and writes COMPRESSED_ACTIVATIONS.md.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import arrcomp
from arrcomp import QSGD, S2FP8, ErrorBounded, FloatFormat, SmaQ
from arrcomp.torch._saved_activations import compressed_activations

TRAINING_STEPS, BATCH, DRAWS, RUNS = 60, 64, 16, 3

CODECS: tuple[arrcomp.Codec, ...] = (
    *(QSGD(bits=8, bucket_size=size, rounding="stochastic") for size in (64, 128, 256, 512, 2048)),
    QSGD(bits=8),
    QSGD(bits=8, norm="linf", rounding="stochastic"),
    SmaQ(),
    FloatFormat("fp8_e4m3"),
    FloatFormat("fp8_e4m3", scaling="bucket"),
    FloatFormat("mxfp8", rounding="stochastic"),
    FloatFormat("mxint8", rounding="stochastic"),
    S2FP8(bucket_size=512, rounding="stochastic"),
    ErrorBounded(rel=1e-3),
    *(QSGD(bits=4, bucket_size=size, rounding="stochastic") for size in (64, 128, 256, 512)),
    QSGD(bits=4),
    FloatFormat("nvfp4", rounding="stochastic"),
    ErrorBounded(rel=1e-2),
    QSGD(bits=2, rounding="stochastic"),
    QSGD(bits=2),
)
TRAINED = (
    None,
    QSGD(bits=8, rounding="stochastic"),
    FloatFormat("fp8_e4m3"),
    QSGD(bits=4, rounding="stochastic"),
    QSGD(bits=4),
    QSGD(bits=2, rounding="stochastic"),
    QSGD(bits=2),
)


class Block(nn.Module):
    """A residual block of a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.first_norm, self.second_norm = (nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + x)


class Rows(nn.Module):
    """A transformer that reads an image row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.places = nn.Linear(8, 64), nn.Parameter(torch.randn(8, 64) * 0.1)
        layer = nn.TransformerEncoderLayer(
            64, 4, 256, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.embedding(x.squeeze(1)) + self.places).mean(1))


def residual_network() -> nn.Module:
    """Two blocks."""
    stem = (nn.Conv2d(1, 12, 3, padding=1), nn.ReLU())
    return nn.Sequential(*stem, Block(12), nn.MaxPool2d(2), Block(12), nn.Flatten(), nn.Linear(192, 10))


MODELS: dict[str, Callable[[], nn.Module]] = {"ResNet": residual_network, "transformer": Rows}


def digits() -> tuple[Tensor, Tensor]:
    """Images [1797, 1, 8, 8] and labels."""
    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32)[:, None] / 8 - 1, torch.tensor(data.target)


def context_of(codec: arrcomp.Codec | None) -> Any:
    """What the forward pass runs in."""
    return contextlib.nullcontext() if codec is None else compressed_activations(codec, min_size=1024)


def train(model: nn.Module, x: Tensor, y: Tensor, codec: arrcomp.Codec | None = None) -> None:
    """Train on random batches."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(TRAINING_STEPS):
        batch = torch.randint(0, len(x), (BATCH,))
        optimizer.zero_grad()
        with context_of(codec):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()


def gradient(model: nn.Module, x: Tensor, y: Tensor, codec: arrcomp.Codec | None) -> Tensor:
    """Of all parameters, one after the other; dropout is the same each time."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        with context_of(codec):
            loss = nn.functional.cross_entropy(model(x), y)
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))])


class Watch:
    """Numbers, and errors, of the values that are compressed, by way of `skip`, which is asked for each."""

    def __init__(self, codec: arrcomp.Codec) -> None:
        self.codec = codec
        self.values = 0
        self.error = self.norm = 0.0

    def __call__(self, x: Tensor) -> bool:
        if x.dtype.is_floating_point:
            c = arrcomp.torch.compress(x.contiguous(), self.codec, seed=self.values)
            self.values += x.numel()
            self.error += float((arrcomp.torch.decompress(c) - x).double().square().sum())
            self.norm += float(x.double().square().sum())
        return False


def measured(model: nn.Module, x: Tensor, y: Tensor, codec: arrcomp.Codec) -> tuple[float, float, float, float]:
    """Bits, error of the values, of the gradient, of the mean of gradients."""
    watch = Watch(codec)
    with compressed_activations(codec, min_size=1024, skip=watch) as statistics:
        nn.functional.cross_entropy(model(x), y)
    exact = gradient(model, x, y, None)
    made = torch.stack([gradient(model, x, y, codec) for _ in range(DRAWS)])
    norm = float(exact.norm())
    each = math.sqrt(float((made - exact).square().sum()) / DRAWS) / norm
    mean = float((made.mean(0) - exact).norm()) / norm
    return 8 * statistics.compressed_nbytes / watch.values, math.sqrt(watch.error / watch.norm), each, mean


def error_rows() -> Iterator[str]:
    """The first table."""
    x, y = digits()
    trained = {}
    for name, make in MODELS.items():
        torch.manual_seed(0)
        trained[name] = make()
        train(trained[name], x[:1200], y[:1200])
    yield "| codec | " + " | ".join(f"{name}: bits | values | gradient | mean" for name in trained) + " |"
    yield "|---|" + "---|" * (4 * len(trained))
    for codec in CODECS:
        cells = []
        for model in trained.values():
            bits, *errors = measured(model, x[:BATCH], y[:BATCH], codec)
            cells += [f"{bits:.2f}", *(f"{100 * error:.3g}%" for error in errors)]
        yield f"| `{codec!r}` | " + " | ".join(cells) + " |"
        print(codec, cells, flush=True)


def accuracy_rows() -> Iterator[str]:
    """The second table."""
    x, y = digits()
    yield "| codec | " + " | ".join(MODELS) + " |"
    yield "|---|" + "---|" * len(MODELS)
    for codec in TRAINED:
        cells = []
        for make in MODELS.values():
            right = 0
            for run in range(RUNS):
                torch.manual_seed(run)
                model = make()
                train(model, x[:1200], y[:1200], codec)
                model.eval()
                with torch.no_grad():
                    right += int((model(x[1200:]).argmax(1) == y[1200:]).sum())
            cells.append(f"{100 * right / RUNS / len(x[1200:]):.2f}%")
        yield f"| {'none: as PyTorch saves them' if codec is None else f'`{codec!r}`'} | " + " | ".join(cells) + " |"
        print(codec, cells, flush=True)


TEXT = """# Compressed activations: what they do to gradients

Written by `python bench/compressed_activations.py`, with PyTorch {version} on a CPU. Both models have been trained for
{steps} steps; then a batch of {batch} digits:

- bits: of payloads, masks and all, for each number that was saved; a tensor that is saved twice counts twice, and is
  compressed once.
- values: L2 norm of the error of the saved values, by theirs.
- gradient: L2 norm of the error of the gradient of all parameters, by that of the gradient; root mean square of
  {draws} draws.
- mean: the same of the mean of these {draws} gradients. Where it is a quarter of "gradient", they are unbiased; where
  it is no smaller, all have the same error.

{errors}

What decides: of those whose rate is fixed, so that nothing waits for a GPU and XLA can keep them, `QSGD` between
minimum and maximum has the smallest error for its bits. Smaller buckets than 512 gain about what their bits would gain
elsewhere. Rounding at random has a larger error in each step, and leaves a third of the error in the mean of {draws}.
Hence the default, `QSGD(bits=8, rounding="stochastic")`. `ErrorBounded` takes fewer bits for the same error, but its
payloads have any length: on the CPU, or where waiting does not matter, it is the better one.

Accuracy on the other {tests} digits, after {steps} steps with the codec, mean of {runs} runs:

{accuracies}
"""


def main() -> None:
    """Measure, and write the page."""
    torch.set_num_threads(1)
    page = TEXT.format(
        version=torch.__version__.partition("+")[0],
        steps=TRAINING_STEPS,
        batch=BATCH,
        draws=DRAWS,
        runs=RUNS,
        tests=len(digits()[0]) - 1200,
        errors="\n".join(error_rows()),
        accuracies="\n".join(accuracy_rows()),
    )
    Path(__file__).with_name("COMPRESSED_ACTIVATIONS.md").write_text(page)


if __name__ == "__main__":
    main()
