"""DistributedDataParallel on two processes, with gradients sent in 32, 4 and 2 bits per value, and a checkpoint.

Each process has its own pictures, noisy seven-segment digits. A hook compresses the gradients of matrices; with 2 bits
there is error feedback. Both processes have the same weights, and so has training that is resumed from the checkpoint.
They communicate through Gloo; on GPUs use NCCL. The script starts both.

    pip install ".[torch]"
    python examples/torch_ddp.py
"""

import sys
import tempfile
from typing import Any

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


def train(bits: int, steps: range, file: str, checkpoint: dict[str, Any] | None = None) -> tuple[nn.Module, int]:
    """Train, with a checkpoint half-way; all processes do. Returns the model, and the bytes sent in a step."""
    torch.manual_seed(0)
    layers = [nn.Linear(56, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    least = 1024 if bits < 32 else 1 << 40  # smaller layers are not compressed
    state = QuantizedState.for_model(model, bits=min(bits, 8), layer_min_size=least, error_feedback=bits == 2)
    model.register_comm_hook(state, quantized_allreduce_hook)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "compression": state}
    for name, saved in (checkpoint or {}).items():
        parts[name].load_state_dict(saved)
    for step in steps:
        if step == STEPS // 2 and checkpoint is None:
            torch.save({name: part.state_dict() for name, part in parts.items()}, file)
        pictures, digits = batch(64, torch.Generator().manual_seed(WORLD * step + dist.get_rank()))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), digits).backward()
        optimizer.step()
    return model.module, state.total().sent_nbytes // len(steps)


def process(rank: int, folder: str) -> None:
    """Run one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=WORLD)
    for bits in (32, 4, 2):
        file = f"{folder}/{rank}.pt"  # one for each process, as compression errors differ
        model, sent = train(bits, range(STEPS), file)
        resumed, _ = train(bits, range(STEPS // 2, STEPS), file, torch.load(file))
        weights = torch.stack([nn.utils.parameters_to_vector(each.parameters()) for each in (model, resumed)]).detach()
        dist.all_gather(everyones := [torch.empty_like(weights) for _ in range(WORLD)], weights)
        same = bool((torch.cat(everyones) == weights[0]).all())
        pictures, digits = batch(20_000, torch.Generator().manual_seed(1 << 20))
        accuracy = float((model(pictures).argmax(1) == digits).float().mean())
        if rank == 0:
            print(f"{bits:2} bits: {sent:9,} bytes a step, accuracy {accuracy:.4f}, same weights: {same}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked processes end without shutting Python down while Gloo's threads run.
        torch.multiprocessing.start_processes(process, (folder,), nprocs=WORLD, start_method="fork")
