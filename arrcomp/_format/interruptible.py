"""Long calls of other libraries, which handle no signals meanwhile."""

import _thread
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

_LEAST_NBYTES = 1 << 20  # of work for a thread of its own
_SIGNAL_SECONDS = 0.05  # between checks for signals, which another thread may have received

T = TypeVar("T")


def interruptible(call: Callable[[], T], nbytes: int) -> T:
    """`call()`, which processes so many bytes, releases the GIL, and writes to no memory of its caller.

    The main thread, which handles signals, runs long calls on another thread. If a signal handler raises, as Ctrl-C's
    does, its exception is raised at once. The call cannot be stopped: it goes on until it or the process ends, and
    keeps its objects until then. Its result is dropped. Raises MemoryError where there is none for a thread.
    """
    if nbytes < _LEAST_NBYTES or threading.current_thread() is not threading.main_thread():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def settle(_: "_Life") -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.release()

    # Not threading.Thread: its start waits for ever if the thread finds no memory for its first steps.
    life = _Life()
    is_alive = weakref.ref(life)
    try:
        _thread.start_new_thread(settle, (life,))
    except RuntimeError:  # no threads are left, or the interpreter is about to end
        return call()
    del life
    while not ended.acquire(timeout=_SIGNAL_SECONDS) and is_alive() is not None:
        pass
    if results:
        return results[0]
    raise errors[0] if errors else MemoryError("no memory for a thread")


class _Life:
    """An object that lives as long as its thread, even if that ends before its first step."""
