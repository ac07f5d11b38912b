"""Which files a command reads, and which file it writes for each of them."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .._files.content import check_exists
from ..errors import ArrcompError
from .standard import STANDARD, check_writable


class Job(NamedTuple):
    """A file to read, and the file to write for it."""

    source: Path
    output: Path
    is_one_of_several: bool = False  # or the only one in a folder: its output may need a new folder

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Name the file in errors that do not, if it is one of several."""
        try:
            yield
        except (ArrcompError, TypeError, ValueError) as error:
            if self.is_one_of_several and str(self.source) not in str(error):
                error.args = (f"{self.source}: {error}",)
            raise

    def make_folder(self) -> None:
        """Make the folder of the output, if it is one of several."""
        if self.is_one_of_several:
            self.output.parent.mkdir(parents=True, exist_ok=True)


def planned(
    sources: Sequence[Path],
    output: Path | None,
    *,
    output_of: Callable[[Path], Path],
    takes: Callable[[Path], bool],
    force: bool,
) -> list[Job]:
    """The jobs of a command. Without `output` files are written beside their sources.

    Several sources, and those in a folder, are written into the folder `output`, below which they keep their paths in
    the folder that was given.

    Args:
        sources: files and folders, or "-" alone.
        output: a file or, if it exists or there are several sources, a folder; "-" for standard output.
        output_of: the name of the file that is written for a source.
        takes: whether a file in a folder is one to read.
        force: whether files may be overwritten.

    Raises:
        ValueError: "-" is not the only source; a folder has no such files; or two sources have the same output.
        FileNotFoundError: a source does not exist.
        FileExistsError: an output exists, without `force`, or `output` is no folder.
    """
    single = len(sources) == 1 and not sources[0].is_dir()
    if STANDARD in sources or output == STANDARD:
        if not single:
            raise ValueError("-: expected one file as IN where - is IN or OUT, got several")
        return [Job(sources[0], output or STANDARD)]
    for source in sources:
        if not source.is_dir():
            check_exists(source)
    if single and output is not None and not output.is_dir():
        return [Job(sources[0], output)]
    if output is not None and output.exists() and not output.is_dir():
        raise FileExistsError(f"{output}: expected a folder for several files, got a file")
    jobs = []
    for source in sources:
        inside = _files_in(source, takes) if source.is_dir() else [source]
        for path in inside:
            target = output_of(path)
            if output is not None:
                target = output / (target.relative_to(source) if source.is_dir() else target.name)
            jobs.append(Job(path, target, not single))
    twice = [path for path, count in Counter(job.output for job in jobs).items() if count > 1]
    if twice:
        first, second, *_ = (str(job.source) for job in jobs if job.output == twice[0])
        raise ValueError(f"{twice[0]}: expected one file to write there, got {first} and {second}")
    for job in jobs:
        check_writable(job.output, job.source, force=force)
    return jobs


def _files_in(folder: Path, takes: Callable[[Path], bool]) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and takes(path))
    if not found:
        raise ValueError(f"{folder}: expected files that the command reads, got a folder without any")
    return found
