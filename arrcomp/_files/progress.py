"""A progress bar on standard error, if that is a terminal or a notebook."""

import contextlib
import sys
from collections.abc import Callable, Iterator

_LEAST_WIDTH = 80  # of a terminal with all columns
_COLOUR = "cyan"  # Rich's own red means an error to many


@contextlib.contextmanager
def progress(title: str, count: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar for `count` arrays while the block runs, if `shown`. Yields what to call with each array's bytes."""
    if not shown:
        yield lambda nbytes: None
        return
    try:
        from rich import filesize
        from rich import progress as rich
        from rich.console import Console
    except ImportError as missing:
        raise ImportError(f"a progress bar needs rich ({missing}): pip install arrcomp[cli]") from None
    console = Console(stderr=True)
    # Rich's settings may force colours for any output. A log needs no bar.
    watched = (sys.stderr is not None and sys.stderr.isatty()) or console.is_jupyter
    counted = rich.TextColumn("{task.completed} of {task.total} arrays")
    columns: list[rich.ProgressColumn] = [rich.TextColumn(title), counted]
    if console.width >= _LEAST_WIDTH:
        columns.insert(1, rich.BarColumn(complete_style=_COLOUR, finished_style=_COLOUR, pulse_style=_COLOUR))
        columns += [rich.TextColumn("{task.fields[size]}"), rich.TimeElapsedColumn()]
    with rich.Progress(*columns, console=console, transient=True, disable=not watched) as bar:
        task = bar.add_task(title, total=count, size="")
        done = 0

        def advance(nbytes: int) -> None:
            nonlocal done
            done += nbytes
            bar.update(task, advance=1, size=filesize.decimal(done))

        yield advance
