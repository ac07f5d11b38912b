"""Operations that run one after the other on a background thread."""

import datetime
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist

from .._wire import Steps, run_steps

_Work: Any = dist.Work


class Queued(_Work):  # type: ignore[misc]
    """The `Work` of a queued operation."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result, self._done = result, threading.Event()
        self._error: Exception | None = None
        self._future: Any = torch.futures.Future()

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the result. Errors of the operation are raised, and RuntimeError when the timeout expires."""
        # PyTorch's C++ code passes 0 for no timeout.
        if not self._done.wait(timeout.total_seconds() if timeout else None):
            raise RuntimeError(f"timeout: expected a result within {timeout}, got none")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Whether the operation has ended without an error."""
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """The error that the operation raised, or None."""
        return self._error

    def get_future(self) -> Any:
        """A future of the result."""
        return self._future

    def result(self) -> Any:
        """The tensors of the result, which they hold after `wait`."""
        return self._result

    def run(self, steps: Steps[Any], inference: bool) -> None:
        """Run the operation; `inference`: whether its caller is in `torch.inference_mode`, which is thread-local."""
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
    """A thread that runs operations in the order in which they were added, which is the same on all ranks.

    Operations that a future's callback adds run at once, before the next one, on all ranks.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "arrcomp-collectives", self._note_thread)
        self._thread: int | None = None

    def add(self, steps: Steps[Any], result: Any) -> Queued:
        """Add an operation. It is a RuntimeError if the queue is closed."""
        work = Queued(result)
        inference = torch.is_inference_mode_enabled()
        if threading.get_ident() == self._thread:
            work.run(steps, inference)
        else:
            self._executor.submit(work.run, steps, inference)
        return work

    def close(self, wait: bool) -> None:
        """Refuse further operations, and either wait for the queued ones or drop those that have not started."""
        self._executor.shutdown(wait=wait, cancel_futures=not wait)

    def _note_thread(self) -> None:
        self._thread = threading.get_ident()
