"""A progress bar on standard error, where that is a terminal or a notebook."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress(title: str, count: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar for `count` arrays while the block runs.

    Args:
        title: what is being done.
        count: how many arrays there are.
        shown: whether there is a bar at all, where somebody can watch it.

    Yields:
        What is to be called with the bytes of an array when that is done.

    Raises:
        ImportError: rich is not installed.
    """
    if not shown:
        yield lambda nbytes: None
        return
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError as missing:
        raise ImportError(f"a progress bar needs rich ({missing}): pip install arrcomp[cli]") from None
    arrays = rich.TextColumn("{task.fields[done]} of {task.fields[count]} arrays")
    columns = (rich.TextColumn(title), rich.BarColumn(), arrays)
    times = (rich.DownloadColumn(), rich.TransferSpeedColumn(), rich.TimeElapsedColumn())
    console = Console(stderr=True)
    watched = console.is_terminal or console.is_jupyter
    with rich.Progress(*columns, *times, console=console, transient=True, disable=not watched) as bar:
        task = bar.add_task(title, total=None, done=0, count=count)
        done = 0

        def advance(nbytes: int) -> None:
            nonlocal done
            done += 1
            bar.update(task, advance=nbytes, done=done)

        yield advance
