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
from ...codecs import Codec
from ._arguments import Processes
from ._messages import Coder, Messages, PayloadSpec
from ._sums import combine_into, encode_combined
from ._wire import Steps, exchange, gather


class Reduction:
    """One all-reduce of several tensors, in place.

    The tensors are divided into a shard of ranges for each rank. Each rank receives its shard from all others, sums,
    and sends the sums to all. In a group of one rank nothing is coded, and nothing changes.

    Args:
        tensors: contiguous, on one device.
        codecs: of each tensor.
        op: "SUM", "AVG", "MAX" or "MIN".
        processes: of a group.
        seed: for stochastic rounding; ranks and ranges derive their own from it.
        threads: CPU threads for the codecs.
        lost: for each tensor one of its shape, which gets the compression error of what this rank sends; or None.
        lost_sums: error feedback: for each range of this rank's shard a flat tensor, which is added to the sum (or
            average) before coding, and then gets the coding error; or None.
        shards: the ranges of each rank; None to divide all tensors evenly.
        numbers: of each tensor, to derive its seed; None for its index.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        codecs: Sequence[Codec],
        op: str,
        processes: Processes,
        seed: int,
        threads: int,
        *,
        lost: Sequence[Tensor] | None = None,
        lost_sums: Sequence[Tensor] | None = None,
        shards: list[list[Range]] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.processes, self.op = processes, op
        self.coder = Coder(all(codec.fixed_rate for codec in codecs), tensors[0].device, threads)
        self.codecs = codecs
        self.flat = [x.view(-1) for x in tensors]
        self.lost = None if lost is None else [x.view(-1) for x in lost]
        self.lost_sums = lost_sums
        self.shards = shards or split(
            [x.numel() for x in tensors], [codec.granularity for codec in codecs], processes.world
        )
        # Each rank, and each of the two steps, draws different random numbers.
        self.seeds = derived(seed, 0, processes.rank), derived(seed, 1, processes.rank)
        self.numbers = numbers
        self.sent_nbytes = 0  # to other ranks, after the operation
        self.sent_nbytes_each = [0] * len(tensors)  # for each tensor

    @cached_property
    def specs(self) -> list[list[PayloadSpec]]:
        """The payloads of each shard's ranges."""
        return [[self._payload_spec(part) for part in shard] for shard in self.shards]

    def steps(self) -> Steps[None]:
        """Run the operation, which leaves the result in the tensors."""
        if self.processes.world == 1:
            for x in [*(self.lost or []), *(self.lost_sums or [])]:
                x.zero_()
            return
        slices = [shard_views(self.flat, shard) for shard in self.shards]
        sent, terms = yield from self._exchanged(slices)
        rank = self.processes.rank
        sums = encode_combined(self.coder, terms, self.specs[rank], self.op, self.seeds[1], self.lost_sums)
        self._count(sums, rank, self.processes.world - 1)
        gathered = yield from gather(sums, sent.sizes if self.coder.fixed else None, self.processes)
        for message, specs, targets in zip(gathered, self.specs, slices, strict=True):
            self.coder.decode(self.coder.payloads(message, specs), specs, targets)

    def scatter_steps(self, out: Sequence[Tensor]) -> Steps[None]:
        """Run only the reduce-scatter: the results of this rank's ranges go to `out`."""
        _sent, terms = yield from self._exchanged([shard_views(self.flat, shard) for shard in self.shards])
        specs = self.specs[self.processes.rank]
        for target, payloads, spec in zip(out, zip(*terms, strict=True), specs, strict=True):
            combine_into(target, self.coder, payloads, spec, self.op)

    def _exchanged(self, slices: Sequence[Sequence[Tensor]]) -> Steps[tuple[Messages, list[list[Tensor]]]]:
        """The messages that this rank sent, and the payloads for its shard from each rank."""
        sent = self.coder.encode(slices, self.specs, self.seeds[0])
        own = self.specs[self.processes.rank]
        size = self.coder.size(own)
        received = yield from exchange(sent, None if size is None else [size] * self.processes.world, self.processes)
        self._store_lost(sent)  # after the exchange, so as not to delay it
        for rank, message in enumerate(sent.buffer.split_with_sizes(sent.sizes)):
            self._count(message, rank, int(rank != self.processes.rank))
        return sent, [self.coder.payloads(message, own) for message in received]

    def _count(self, message: Tensor, rank: int, receivers: int) -> None:
        """Add a message for a rank's shard to the counts of sent bytes."""
        for part, nbytes in zip(self.shards[rank], self.coder.nbytes_each(message, self.specs[rank]), strict=True):
            self.sent_nbytes += receivers * nbytes
            self.sent_nbytes_each[part.array] += receivers * nbytes

    def _payload_spec(self, part: Range) -> PayloadSpec:
        number = None if self.numbers is None else derived(self.numbers[part.array], part.first)
        return PayloadSpec(self.codecs[part.array], self.flat[part.array].dtype, part.elements, number)

    def _store_lost(self, sent: Messages) -> None:
        if self.lost is None:
            return
        for shard, specs, message in zip(
            self.shards, self.specs, sent.buffer.split_with_sizes(sent.sizes), strict=True
        ):
            self.coder.decode(self.coder.payloads(message, specs), specs, shard_views(self.lost, shard))
        for x, lost in zip(self.flat, self.lost, strict=True):
            torch.sub(x, lost, out=lost)


def shard_views(arrays: Sequence[Tensor], shard: Sequence[Range]) -> list[Tensor]:
    """Views of the ranges of a shard."""
    return [arrays[part.array][part.first : part.end] for part in shard]
