"""The memory that blocks share for their plain weights, one or two of them at a time."""

import operator
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ..._arrays.contract import Payload
from ..._format.spec import Spec
from .._adapter import ADAPTER
from .weight import CompressedWeight

_ALIGNMENT = 256  # bytes, of a weight in the memory

Weights = Sequence[CompressedWeight]
Owner = Hashable  # who uses plain weights: a block


def plain_nbytes(weights: Weights) -> int:
    """Bytes of memory for these weights. Aliases of one take its memory."""
    return sum(_rounded(weight.compressed.spec.nbytes) for weight in _distinct(weights))


class _Turn(NamedTuple):
    """A forward pass of a block that has begun."""

    owner: Owner
    end: Callable[[], None]
    frame: FrameType  # of the call of its module

    def is_over(self) -> bool:
        """Whether the call has ended, in the thread that made it."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is None


class SharedMemory:
    """Gives blocks their plain weights, for as long as these say that they use them.

    On CUDA there is memory for two blocks, and while one is used, that which came next the last time is decompressed on
    a stream of its own. A block that runs within another gets memory of its own.

    Args:
        ahead: whether to decompress the next block ahead; None for CUDA alone.
    """

    def __init__(self, ahead: bool | None = None) -> None:
        self._ahead = ahead
        self._lock = threading.RLock()  # whoever uses weights holds it: threads take turns
        self._turns: list[_Turn] = []  # of the thread that holds the lock, in one another
        # Blocks that a model has no more are forgotten, and a copy of one of them takes no others with it.
        self._needs: weakref.WeakKeyDictionary[Any, Callable[[Any], Weights]] = weakref.WeakKeyDictionary()
        self._next: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
        self._last: weakref.ref[Any] | None = None
        self._slots: dict[torch.device, list[_Slot]] = {}

    def register(self, owner: Owner, weights: Callable[[Any], Weights]) -> None:
        """Tell of a block, and how to find the weights of one."""
        self._needs[owner] = weights

    def begin(self, owner: Owner, end: Callable[[], None]) -> None:
        """Begin a forward pass, in a hook of its module. Other threads wait until `finish`, which calls `end`."""
        self._lock.acquire()
        self._end_interrupted()
        self._turns.append(_Turn(owner, end, sys._getframe(3)))

    def finish(self, owner: Owner) -> bool:
        """End a forward pass; False if it did not begin, as another hook failed before."""
        with self._lock:
            self._end_interrupted()
            began = bool(self._turns) and self._turns[-1].owner is owner
            if began:
                self._end_last()
        return began

    def copied(self, result: Any) -> Any:
        """A module's result with copies of tensors that are in this memory, which the next block writes to.

        None if there are no such tensors.
        """
        own = {_storage(slot.memory) for slots in self._slots.values() for slot in slots} - {None}
        if not (own and any(_storage(x) in own for x in pytree.tree_leaves(result))):
            return None
        return pytree.tree_map(lambda x: x.clone() if _storage(x) in own else x, result)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes now."""
        return sum(slot.memory.numel() for slots in self._slots.values() for slot in slots)

    def parameters(self, owner: Owner, weights: Weights) -> dict[int, nn.Parameter]:
        """Parameters with the values of compressed weights, by the ids of these, until `release`."""
        found: dict[int, nn.Parameter] = {}
        for own in _by_device(weights):
            slot = self._filled(own)
            slot.user = owner
            found |= slot.given()
        self._look_ahead(owner)
        return found

    def release(self, owner: Owner) -> None:
        """The plain weights are not needed any more."""
        for slots in self._slots.values():
            for slot in slots:
                if slot.user is owner:
                    slot.leave()

    def _end_interrupted(self) -> None:
        """End passes whose calls ended without the hooks: PyTorch runs none after a KeyboardInterrupt."""
        while self._turns and self._turns[-1].is_over():
            self._end_last()

    def _end_last(self) -> None:
        try:
            self._turns.pop().end()
        finally:
            self._lock.release()

    def _filled(self, weights: Weights) -> "_Slot":
        device = weights[0].device
        slots = self._slots_on(device)
        for slot in slots:
            if slot.user is None and slot.has(weights):
                return slot
        free = [slot for slot in slots if slot.user is None]
        slot = free[0] if free else _Slot(device, plain_nbytes(weights))
        slot.fill(weights)
        return slot

    def _slots_on(self, device: torch.device) -> list["_Slot"]:
        if device not in self._slots:
            needs = [weights(owner) for owner, weights in self._needs.items()]
            blocks = [[own for own in weights if own.device == device] for weights in needs]
            most = max(map(plain_nbytes, blocks), default=0)
            self._slots[device] = [_Slot(device, most) for _ in range(2 if self._looks_ahead(device) else 1)]
        return self._slots[device]

    def _looks_ahead(self, device: torch.device) -> bool:
        return device.type == "cuda" if self._ahead is None else self._ahead

    def _look_ahead(self, owner: Owner) -> None:
        last = None if self._last is None else self._last()
        if last is not None:
            self._next[last] = weakref.ref(owner)
        self._last = weakref.ref(owner)
        follower = self._next[owner]() if owner in self._next else None
        if follower is None or follower is owner:
            return
        for weights in _by_device(self._needs[follower](follower)):
            slots = self._slots_on(weights[0].device)
            free = [slot for slot in slots if slot.user is None]
            if len(slots) > 1 and free and not any(slot.has(weights) for slot in slots):
                free[0].fill(weights)

    def __getstate__(self) -> dict[str, Any]:
        return {"ahead": self._ahead}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # blocks register when they are copied


