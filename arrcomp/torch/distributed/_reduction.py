"""All-reduce by a reduce-scatter of compressed shards and an all-gather of their compressed sums.

This is the scheme of CGX (I. Markov et al., arXiv:2111.08617, section 4). Each value is quantized twice, for any number
of ranks, and all ranks decode the same bytes, so they get bit-identical results.
"""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from ..._methods.seeds import derived
from ..._methods.shards import Range, split
from ._arguments import Operation
from ._messages import Messages, PayloadSpec
from ._sums import add_to, combine_into, encode_combined
from ._wire import Steps, exchange, gather, shift


class Reduction:
    """One all-reduce of several tensors, in place.

    The tensors are divided into a shard of ranges for each rank. Each rank receives its shard from all others, sums,
    and sends the sums to all. In a group of one rank nothing is coded, and nothing changes.

    Args:
        operation: tensors, codecs, and how to reduce.
        lost: for each tensor one of its shape, which gets the compression error of what this rank sends; or None.
        lost_sums: error feedback: for each range of this rank's shard a flat tensor, which is added to the sum (or
            average) before coding, and then gets the coding error; or None.
        shards: the ranges of each rank; None to divide all tensors evenly.
        numbers: of each tensor, to derive its seed; None for its index.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        lost: Sequence[Tensor] | None = None,
        lost_sums: Sequence[Tensor] | None = None,
        shards: list[list[Range]] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> None:
        tensors, self.codecs, self.op = operation.tensors, operation.codecs, operation.op
        self.processes, self.coder = operation.processes, operation.coder()
        self.flat = [x.view(-1) for x in tensors]
        self.lost = None if lost is None else [x.view(-1) for x in lost]
        self.lost_sums, self.numbers = lost_sums, numbers
        multiples = [codec.granularity for codec in self.codecs]
        self.shards = shards or split([x.numel() for x in tensors], multiples, self.processes.world)
        # Each rank, and each of the two steps, draws different random numbers.
        self.seeds = [derived(operation.seed, step, self.processes.rank) for step in (0, 1)]
        self.sent_nbytes = 0  # to other ranks, after the operation
        self.sent_nbytes_each = [0] * len(tensors)  # for each tensor

    @cached_property
    def specs(self) -> list[list[PayloadSpec]]:
        """The payloads of each shard's ranges."""
        return [[self._spec(part) for part in shard] for shard in self.shards]

    def steps(self) -> Steps[None]:
        """Run the operation, which leaves the result in the tensors."""
        rank, world = self.processes.rank, self.processes.world
        if world == 1:
            for x in [*(self.lost or []), *(self.lost_sums or [])]:
                x.zero_()
            return
        sent, terms = yield from self._exchanged()
        sums = encode_combined(self.coder, terms, self.specs[rank], self.op, self.seeds[1], self.lost_sums)
        self._count(sums, rank, world - 1)
        gathered = yield from gather(sums, sent.sizes if self.coder.fixed else None, self.processes)
        for shard, message in enumerate(gathered):
            self._decode(message, shard, self.flat)

    def scatter_steps(self, out: Sequence[Tensor]) -> Steps[None]:
        """Run only the reduce-scatter: the results of this rank's ranges go to `out`."""
        _sent, terms = yield from self._exchanged()
        specs = self.specs[self.processes.rank]
        for target, payloads, spec in zip(out, zip(*terms, strict=True), specs, strict=True):
            combine_into(target, self.coder, payloads, spec, self.op)

    def _exchanged(self) -> Steps[tuple[Messages, list[list[Tensor]]]]:
        """The messages that this rank sent, and the payloads for its shard from each rank."""
        sent = self.coder.encode([shard_views(self.flat, shard) for shard in self.shards], self.specs, self.seeds[0])
        own = self.specs[self.processes.rank]
        size = self.coder.size(own)
        received = yield from exchange(sent, None if size is None else [size] * self.processes.world, self.processes)
        messages = sent.buffer.split_with_sizes(sent.sizes)
        if self.lost is not None:  # after the exchange, so as not to delay it
            for shard, message in enumerate(messages):
                self._decode(message, shard, self.lost)
            for x, lost in zip(self.flat, self.lost, strict=True):
                torch.sub(x, lost, out=lost)
        for rank, message in enumerate(messages):
            self._count(message, rank, int(rank != self.processes.rank))
        return sent, [self.coder.payloads(message, own) for message in received]

    def _count(self, message: Tensor, rank: int, receivers: int) -> None:
        """Add a message for a rank's shard to the counts of sent bytes."""
        for part, nbytes in zip(self.shards[rank], self.coder.nbytes_each(message, self.specs[rank]), strict=True):
            self.sent_nbytes += receivers * nbytes
            self.sent_nbytes_each[part.array] += receivers * nbytes

    def _spec(self, part: Range) -> PayloadSpec:
        number = None if self.numbers is None else derived(self.numbers[part.array], part.first)
        return PayloadSpec(self.codecs[part.array], self.flat[part.array].dtype, part.elements, number)

    def _decode(self, message: Tensor, shard: int, targets: Sequence[Tensor]) -> None:
        """Decode a message with a shard into its ranges of flat tensors."""
        specs = self.specs[shard]
        self.coder.decode(self.coder.payloads(message, specs), specs, shard_views(targets, self.shards[shard]))


