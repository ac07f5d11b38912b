"""Operations one after the other, on a thread of their own."""

import datetime
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist

from .._wire import Steps, run_steps

_Work: Any = dist.Work


class Queued(_Work):  # type: ignore[misc]
    """The `Work` of an operation in a queue, which goes on without anybody waiting for it."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result
        self._done = threading.Event()
        self._error: Exception | None = None
        self._future: Any = torch.futures.Future()

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait until the result is there.

        Raises:
            RuntimeError: it was not in time. What the operation raised, here too.
        """
        # PyTorch's C++ says 0 for "as long as it takes".
        if not self._done.wait(timeout.total_seconds() if timeout else None):
            raise RuntimeError(f"timeout={timeout}: the operation is not done yet")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Whether the operation has ended well."""
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """What the operation raised."""
        return self._error

    def get_future(self) -> Any:
        """A future of the result."""
        return self._future

    def result(self) -> Any:
        """The result: tensors that have it once this work is done."""
        return self._result

    def run(self, steps: Steps[Any], inference: bool) -> None:
        """Do the operation.

        Args:
            steps: the operation.
            inference: whether the caller is in `torch.inference_mode`, which each thread has for itself.
        """
        try:
            with torch.inference_mode(inference):
                run_steps(steps)
        except Exception as error:
            self._error = error
        self._done.set()
        if self._error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(self._error)


class Queue:
    """A thread that does operations in the order in which they come: all ranks start theirs in the same one.

    What a future's callbacks add is done at once, before the next operation, as all ranks do it.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "arrcomp-all-reduce", self._note_thread)
        self._thread: int | None = None

    def add(self, steps: Steps[Any], result: Any) -> Queued:
        """Do an operation when its turn comes.

        Raises:
            RuntimeError: the queue is closed.
        """
        work = Queued(result)
        inference = torch.is_inference_mode_enabled()
        if threading.get_ident() == self._thread:
            work.run(steps, inference)
        else:
            self._executor.submit(work.run, steps, inference)
        return work

    def close(self, wait: bool) -> None:
        """Take no more operations; wait for those that are there, or drop what has not begun."""
        self._executor.shutdown(wait=wait, cancel_futures=not wait)

    def _note_thread(self) -> None:
        self._thread = threading.get_ident()
