"""The backend "arrcomp" of torch.distributed: importing this module registers it."""

import json
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ...._arguments import wrong_type
from ...._methods.seeds import derived
from ..._tensors import FLOATS, dtype_of
from .._all_to_all import all_to_all_steps, checked_rows
from .._arguments import Processes
from .._hierarchy import Hierarchy, nodes_and_peers
from .._pending import Pending
from .._wire import Steps, then_copy_back
from .environment import options_from_environment, without_effect
from .groups import ForwardingGroup, Members, usual_backends
from .layers import Layers
from .options import BackendOptions, parsed_backends
from .queued import Queue
from .segments import all_reduce_steps, coded_operation, segments


class CompressingGroup(ForwardingGroup):
    """A process group that compresses the all-reduces and all-to-alls selected by `options`.

    The underlying backends do everything else, as in PyTorch's own process groups.

    On the CPU the compressed operations of a group run one after the other on a background thread, with a separate
    Gloo group (created by the first of them), so that other operations cannot interleave. On CUDA they are enqueued on
    a side stream, and use the underlying communicator.

    Attributes:
        options: what is compressed.
        layers: those of registered buckets.
    """

    def __init__(self, members: Members, options: BackendOptions) -> None:
        backends = usual_backends() if options.backends is None else parsed_backends(options.backends)
        _check_nodes(options, len(members.ranks))
        super().__init__(members.make(backends), backends)
        self.options, self.layers = options, Layers()
        self._members, self._backends, self._calls = members, backends, 0
        self._is_coalescing = False
        self._queue: Queue | None = None
        self._cpu_processes: Processes | None = None
        self._hierarchies: dict[tuple[str, int], Hierarchy] = {}

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, op: Any = None) -> Any:
        """Reduce tensors over all ranks, in place, compressed if `options` select them."""
        listed: list[Tensor] = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        options: Any = opts
        if not isinstance(opts, dist.AllreduceOptions):  # PyTorch's other overloads
            options = dist.AllreduceOptions()
            chosen = opts if op is None else op
            options.reduceOp = dist.ReduceOp.SUM if chosen is None else chosen
            if timeout is not None:
                options.timeout = timeout
        work = self._compressed(listed, options.reduceOp)
        return self.plain.allreduce(listed, options) if work is None else work

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Any:
        """Reduce tensors over all ranks, in place, in one exchange, compressed if `options` select them."""
        listed, options = list(tensors), dist.AllreduceCoalescedOptions() if opts is None else opts
        work = self._compressed(listed, options.reduceOp)
        return self.plain.allreduce_coalesced(listed, options) if work is None else work

    def alltoall_base(self, output: Tensor, source: Tensor, incoming: Any, outgoing: Any, *options: Any) -> Any:
        """Exchange rows between all ranks, compressed if `options` select them."""
        work = self._compressed_all_to_all(output, source, incoming, outgoing)
        return self.plain.alltoall_base(output, source, incoming, outgoing, *options) if work is None else work

    all_to_all_single = alltoall_base  # the name since PyTorch 2.13

    def _start_coalescing(self, device: torch.device) -> None:
        """Begin to collect operations; those with several steps are left to the underlying backend."""
        self.plain._start_coalescing(device)
        self._is_coalescing = True

    def _end_coalescing(self, device: torch.device) -> Any:
        self._is_coalescing = False
        return self.plain._end_coalescing(device)

    def configure(self, options: BackendOptions) -> None:
        """Change the options.

        Raises:
            ValueError: they do not match the size of the group.
        """
        _check_nodes(options, self.size())
        self.options = options

    def shutdown(self) -> None:
        """Finish the queued operations, and shut down the underlying groups."""
        if self._queue is not None:
            self._queue.close(wait=True)
        for group in self._groups():
            group.shutdown()

    def abort(self) -> None:
        """Abort without waiting for queued operations."""
        if self._queue is not None:
            self._queue.close(wait=False)
        for group in self._groups():
            group.abort()

    def _compressed(self, tensors: list[Tensor], op: Any) -> Any:
        """The work of a compressed all-reduce; None if nothing is to be compressed."""
        name = next((name for name in ("SUM", "AVG") if op == getattr(dist.ReduceOp, name)), None)
        if name is None or self.size() == 1 or self._is_coalescing or not all(map(_is_dense, tensors)):
            return None
        xs = [x.detach() for x in tensors]
        dense = [x.contiguous() for x in xs]
        found = segments(dense, self.options, self.layers)
        if not any(segment.codec for segment in found):
            return None
        processes, hierarchy, plain = self._participants(xs[0].device.type)
        coded = coded_operation(found, name, processes, self._next_seed(), self.options.threads)
        steps = then_copy_back(all_reduce_steps(found, coded, hierarchy, plain, self.options), dense, xs)
        return self._started(steps, [*xs, *dense], tensors)

    def _compressed_all_to_all(self, output: Tensor, source: Tensor, incoming: Any, outgoing: Any) -> Any:
        """The work of a compressed all-to-all; None if it is not to be compressed. The dtype alone decides."""
        codec, world = self.options.all_to_all_codec, self.size()
        if codec is None or world == 1 or self._is_coalescing or not (_is_dense(output) and _is_dense(source)):
            return None
        if source.dtype not in FLOATS or not codec.takes(dtype_of(source)):
            return None
        out, x = output.detach(), source.detach()
        rows = checked_rows(out.contiguous(), x, incoming or None, outgoing or None, world)
        processes, seed, threads = self._coding_processes(x.device.type), self._next_seed(), self.options.threads
        steps = then_copy_back(all_to_all_steps(rows, codec, processes, seed, threads), [rows.out], [out])
        return self._started(steps, [x, out, rows.x, rows.out], output)

    def _next_seed(self) -> int:
        """A seed for the next compressed operation, the same on all ranks."""
        self._calls += 1
        return derived(self.options.seed, self._calls - 1)

    def _started(self, steps: Steps[None], touched: list[Tensor], result: Any) -> Any:
        """The work of an operation, on a side stream or in the queue."""
        if touched[0].is_cuda:
            return Pending(steps, touched, result)
        self._queue = self._queue or Queue()
        return self._queue.add(steps, result)

    def _coding_processes(self, device: str) -> Processes:
        """The processes that exchange compressed values."""
        if device != "cuda":
            return self._cpu_group()
        if self._backends.get("cuda") != "nccl":
            raise RuntimeError(f"backends: expected nccl for compressed operations on CUDA, got {self._backends}")
        return Processes.of(self)

    def _participants(self, device: str) -> tuple[Processes, Hierarchy | None, Any]:
        """The processes that exchange compressed values, their hierarchy, and a group for uncompressed values."""
        size, processes = self.options.local_size, self._coding_processes(device)
        plain = self.plain if device == "cuda" else processes.group
        if size is None:
            return processes, None, plain
        if (device, size) not in self._hierarchies:
            self._hierarchies[device, size] = self._nodes(processes, size, device)
        return processes, self._hierarchies[device, size], plain

    def _cpu_group(self) -> Processes:
        """The same processes, in a separate group for the queue."""
        if self._cpu_processes is None:
            group = self._members.subset(range(self.size()), "compressed").make({"cpu": "gloo"})
            self._cpu_processes = Processes(group, self.rank(), self.size())
        return self._cpu_processes

    def _nodes(self, whole: Processes, local_size: int, device: str) -> Hierarchy:
        backend = {device: "nccl" if device == "cuda" else "gloo"}
        own = []
        for level, subsets in zip(("node", "peers"), nodes_and_peers(whole.world, local_size), strict=True):
            ranks = next(subset for subset in subsets if whole.rank in subset)
            members = self._members.subset(ranks, f"{level}/{device}/{local_size}/{ranks[0]}")
            own.append(Processes(members.make(backend), members.rank, len(ranks)))
        return Hierarchy(whole, *own)

    def _groups(self) -> list[Any]:
        made = [] if self._cpu_processes is None else [self._cpu_processes]
        made += [group for nodes in self._hierarchies.values() for group in (nodes.local, nodes.cross)]
        return [*(processes.group for processes in made), self.plain]


