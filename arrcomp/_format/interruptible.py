"""Calls of other libraries that take long and handle no signals meanwhile."""

import _thread
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

_LEAST_NBYTES = 1 << 20  # of work that a thread of its own pays for
_SECONDS_BETWEEN_LOOKS = 0.05  # at signals, where another thread got one that this one waits for

T = TypeVar("T")


def interruptible(call: Callable[[], T], nbytes: int) -> T:
    """`call()`, on a thread of its own where it may take long and this is the main thread, which handles signals.

    When a handler raises, as Ctrl-C's does, its exception is raised at once. The call cannot be stopped: it goes on
    until it or the process ends, keeps until then what it refers to, and what it returns is dropped.

    Args:
        call: releases the GIL, and writes to nothing that its caller sees.
        nbytes: how much it works on.

    Raises:
        MemoryError: there was no memory for a thread.
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

    # Not threading.Thread, whose start waits for ever for a thread that finds no memory for its first steps.
    life = _Life()
    is_alive = weakref.ref(life)
    try:
        _thread.start_new_thread(settle, (life,))
    except RuntimeError:  # no threads are left, or the interpreter is about to end
        return call()
    del life
    while not ended.acquire(timeout=_SECONDS_BETWEEN_LOOKS) and is_alive() is not None:
        pass
    if results:
        return results[0]
    raise errors[0] if errors else MemoryError("no memory for a thread")


class _Life:
    """Lives as long as the thread that was given it, even where that ended before its first step."""
