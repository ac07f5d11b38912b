"""DistributedDataParallel on two processes, with gradients sent in 32, 4 and 2 bits per value.

Each process has its own pictures, noisy seven-segment digits. DDP's communication hook compresses the gradients of
matrices; biases are not compressed. With 2 bits each process adds its compression error to its next gradient (error
feedback). The processes communicate through Gloo; on GPUs use NCCL. The script starts both processes.

    pip install ".[torch]"
    python examples/torch_ddp.py
"""

import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
    from torch import Tensor, nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    sys.exit(f'torch_ddp.py needs PyTorch ({error}): pip install ".[torch]"')

from arrcomp.torch.distributed import QuantizedState, quantized_allreduce_hook

WORLD, STEPS = 2, 200
SEGMENTS = torch.tensor([0x7E, 0x30, 0x6D, 0x79, 0x33, 0x5B, 0x5F, 0x70, 0x7F, 0x7B])


def batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noisy pictures of digits, and their labels."""
    digits = torch.randint(10, (size,), generator=generator)
    segments = SEGMENTS[digits, None] >> torch.arange(7) & 1
    return segments.repeat(1, 8) + torch.randn(size, 56, generator=generator), digits


def train(bits: int) -> None:
    """Train with this number of bits, and print bytes and accuracy; all processes call this together."""
    torch.manual_seed(0)
    layers = [nn.Linear(56, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    sent = 2 * (WORLD - 1) // WORLD * sum(p.nbytes for p in model.parameters())  # of a ring all-reduce, by each process
    state = None
    if bits < 32:
        state = QuantizedState.for_model(model, bits=bits, error_feedback=bits == 2)
        model.register_comm_hook(state, quantized_allreduce_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    own = torch.Generator().manual_seed(1 + dist.get_rank())
    for _ in range(STEPS):
        pictures, digits = batch(64, own)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), digits).backward()
        optimizer.step()
    if state is not None:
        sent = state.total().sent_nbytes // STEPS
    pictures, digits = batch(20_000, torch.Generator().manual_seed(0))
    with torch.no_grad():
        accuracy = float((model.module(pictures).argmax(1) == digits).float().mean())
    weights = nn.utils.parameters_to_vector(model.parameters()).detach()
    everyones = [torch.empty_like(weights) for _ in range(WORLD)]
    dist.all_gather(everyones, weights)
    same = all(torch.equal(weights, other) for other in everyones)
    if dist.get_rank() == 0:
        print(f"{bits:4}  {sent:29,}  {100 * accuracy:7.2f} %  {'yes' if same else 'NO'}", flush=True)


def process(rank: int, folder: str) -> None:
    """Run one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=WORLD)
    if rank == 0:
        print("bits  bytes sent a step and process  accuracy  same weights on both", flush=True)
    for bits in (32, 4, 2):
        train(bits)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked processes do not import PyTorch again, and end without shutting Python down while Gloo's threads run.
        torch.multiprocessing.start_processes(process, (folder,), nprocs=WORLD, start_method="fork")
