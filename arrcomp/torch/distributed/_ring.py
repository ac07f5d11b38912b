"""The sum of tensors of all processes around a ring: each process talks to two neighbours alone."""

import torch
from torch import Tensor

from ..._methods.seeds import derived
from ._reduction import Reduction
from ._sums import add_to
from ._wire import Steps, gather, shift


class RingReduction(Reduction):
    """An all-reduce as `Reduction`, whose partial sums go from neighbour to neighbour.

    As many bytes are sent, and no process sends to more than one other at a time, which suits networks that are rings,
    have too little bandwidth for all-to-all. But a sum is coded anew at each of W - 1 hops, so that errors grow with
    the number of processes.
    """

    def steps(self) -> Steps[None]:
        """The operation; the tensors then have the result."""
        world, rank = self.processes.world, self.processes.rank
        if world == 1:
            return
        partial = [self._weighted(x) for x in self._pieces(rank)]
        for hop in range(world - 1):
            shard = (rank - hop) % world
            sent = self.coder.encode([partial], [self.specs[shard]], derived(self.seeds[0], hop))
            shard = (shard - 1) % world
            message = yield from shift(sent.buffer, self.coder.size(self.specs[shard]), self.processes)
            partial = [self._weighted(x) for x in self._pieces(shard)]
            payloads = self.coder.payloads(message, self.specs[shard])
            for x, payload, spec in zip(partial, payloads, self.specs[shard], strict=True):
                add_to(x, self.coder, payload, spec, self.op)
            self.sent_nbytes += sent.buffer.numel()
        yield from self._spread(partial)

    def _spread(self, sums: list[Tensor]) -> Steps[None]:
        """Give all processes the sums: this process's are those of the shard after its own."""
        world, rank = self.processes.world, self.processes.rank
        message = self.coder.encode([sums], [self.specs[(rank + 1) % world]], self.seeds[1]).buffer
        shards = [(other + 1) % world for other in range(world)]
        sizes = [self.coder.size(self.specs[shard]) for shard in shards]
        gathered = yield from gather(message, [size for size in sizes if size is not None] or None, self.processes)
        for received, shard in zip(gathered, shards, strict=True):
            specs = self.specs[shard]
            self.coder.decode(self.coder.payloads(received, specs), specs, self._pieces(shard))
        self.sent_nbytes += (world - 1) * message.numel()

    def _pieces(self, shard: int) -> list[Tensor]:
        return [self._piece(self.flat, piece) for piece in self.shards[shard]]

    def _weighted(self, x: Tensor) -> Tensor:
        """This process's summand, in memory of its own."""
        return torch.mul(x, 1 / self.processes.world) if self.op == "AVG" else x.clone()
