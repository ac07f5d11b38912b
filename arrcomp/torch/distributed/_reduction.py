"""The sum of tensors of all processes: reduce-scatter of compressed pieces, then all-gather of their compressed sums.

The scheme is that of CGX (I. Markov et al., arXiv:2111.08617, section 4): every value is quantized twice, however many
processes there are, and all of them decode the same bytes, so that all end with the same bits.
"""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from ..._methods.seeds import derived
from ..._methods.shards import Range, split
from ...codecs import Codec
from ._arguments import Processes
from ._messages import Coder, PayloadSpec, Messages
from ._sums import combine_into, encode_combined
from ._wire import Steps, exchange, gather


class Reduction:
    """One all-reduce of several tensors, in place.

    The tensors are cut into as many shards of pieces as there are processes; each process gets all that others have of
    its shard, adds, and sends the sums to all. In a group of one process nothing is coded, and nothing changes.

    Args:
        tensors: contiguous, on one device.
        codecs: of each tensor.
        op: "SUM", "AVG", "MAX" or "MIN".
        processes: of a group.
        seed: of codecs that draw random numbers: ranks and pieces derive their own from it.
        threads: for the codecs, on the CPU.
        lost: for each tensor one of its shape, which gets the tensor less what the others receive of it; or None.
        lost_sums: for each piece of this rank's shard a flat tensor, which is added to the piece's sum (or average)
            before that is coded, and gets what is lost then; or None.
        shards: pieces of each rank, where they are given; all tensors are cut evenly otherwise.
        numbers: of each tensor, that its random numbers follow from beside the seed; None for its place among them.
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
        # Ranks draw different numbers, and those for the sums are different ones again.
        self.seeds = derived(seed, 0, processes.rank), derived(seed, 1, processes.rank)
        self.numbers = numbers
        self.sent_nbytes = 0  # to other processes, once it is done
        self.sent_nbytes_each = [0] * len(tensors)  # of each tensor

    @cached_property
    def specs(self) -> list[list[PayloadSpec]]:
        """How the pieces of each shard are coded."""
        return [[self._coding(piece) for piece in shard] for shard in self.shards]

    def steps(self) -> Steps[None]:
        """The operation; the tensors then have the result."""
        if self.processes.world == 1:
            for x in [*(self.lost or []), *(self.lost_sums or [])]:
                x.zero_()
            return
        pieces = [[self._piece(self.flat, piece) for piece in shard] for shard in self.shards]
        sent, terms = yield from self._exchanged(pieces)
        rank = self.processes.rank
        sums = encode_combined(self.coder, terms, self.specs[rank], self.op, self.seeds[1], self.lost_sums)
        self._count(sums, rank, self.processes.world - 1)
        gathered = yield from gather(sums, sent.sizes if self.coder.fixed else None, self.processes)
        for message, specs, targets in zip(gathered, self.specs, pieces, strict=True):
            self.coder.decode(self.coder.payloads(message, specs), specs, targets)

    def scatter_steps(self, out: Sequence[Tensor]) -> Steps[None]:
        """The first half of the operation: this rank's pieces get the results, in tensors of their own."""
        pieces = [[self._piece(self.flat, piece) for piece in shard] for shard in self.shards]
        _sent, terms = yield from self._exchanged(pieces)
        specs = self.specs[self.processes.rank]
        for target, payloads, spec in zip(out, zip(*terms, strict=True), specs, strict=True):
            combine_into(target, self.coder, payloads, spec, self.op)

    def _exchanged(self, pieces: Sequence[Sequence[Tensor]]) -> Steps[tuple[Messages, list[list[Tensor]]]]:
        """What this rank sent, and the payloads of its pieces from each rank."""
        sent = self.coder.encode(pieces, self.specs, self.seeds[0])
        own = self.specs[self.processes.rank]
        size = self.coder.size(own)
        received = yield from exchange(sent, None if size is None else [size] * self.processes.world, self.processes)
        self._note_lost(sent)  # only now: the exchange did not have to wait for it
        for rank, message in enumerate(sent.buffer.split_with_sizes(sent.sizes)):
            self._count(message, rank, int(rank != self.processes.rank))
        return sent, [self.coder.payloads(message, own) for message in received]

    def _count(self, message: Tensor, rank: int, receivers: int) -> None:
        """Add a message with the pieces of a rank's shard to what was sent."""
        for piece, nbytes in zip(self.shards[rank], self.coder.nbytes_each(message, self.specs[rank]), strict=True):
            self.sent_nbytes += receivers * nbytes
            self.sent_nbytes_each[piece.array] += receivers * nbytes

    def _coding(self, piece: Range) -> PayloadSpec:
        number = None if self.numbers is None else derived(self.numbers[piece.array], piece.first)
        return PayloadSpec(self.codecs[piece.array], self.flat[piece.array].dtype, piece.elements, number)

    def _piece(self, arrays: Sequence[Tensor], piece: Range) -> Tensor:
        return arrays[piece.array][piece.first : piece.end]

    def _note_lost(self, sent: Messages) -> None:
        if self.lost is None:
            return
        for shard, specs, message in zip(
            self.shards, self.specs, sent.buffer.split_with_sizes(sent.sizes), strict=True
        ):
            targets = [self._piece(self.lost, piece) for piece in shard]
            self.coder.decode(self.coder.payloads(message, specs), specs, targets)
        for x, lost in zip(self.flat, self.lost, strict=True):
            torch.sub(x, lost, out=lost)
