"""A mixture of experts on two processes, whose tokens and gradients are exchanged in 32, 8 and 4 bits per value.

Each process has an expert and tokens. A router chooses an expert for each token; an all-to-all sends it there, another
sends the result back. Each token has its own scale. The script starts both processes, with Gloo; on GPUs use NCCL.

    pip install ".[torch]"
    python examples/torch_experts.py
"""

import sys
import tempfile

try:
    import torch
    import torch._dynamo  # else Adam loads it, which then keeps the process group: its threads may abort at the exit
    import torch.distributed as dist
    from torch import Tensor, nn
except ImportError as error:
    sys.exit(f'torch_experts.py needs PyTorch ({error}): pip install ".[torch]"')

from arrcomp import QSGD, Codec, Lossless
from arrcomp.torch.distributed import all_to_all_autograd

WORLD, WIDTH, TOKENS, STEPS = 2, 64, 256, 100
CODECS = {"32 bits": Lossless(), "8 bits": QSGD(bits=8, bucket_size=WIDTH), "4 bits": QSGD(bits=4, bucket_size=WIDTH)}


class Experts(nn.Module):
    """A layer with an expert on each process."""

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self.codec, self.router = codec, nn.Linear(WIDTH, WORLD, bias=False)
        self.expert = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the experts of tokens [tokens, WIDTH]."""
        weights, experts = self.router(x).softmax(-1).max(-1)
        order = experts.argsort(stable=True)  # the tokens of expert 0, then those of expert 1
        sent = torch.bincount(experts, minlength=WORLD)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)  # how many tokens come from each process
        here, there = received.tolist(), sent.tolist()
        tokens = all_to_all_autograd(x[order], self.codec, here, there)
        results = all_to_all_autograd(self.expert(tokens), self.codec, there, here)
        return weights[:, None] * torch.empty_like(x).index_copy(0, order, results)


def train(codec: Codec) -> float:
    """Train, and return the last loss of all processes."""
    torch.manual_seed(0)  # the same router on all processes
    layer, target = Experts(codec), torch.randn(WORLD, WIDTH, WIDTH) / WIDTH**0.5
    optimizer = torch.optim.Adam(layer.parameters(), lr=3e-3)
    generator, loss = torch.Generator().manual_seed(dist.get_rank()), torch.zeros(())
    for _ in range(STEPS):
        x = torch.randn(TOKENS, WIDTH, generator=generator)
        y = torch.einsum("ti,tij->tj", x, target[(x[:, 0] > 0).long()])  # tokens of two kinds need two experts
        optimizer.zero_grad()
        (loss := (layer(x) - y).square().mean()).backward()
        dist.all_reduce(layer.router.weight.grad)  # experts have gradients of all tokens, routers of their own
        optimizer.step()
    dist.all_reduce(total := loss.detach() / WORLD)
    return float(total)


def process(rank: int, folder: str) -> None:
    """Run one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    for name, codec in CODECS.items():
        loss = train(codec)
        if rank == 0:
            print(f"{name}: loss {loss:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        torch.multiprocessing.start_processes(process, (name,), nprocs=WORLD)
