"""The same training four times, each in less memory: few-bit activations, sampled rows, optimizer state in 8 bits.

A network learns to recognize noisy seven-segment digits. The script prints the bytes that autograd keeps for the
backward pass of a batch, the bytes of the optimizer's state between steps, and the accuracy.

    pip install ".[torch]"
    python examples/torch_less_memory.py
"""

import sys
from collections.abc import Callable

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    sys.exit(f'torch_less_memory.py needs PyTorch ({error}): pip install ".[torch]"')

import arrcomp.torch
from arrcomp.torch.nn import convert, convert_linear

SEGMENTS = torch.tensor([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])


def batch(size: int) -> tuple[Tensor, Tensor]:
    """Noisy pictures of digits, and their labels."""
    digits = torch.randint(10, (size,))
    segments = SEGMENTS[digits, None] >> torch.arange(7) & 1
    return segments.repeat(1, 8) + torch.randn(size, 56), digits


def new() -> nn.Module:
    """An untrained network, the same in each training."""
    torch.manual_seed(0)
    hidden = [part for _ in range(3) for part in (nn.Linear(512, 512), nn.GELU())]
    return nn.Sequential(nn.Linear(56, 512), nn.GELU(), *hidden, nn.Linear(512, 10))


def state_nbytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of an optimizer's state."""
    if isinstance(optimizer, arrcomp.torch.CompressedOptimizer):
        return optimizer.memory().nbytes
    return sum(x.nbytes for state in optimizer.state.values() for x in state.values())


def train(title: str, change: Callable[[nn.Module], nn.Module], eight_bit: bool = False) -> None:
    """Train, and print memory and accuracy."""
    model = change(new())
    optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if eight_bit:
        optimizer = arrcomp.torch.CompressedOptimizer.eight_bit(optimizer)
    for _ in range(150):
        x, digits = batch(256)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), digits).backward()
        optimizer.step()
    kept = arrcomp.torch.saved_memory(model, batch(256)[0]).nbytes
    x, digits = batch(5000)
    with torch.no_grad():
        accuracy = (model.eval()(x).argmax(1) == digits).float().mean()
    print(f"{title:<36} kept {kept:>9,} bytes, state {state_nbytes(optimizer):>9,} bytes, accuracy {accuracy:.3f}")


def main() -> None:
    """Train in less and less memory."""
    torch.set_num_threads(1)  # the model is small: more threads would be slower
    train("float32", lambda model: model)
    train("3 bits of each GELU's input", lambda model: convert(model, bits=3))
    small = lambda model: convert_linear(convert(model, bits=3), proj_dim_ratio=0.25)  # noqa: E731
    train("and a quarter of each layer's rows", small)
    train("and AdamW's state in 8 bits", small, eight_bit=True)


if __name__ == "__main__":
    main()