def _check_nodes(options: BackendOptions, world: int) -> None:
    if options.local_size is not None:
        nodes_and_peers(world, options.local_size)


def _is_dense(x: Tensor) -> bool:
    return x.layout is torch.strided and not x.is_nested and x.device.type in ("cpu", "cuda")


def _create(about: Any, pg_options: Any) -> Any:
    """Create a group for `init_process_group` or `new_group`.

    Without `pg_options` the default group, for which `about` has no ranks, takes the environment's; `new_group` makes
    an uncompressed one.
    """
    ranks = about.global_ranks_in_group or range(about.group_size)
    members = Members(about.store, ranks, about.group_rank, about.timeout, str(about.group_id))
    if pg_options is None and about.global_ranks_in_group:
        return members.make(usual_backends())
    options = _chosen(pg_options, is_first=about.group_rank == 0)
    _compare(options, about.store, about.group_rank)
    return CompressingGroup(members._replace(nccl=options.nccl), options)


def _chosen(pg_options: Any, is_first: bool) -> BackendOptions:
    if pg_options is not None and not isinstance(pg_options, BackendOptions):
        raise wrong_type("pg_options", "a BackendOptions", pg_options)
    options: BackendOptions = pg_options or options_from_environment()
    if is_first and pg_options is None and (unused := without_effect()):
        warnings.warn(f"without effect: {'; '.join(unused)}", stacklevel=2)
    if is_first and options.fake_ratio < 1:
        warnings.warn(f"fake_ratio={options.fake_ratio}: results are wrong; use it only to measure speed", stacklevel=2)
    return options


def _compare(options: BackendOptions, store: Any, rank: int) -> None:
    """Raise ValueError unless the options are those of rank 0."""
    own = options.shared_config()
    if rank == 0:
        store.set("arrcomp/options", own)
        return
    first = store.get("arrcomp/options").decode()
    if first != own:
        shared, other = json.loads(first), json.loads(own)
        names = [name for name in other if other[name] != shared.get(name)]
        expected, got = ({name: values.get(name) for name in names} for values in (shared, other))
        raise ValueError(f"pg_options: expected rank 0's {expected}, got {got}")


dist.Backend.register_backend("arrcomp", _create, extended_api=True, devices=["cpu", "cuda"])
