"""A model's checkpoint with several codecs and bounds: the size of the file, and the accuracy of the model.

A network learns scikit-learn's handwritten digits. The script saves it with each codec, loads it, and tests it on
unseen pictures. The codec applies to the large matrices; biases and batch norm are lossless (`arrcomp.model_rules`).

    pip install ".[torch]" scikit-learn
    python examples/checkpoint_accuracy.py
"""

import sys
import tempfile
from pathlib import Path

try:
    import torch
    from sklearn.datasets import load_digits
    from torch import Tensor, nn
except ImportError as error:
    sys.exit(f'checkpoint_accuracy.py needs PyTorch and scikit-learn ({error}): pip install ".[torch]" scikit-learn')

import arrcomp.torch
from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless

CODECS = {
    "lossless": Lossless(),
    **{f"error at most {bound:g}": ErrorBounded(abs=bound) for bound in (1e-4, 1e-3, 1e-2, 3e-2, 1e-1)},
    "QSGD, 8 bits": QSGD(bits=8, bucket_size=128),
    "QSGD, 4 bits": QSGD(bits=4, bucket_size=128),
    "QSGD, 2 bits": QSGD(bits=2, bucket_size=128),
    "NF4, 4 bits": Codebook.nf4(),
    "float8 (e4m3)": FloatFormat("fp8_e4m3", scaling="tensor"),
}


def new() -> nn.Module:
    """An untrained model."""
    hidden = [nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(512, 10))


def train(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Train a model."""
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()


def main() -> None:
    """Train, then save, load and test with each codec."""
    torch.set_num_threads(1)  # the model is small: more threads would be slower
    torch.manual_seed(0)
    x, y = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    x = x.float() / 16
    order = torch.randperm(len(x))
    known, unseen = order[:900], order[900:]
    model = new()
    train(model, x[known], y[known])
    state = model.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        torch.save(state, path)
        plain = path.stat().st_size
        print(f"{'saved with':<20} {'bytes':>9}  smaller  largest error of a weight  accuracy, {len(unseen)} pictures")
        for title, codec in {"torch.save": None, **CODECS}.items():
            if codec is not None:
                arrcomp.torch.save(state, path, arrcomp.model_rules(codec))
            loaded, nbytes = new(), path.stat().st_size
            loaded.load_state_dict(arrcomp.torch.load(path))
            pairs = zip(state.values(), loaded.state_dict().values(), strict=True)
            error = max(float((before - after).abs().max()) for before, after in pairs)
            right = (loaded.eval()(x[unseen]).argmax(1) == y[unseen]).float().mean()
            print(f"{title:<20} {nbytes:9,}  {plain / nbytes:6.2f}x  {error:25.6f}  {100 * right:.2f} %")


if __name__ == "__main__":
    main()
