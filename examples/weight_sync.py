"""Weights from a trainer to a generator, after each step of reinforcement learning: only what changed is sent.

The trainer keeps float32 weights and sends them in bfloat16, of which a step of 1e-6 changes few. Each tensor is
compressed against the one that was sent before, and the generator applies it in place. The generator begins with other
weights, and misses one step. Both times arrcomp refuses, and the trainer sends whole tensors. They talk through Gloo.

    pip install ".[torch]"
    python examples/weight_sync.py
"""

import tempfile

import torch
import torch.distributed as dist
from torch import Tensor, nn

import arrcomp

TRAINER, GENERATOR, STEPS, LOST = 0, 1, 6, 3


def improve(policy: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Choose actions, learn which ones were rewarded; the weights as they are sent."""
    states = torch.randn(256, 64)
    actions = torch.distributions.Categorical(logits=policy(states))
    chosen = actions.sample()
    reward = (chosen == states[:, :10].argmax(1)).float()
    optimizer.zero_grad()
    (-(reward - reward.mean()) * actions.log_prob(chosen)).mean().backward()
    optimizer.step()
    return [weight.detach().bfloat16() for weight in policy.parameters()]


def train(policy: nn.Module) -> None:
    """Send the weights of each step against those before, and whole where these are refused."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    before = improve(policy, optimizer)
    for step in range(STEPS):
        weights = improve(policy, optimizer)
        if step != LOST and not send(step, weights, before):
            send(step, weights, None)
        before = weights
    dist.send_object_list([None], GENERATOR)


def send(step: int, weights: list[Tensor], reference: list[Tensor] | None) -> bool:
    """Send weights; whether the generator has them now, bit for bit."""
    message = [c.to_bytes() for c in arrcomp.compress_many(weights, reference=reference)]
    dist.send_object_list([message], GENERATOR)
    dist.recv_object_list(answer := [None], GENERATOR)
    same = all(torch.equal(*(y.view(torch.int16) for y in pair)) for pair in zip(weights, answer[0], strict=True))
    sent, whole = sum(map(len, message)), sum(weight.nbytes for weight in weights)
    print(f"step {step}: {sent:9,} bytes instead of {whole:,}, {'same weights' if same else 'refused'}", flush=True)
    return same


def generate(policy: nn.Module) -> None:
    """Apply what is sent, in place; answer with all weights, which the trainer compares with its own."""
    weights = [weight.detach().bfloat16() for weight in policy.parameters()]
    while dist.recv_object_list(received := [None], TRAINER) == TRAINER and received[0]:
        try:
            for weight, c in zip(weights, map(arrcomp.from_bytes, received[0]), strict=True):
                arrcomp.decompress(c, reference=weight if c.needs_reference else None, out=weight)
        except arrcomp.errors.WrongReferenceError as error:
            print(f"the generator: {error}", flush=True)
        dist.send_object_list([weights], TRAINER)


def process(rank: int, folder: str) -> None:
    """Run one process, with weights of its own."""
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    (train, generate)[rank](nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.Linear(512, 10)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked processes end without shutting Python down while Gloo's threads run.
        torch.multiprocessing.start_processes(process, (folder,), nprocs=2, start_method="fork")
