"""The command `arrcomp verify`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import _files
from .._files.progress import progress
from . import measure
from .common import Json, MaxNbytes, Quiet, Threads, VerificationError, one_line_errors, require, show, stored
from .page import Example, described


@described(
    Example("Whether the promise was kept", "arrcomp verify x.npy x.arrcomp"),
    Example("For a script", "arrcomp verify --quiet model.safetensors small.safetensors && echo kept"),
    Example("The largest errors, as JSON", "arrcomp verify --json model.safetensors small.safetensors"),
    failed="a value is beyond its promise, or one file has other arrays",
)
def verify(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file that was made of it.")],
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress OUT and compare it with IN: every value must be as its codec promises, every bit of a lossless one."""
    with one_line_errors(), _files.open_file(compressed, max_nbytes=max_nbytes) as file:
        original = _files.read_arrays(source, max_nbytes).arrays
        if set(original) != set(file):
            odd = sorted(set(original) ^ set(file))
            raise VerificationError(f"only one of {source} and {compressed} has the arrays {', '.join(odd)}")
        rows = []
        with progress("verifying", len(file), not quiet) as done:
            for name in file:
                compressed_array, row = stored(file, name)
                rows.append(measure.check(original[name], compressed_array, row, threads=threads))
                done(row.spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet)
        require(rows)