class RingReduction(Reduction):
    """Same as `Reduction`, but partial sums travel from neighbour to neighbour.

    As many bytes are sent, and no rank sends to more than one other, which suits networks that are rings or are slow at
    all-to-all. But a sum is coded at each of W - 1 hops, so errors grow with the number of ranks.
    """

    def steps(self) -> Steps[None]:
        """Run the operation, which leaves the result in the tensors."""
        world, rank = self.processes.world, self.processes.rank
        if world == 1:
            return
        partial = self._weighted(rank)
        for hop in range(world - 1):
            shard = (rank - hop) % world
            sent = self.coder.encode([partial], [self.specs[shard]], derived(self.seeds[0], hop))
            shard = (shard - 1) % world
            specs = self.specs[shard]
            message = yield from shift(sent.buffer, self.coder.size(specs), self.processes)
            partial = self._weighted(shard)
            for x, payload, spec in zip(partial, self.coder.payloads(message, specs), specs, strict=True):
                add_to(x, self.coder, payload, spec, self.op)
            self.sent_nbytes += sent.buffer.numel()
        yield from self._all_gather(partial)

    def _all_gather(self, sums: list[Tensor]) -> Steps[None]:
        """Send the sums to all ranks; this rank has those of the shard after its own."""
        world, rank = self.processes.world, self.processes.rank
        message = self.coder.encode([sums], [self.specs[(rank + 1) % world]], self.seeds[1]).buffer
        shards = [(other + 1) % world for other in range(world)]
        sizes = [self.coder.size(self.specs[shard]) for shard in shards]
        gathered = yield from gather(message, [size for size in sizes if size is not None] or None, self.processes)
        for received, shard in zip(gathered, shards, strict=True):
            self._decode(received, shard, self.flat)
        self.sent_nbytes += (world - 1) * message.numel()

    def _weighted(self, shard: int) -> list[Tensor]:
        """Copies of this rank's summands of a shard, divided for "AVG"."""
        weight = 1 / self.processes.world
        views = shard_views(self.flat, self.shards[shard])
        return [torch.mul(x, weight) if self.op == "AVG" else x.clone() for x in views]


def shard_views(arrays: Sequence[Tensor], shard: Sequence[Range]) -> list[Tensor]:
    """Views of the ranges of a shard."""
    return [arrays[part.array][part.first : part.end] for part in shard]


ALGORITHMS = {"scatter": Reduction, "ring": RingReduction}
