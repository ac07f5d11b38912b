"""Locks of open files: they end with the process, whatever ends it."""

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock a file, or with `wait` wait until it can be locked. False where others have it, or there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # others have it, or the file system has no locks
        return False
    return True


def unlock(descriptor: int) -> None:
    """Unlock a file that `lock` locked, for processes that were forked meanwhile too."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
