"""A small decoder trained by local updates (DiLoCo) on two processes: bytes and loss; some minutes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import trained_decoder
from arrcomp import QSGD, Codec, Lossless
from arrcomp.torch.distributed import LocalUpdates
from harness.processes import in_processes
from harness.section import Found, Section
from harness.tables import table

PROCESSES, INNER, OUTER, SEEDS = 2, 20, 15, (0, 1, 2)
SIZE = trained_decoder.Size(width=64, layers=2, heads=4, symbols=256, context=64, batch=8)
_TESTED = 128  # sequences of the held-out text
_RATE = 2e-3
EVERY, FLOAT = "float32, every step", "float32"


@dataclass(frozen=True)
class Setting:
    """How outer gradients are sent; `codec` is None where gradients are averaged in every step instead."""

    codec: Codec | None = None
    error_feedback: bool = False


_SETTINGS: Mapping[str, Setting] = {
    EVERY: Setting(),
    FLOAT: Setting(Lossless()),
    "8 bits": Setting(QSGD(bits=8)),
    "4 bits": Setting(QSGD(bits=4)),
    "4 bits, error feedback": Setting(QSGD(bits=4), error_feedback=True),
    "2 bits": Setting(QSGD(bits=2)),
    "2 bits, error feedback": Setting(QSGD(bits=2), error_feedback=True),
}
_HOW = f"""\
A decoder of {SIZE.layers} layers and width {SIZE.width} learns the bytes of Python's documentation, in sequences of
{SIZE.context}, on {PROCESSES} processes, each with sequences of its own. The inner optimizer is AdamW with a rate that
rises to {_RATE} and falls to 0, for {OUTER} times {INNER} steps of {SIZE.batch} sequences on each process. The outer
one is SGD with a rate of 0.7 and Nesterov momentum of 0.9, by `LocalUpdates`; buckets have 512 values.

"{EVERY}" averages the gradients of every step and has no outer optimizer. Bytes are what one process
sends for {INNER} inner steps (for float32: by a ring all-reduce). Loss is in nats for each byte of text that was held
out, after the last outer step: the mean of {len(SEEDS)} seeds, with the smallest and the largest."""


def _train(model: Any, setting: Setting, tokens: Tensor, seed: int, outer_steps: int) -> float:
    """Train, and return the bytes that are sent for the inner steps of an outer one."""
    rank, world = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(seed * world + rank)
    parameters = list(model.parameters())
    inner = torch.optim.AdamW(parameters, lr=_RATE, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(inner, _RATE, total_steps=outer_steps * INNER + 1, pct_start=0.1)
    outer = torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)
    updates = None
    if setting.codec is not None:
        updates = LocalUpdates(outer, setting.codec, error_feedback=setting.error_feedback)
    for step in range(outer_steps * INNER):
        starts = torch.randint(len(tokens) - SIZE.context, (SIZE.batch,), generator=generator).tolist()
        batch = torch.stack([tokens[start : start + SIZE.context] for start in starts])
        inner.zero_grad()
        model(batch, labels=batch).loss.backward()
        if updates is None:
            for x in parameters:
                dist.all_reduce(x.grad.div_(world))
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        inner.step()
        schedule.step()
        if updates is not None and step % INNER == INNER - 1:
            updates.step()
    ring = 2 * (world - 1) / world * sum(x.nbytes for x in parameters)
    if updates is None or isinstance(setting.codec, Lossless):
        return ring * (INNER if updates is None else 1)
    return updates.sent_nbytes / updates.steps


@torch.no_grad()
def _loss(model: Any, tokens: Tensor) -> float:
    batch = tokens[: _TESTED * SIZE.context].view(_TESTED, SIZE.context)
    return float(model.eval()(batch, labels=batch).loss)


def all_settings(quick: bool) -> dict[str, dict[str, Any]]:
    """Bytes, and the loss of each seed, of each setting; in each of the processes."""
    learned, tested = (torch.tensor(list(text.encode())) for text in trained_decoder.texts())
    found: dict[str, dict[str, Any]] = {}
    for name, setting in list(_SETTINGS.items())[: 3 if quick else None]:
        sent, losses = [], []
        for seed in SEEDS[: 1 if quick else None]:
            model = trained_decoder.made(SIZE)
            sent.append(_train(model, setting, learned, seed, 1 if quick else OUTER))
            losses.append(_loss(model, tested))
            if dist.get_rank() == 0:
                print(f"{name}, seed {seed}: loss {losses[-1]:.3f}", flush=True)
        found[name] = {"sent": statistics.fmean(sent), "losses": losses}
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """Figures of each setting."""
    found = in_processes(PROCESSES, partial(all_settings, quick))
    return {
        name: {
            "sent": figures["sent"],
            "loss": statistics.fmean(figures["losses"]),
            "least": min(figures["losses"]),
            "most": max(figures["losses"]),
        }
        for name, figures in found.items()
    }


def text(found: Found) -> str:
    """What was measured, as text."""
    every = found[EVERY]["sent"]
    rows = [
        [name, f"{figures['sent']:,.0f}", f"{every / figures['sent']:.0f}", f"{figures['loss']:.3f}",
         f"{figures['least']:.3f} to {figures['most']:.3f}"]
        for name, figures in found.items()
    ]  # fmt: skip
    return "\n\n".join([_HOW, table(["<outer gradients", "bytes", "less", "loss", "of seeds"], rows)])


SECTION = Section(
    "Training by local updates",
    measured,
    text,
    levels=("method", "metric"),
    units={"sent": "B", **dict.fromkeys(("loss", "least", "most"), "nat")},
    versions=("arrcomp", "torch", "transformers"),
)
