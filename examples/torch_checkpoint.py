"""A checkpoint of a model and its optimizer: lossless, and with rules that allow some loss.

The model learns to recognize noisy seven-segment digits. The rules keep its weights within 1e-3. For Adam's first
moments, which decay soon, 8 bits per value are enough. The second moments are divisors, so they are kept within a
hundredth of each value. The rest, for example biases and statistics of layers, is lossless.

    pip install ".[torch]"
    python examples/torch_checkpoint.py
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import arrcomp.torch
from arrcomp import QSGD, ErrorBounded, Rule

SEGMENTS = torch.tensor([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])
RULES = [
    Rule(ErrorBounded(pointwise=0.01), "optimizer.*.exp_avg_sq"),
    Rule(QSGD(bits=8, bucket_size=512), "optimizer.*.exp_avg", min_ndim=2),
    Rule(ErrorBounded(abs=1e-3), "model.*.weight", min_ndim=2),
]


def batch(size: int) -> tuple[Tensor, Tensor]:
    """Noisy pictures of digits, and their labels."""
    digits = torch.randint(10, (size,))
    segments = SEGMENTS[digits, None] >> torch.arange(7) & 1
    return segments.repeat(1, 8) + torch.randn(size, 56), digits


def new() -> tuple[nn.Module, torch.optim.Optimizer]:
    """An untrained model and its optimizer."""
    model = nn.Sequential(nn.Linear(56, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 10))
    return model, torch.optim.Adam(model.parameters())


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Train a model."""
    for _ in range(steps):
        pictures, digits = batch(128)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model.train()(pictures), digits).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    """The model's accuracy, always on the same pictures."""
    torch.manual_seed(1)
    pictures, digits = batch(5000)
    return float((model.eval()(pictures).argmax(1) == digits).float().mean())


def main() -> None:
    """Train, save, load and compare."""
    torch.set_num_threads(1)  # the model is small: more threads would be slower
    torch.manual_seed(0)
    model, optimizer = new()
    train(model, optimizer, 300)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        torch.save(state, path)
        print(f"torch.save: {path.stat().st_size:,} bytes, accuracy {accuracy(model):.4f}")
        for name, codec in (("every bit", None), ("rules", RULES)):
            arrcomp.torch.save(state, path, codec)
            checkpoint = arrcomp.torch.load(path)
            model, optimizer = new()
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            print(f"{name}: {path.stat().st_size:,} bytes, accuracy {accuracy(model):.4f}")


if __name__ == "__main__":
    main()
