"""Calls of other libraries that take long and handle no signals meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
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
    """
    if nbytes < _LEAST_NBYTES or threading.current_thread() is not threading.main_thread():
        return call()
    outcome: Future[T] = Future()
    thread = threading.Thread(target=_settle, args=(outcome, call), name="arrcomp", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no threads are left, or the interpreter is about to end
        return call()
    while thread.is_alive():
        thread.join(_SECONDS_BETWEEN_LOOKS)
    return outcome.result()


def _settle(outcome: Future[T], call: Callable[[], T]) -> None:
    try:
        outcome.set_result(call())
    except BaseException as error:
        outcome.set_exception(error)