class _Slot:
    """Memory for the plain weights of one block at a time."""

    def __init__(self, device: torch.device, nbytes: int) -> None:
        self.user: Owner = None
        self._side = _SideStream(device) if device.type == "cuda" else None
        self._layout: list[_Laid] = []  # the weights whose values it has, as they were when they got their places
        self._payloads: list[Tensor] = []  # of these, at the time
        self._targets: dict[int, Tensor] = {}
        self._parameters: dict[int, nn.Parameter] = {}
        self.memory = torch.empty(0, dtype=torch.uint8, device=device)
        self._grow(nbytes)

    def has(self, weights: Weights) -> bool:
        """Whether it has the values of these weights."""
        return self._is_for(weights) and all(
            payload is weight._payload for payload, weight in zip(self._payloads, weights, strict=True)
        )

    def fill(self, weights: Weights) -> None:
        """Decompress weights into it."""
        if not self._is_for(weights):
            self._lay_out(weights)
        self._payloads = [weight._payload for weight in weights]
        if self._side is None:
            self._decompress()
        else:
            self._side.do(self._decompress, self._payloads)

    def given(self) -> dict[int, nn.Parameter]:
        """Its parameters, which have their values before what the current stream does next."""
        if self._side is not None:
            self._side.wait_for_work()
        return self._parameters

    def leave(self) -> None:
        """Its user has enqueued the last work with the parameters."""
        self.user = None
        if self._side is not None:
            self._side.note_end_of_use()

    def _is_for(self, weights: Weights) -> bool:
        return len(weights) == len(self._layout) and all(map(_Laid.is_of, self._layout, weights))

    def _decompress(self) -> None:
        groups: dict[Hashable, list[CompressedWeight]] = {}
        for weight in _distinct([laid.weight for laid in self._layout]):
            groups.setdefault((weight.codec, weight.dtype), []).append(weight)
        for members in groups.values():
            payloads = [Payload(ADAPTER, weight._payload, trusted=True) for weight in members]
            targets = [self._targets[id(weight._held)] for weight in members]
            ADAPTER.decompress(payloads, [weight.compressed.spec for weight in members], targets, 0)

    def _lay_out(self, weights: Weights) -> None:
        self._grow(plain_nbytes(weights))
        self._layout, self._targets, end = list(map(_Laid.of, weights)), {}, 0
        # Memory that is made in inference mode could not be changed outside.
        with torch.inference_mode(False), torch.no_grad():
            for weight in _distinct(weights):
                spec = weight.compressed.spec
                own = self.memory[end : end + spec.nbytes]
                self._targets[id(weight._held)] = own.view(weight.dtype).view(spec.shape)
                end += _rounded(spec.nbytes)
            self._parameters = {id(weight): _parameter(weight, self._targets[id(weight._held)]) for weight in weights}

    def _grow(self, nbytes: int) -> None:
        if self.memory.numel() >= nbytes:
            return
        device, self.memory = self.memory.device, torch.empty(0, dtype=torch.uint8)  # freed before there is more
        with torch.inference_mode(False):
            self.memory = torch.empty(nbytes, dtype=torch.uint8, device=device)
        if self._side is not None:
            self._side.keep(self.memory)


class _Laid(NamedTuple):
    """What the place of a weight depends on: it may become another one, of another shape or dtype."""

    weight: CompressedWeight
    held: Any
    spec: Spec
    is_transposed: bool

    @classmethod
    def of(cls, weight: CompressedWeight) -> "_Laid":
        return cls(weight, weight._held, weight.compressed.spec, weight._is_transposed)

    def is_of(self, weight: CompressedWeight) -> bool:
        return all(map(operator.is_, self, _Laid.of(weight)))


class _SideStream:
    """Work on a slot's memory beside the current stream."""

    def __init__(self, device: torch.device) -> None:
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._done: Any = None
        self._used: Any = None

    def keep(self, memory: Tensor) -> None:
        """Tell the allocator that the stream uses memory."""
        memory.record_stream(self._stream)

    def do(self, work: Callable[[], None], payloads: Sequence[Tensor]) -> None:
        """Enqueue work that reads payloads, behind the last use of the memory, and behind what made the payloads."""
        current = torch.cuda.current_stream(self._stream.device)
        if self._used is None:
            self._stream.wait_stream(current)
        else:
            self._stream.wait_event(self._used)
        with torch.cuda.stream(self._stream):
            work()
            self._done = self._stream.record_event()
        for payload in payloads:
            self.keep(payload)

    def wait_for_work(self) -> None:
        """Let the current stream wait for it."""
        torch.cuda.current_stream(self._stream.device).wait_event(self._done)

    def note_end_of_use(self) -> None:
        """The memory may be changed once the current stream has come here."""
        self._used = torch.cuda.current_stream(self._stream.device).record_event()


def _storage(x: Any) -> int | None:
    """The address of the memory that a tensor is in."""
    if type(x) not in (Tensor, nn.Parameter):
        return None
    try:
        return x.untyped_storage().data_ptr() or None
    except NotImplementedError:  # for tensors of torch.func and sparse ones, which are not in ours
        return None


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _distinct(weights: Weights) -> list[CompressedWeight]:
    return list({id(weight._held): weight for weight in weights}.values())


def _by_device(weights: Weights) -> list[list[CompressedWeight]]:
    devices = {weight.device: None for weight in weights}
    return [[weight for weight in weights if weight.device == device] for device in devices]


def _parameter(weight: CompressedWeight, values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.t() if weight._is_transposed else values, requires_grad=False)
