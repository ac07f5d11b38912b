"""The `Work` of an asynchronous operation."""

import datetime
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._wire import Steps, run_steps

_Work: Any = dist.Work


def run(steps: Steps[Any], touched: Sequence[Tensor], result: Any, async_op: bool) -> "Pending | None":
    """Run an operation that reads or writes the `touched` tensors; with `async_op` only start it."""
    if async_op:
        return Pending(steps, touched, result)
    run_steps(steps)
    return None


class Pending(_Work):  # type: ignore[misc]
    """The `Work` of a collective operation with several steps.

    On CUDA the constructor enqueues all steps on a side stream, after the current stream's work. `wait` makes the
    current stream wait for them and does not block the host. On the CPU only the first exchange runs in the background.
    `wait` does the rest, and all ranks of the group must call it in the same order.
    """

    def __init__(self, steps: Steps[Any], touched: Sequence[Tensor], result: Any) -> None:
        super().__init__()
        self._steps, self._result = steps, result
        self._current: Any = None
        self._stream: Any = None
        if touched[0].is_cuda:
            self._future: Any = torch.futures.Future(devices=[touched[0].device])
            self._enqueue(touched)
        else:
            self._future = torch.futures.Future()
            self._advance()

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the result (on CUDA: make the current stream wait). The group's timeout applies, not `timeout`."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
            return True
        while not self._future.done():
            self._current.wait()
            self._advance()
        return True

    def is_completed(self) -> bool:
        """Whether the result is available."""
        done: bool = self._future.done() if self._stream is None else self._stream.query()
        return done

    def get_future(self) -> Any:
        """A future of the result; on the CPU `wait` completes it."""
        return self._future

    def result(self) -> Any:
        """The tensors of the result, which they hold after `wait`."""
        return self._result

    def _enqueue(self, touched: Sequence[Tensor]) -> None:
        device = touched[0].device
        self._stream = _side_stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            run_steps(self._steps)
            for x in touched:  # so that the allocator does not reuse their memory too early
                x.record_stream(self._stream)
            self._future.set_result(self._result)

    def _advance(self) -> None:
        try:
            self._current = next(self._steps)
        except StopIteration:
            self._future.set_result(self._result)


_new_stream: Any = torch.cuda.Stream
_side_streams: dict[torch.device, Any] = {}


def _side_stream(device: torch.device) -> Any:
    """One stream for each device, so that its operations run in the order in which all ranks start them."""
    if device not in _side_streams:
        _side_streams.setdefault(device, _new_stream(device))  # thread-safe: the first stream is kept
    return _side_streams[device]
