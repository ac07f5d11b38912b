"""Ring all-reduce: each rank communicates only with its two neighbours."""

import torch
from torch import Tensor

from ..._methods.seeds import derived
from ._reduction import Reduction, shard_views
from ._sums import add_to
from ._wire import Steps, gather, shift


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
        partial = [self._weighted(x) for x in self._slices(rank)]
        for hop in range(world - 1):
            shard = (rank - hop) % world
            sent = self.coder.encode([partial], [self.specs[shard]], derived(self.seeds[0], hop))
            shard = (shard - 1) % world
            message = yield from shift(sent.buffer, self.coder.size(self.specs[shard]), self.processes)
            partial = [self._weighted(x) for x in self._slices(shard)]
            payloads = self.coder.payloads(message, self.specs[shard])
            for x, payload, spec in zip(partial, payloads, self.specs[shard], strict=True):
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
            specs = self.specs[shard]
            self.coder.decode(self.coder.payloads(received, specs), specs, self._slices(shard))
        self.sent_nbytes += (world - 1) * message.numel()

    def _slices(self, shard: int) -> list[Tensor]:
        return shard_views(self.flat, self.shards[shard])

    def _weighted(self, x: Tensor) -> Tensor:
        """A copy of this rank's summand, divided for "AVG"."""
        return torch.mul(x, 1 / self.processes.world) if self.op == "AVG" else x.clone()
