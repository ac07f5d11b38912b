"""What compressed activations do to gradients, by codec, and to the accuracy of what is trained with them.

A small residual network and a small transformer are trained on scikit-learn's handwritten digits, 60 steps; then a
batch of 64 is measured with every codec.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import arrcomp
from arrcomp import QSGD, S2FP8, ErrorBounded, FloatFormat, SmaQ
from arrcomp.torch import compressed_activations
from harness.section import Found, Section
from harness.tables import table

TRAINING_STEPS, BATCH, DRAWS, RUNS = 60, 64, 16, 3
TRAINED_ON, TESTED_ON = 1200, 597
NONE = "none: as PyTorch saves them"
_ERRORS = ("values", "gradient", "mean")

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


_HOW = f"""\
Both models are first trained for {TRAINING_STEPS} steps. The errors are those of a batch of {BATCH} digits after
that:

- bits: bits of the payloads, masks included, for each number that was saved. A tensor that is saved twice counts twice,
  and is compressed once.
- values: L2 norm of the error of the saved values, divided by the norm of the values.
- gradient: L2 norm of the error of the gradient of all parameters, divided by the norm of the gradient; root mean
  square of {DRAWS} draws.
- mean: the same for the mean of these {DRAWS} gradients. If it is a quarter of "gradient", the gradients are unbiased.
  If it is not smaller, all draws have the same error."""
_DECIDES = f"""\
The default is `QSGD(bits=8, rounding="stochastic")`, for these reasons. Its rate is fixed, so that no GPU
synchronizes and XLA can keep the payloads. Of the codecs with a fixed rate, `QSGD` between minimum and maximum has
the smallest error for its bits. Buckets smaller than 512 gain about as much as the same bits gain elsewhere.
Stochastic rounding has a larger error in each step, but leaves a third of the error in the mean of {DRAWS}.
`ErrorBounded` takes fewer bits for the same error, but the size of its payloads varies. On the CPU, or if
synchronization does not matter, it is better."""
_ACCURACY = f"""\
Accuracy on the other {TESTED_ON} digits after {TRAINING_STEPS} steps with the codec, the mean of {RUNS} runs:"""


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


def errors(model: nn.Module, x: Tensor, y: Tensor, codec: arrcomp.Codec) -> dict[str, float]:
    """Bits, and errors of the values, of the gradient and of the mean of gradients, in percent."""
    watch = Watch(codec)
    with compressed_activations(codec, min_size=1024, skip=watch) as statistics:
        nn.functional.cross_entropy(model(x), y)
    exact = gradient(model, x, y, None)
    made = torch.stack([gradient(model, x, y, codec) for _ in range(DRAWS)])
    norm = float(exact.norm())
    each = math.sqrt(float((made - exact).square().sum()) / DRAWS) / norm
    mean = float((made.mean(0) - exact).norm()) / norm
    found = {"values": math.sqrt(watch.error / watch.norm), "gradient": each, "mean": mean}
    bits = 8 * statistics.compressed_nbytes / watch.values
    return {"bits": bits} | {name: 100 * error for name, error in found.items()}


def measured(quick: bool = False) -> dict[str, Any]:
    """Figures of each model and codec."""
    torch.set_num_threads(1)
    x, y = digits()
    found: dict[str, Any] = {}
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = make()
        train(model, x[:TRAINED_ON], y[:TRAINED_ON])
        for codec in CODECS[:2] if quick else CODECS:
            figures = errors(model, x[:BATCH], y[:BATCH], codec)
            found.setdefault(name, {})[repr(codec)] = figures
            print(name, codec, figures, flush=True)
        for trained in TRAINED[:2] if quick else TRAINED:
            key = NONE if trained is None else repr(trained)
            found[name].setdefault(key, {})["accuracy"] = accuracy(make, x, y, trained)
    return found


def accuracy(make: Callable[[], nn.Module], x: Tensor, y: Tensor, codec: arrcomp.Codec | None) -> float:
    """Percent of the digits for testing, the mean of some runs."""
    right = 0
    for run in range(RUNS):
        torch.manual_seed(run)
        model = make()
        train(model, x[:TRAINED_ON], y[:TRAINED_ON], codec)
        model.eval()
        with torch.no_grad():
            right += int((model(x[TRAINED_ON:]).argmax(1) == y[TRAINED_ON:]).sum())
    return 100 * right / RUNS / len(x[TRAINED_ON:])


def text(found: Found) -> str:
    """What was measured, as text."""
    codecs = list(dict.fromkeys(codec for figures in found.values() for codec in figures))
    errors, accuracies = [], []
    for codec in codecs:
        of_models = [figures.get(codec, {}) for figures in found.values()]
        if all("bits" in figures for figures in of_models):
            cells = [
                cell
                for figures in of_models
                for cell in (f"{figures['bits']:.2f}", *(f"{figures[key]:.3g}%" for key in _ERRORS))
            ]
            errors.append([f"`{codec}`", *cells])
        if all("accuracy" in figures for figures in of_models):
            shown = codec if codec == NONE else f"`{codec}`"
            accuracies.append([shown, *(f"{figures['accuracy']:.2f}%" for figures in of_models)])
    accuracies.sort(key=_order)
    heads = [head for name in found for head in (f"{name}: bits", *_ERRORS)]
    parts = [_HOW, table(["<codec", *heads], errors), _DECIDES, _ACCURACY, table(["<codec", *found], accuracies)]
    return "\n\n".join(parts)


def _order(row: list[str]) -> int:
    """The place of a row of the second table."""
    names = [NONE if codec is None else f"`{codec!r}`" for codec in TRAINED]
    return names.index(row[0])


SECTION = Section(
    "Compressed activations",
    measured,
    text,
    levels=("subject", "method", "metric"),
    units={"bits": "bit", "accuracy": "%", **dict.fromkeys(_ERRORS, "%")},
    versions=("arrcomp", "torch", "scikit-learn"),
)
