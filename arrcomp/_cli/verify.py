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
    Example("Whether the guarantee holds", "arrcomp verify x.npy x.arrcomp"),
    Example("For a script", "arrcomp verify --quiet model.safetensors small.safetensors && echo verified"),
    Example("The largest errors, as JSON", "arrcomp verify --json model.safetensors small.safetensors"),
    failed="a value breaks its guarantee, or the files have different arrays",
)
def verify(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file.")],
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress OUT and compare it with IN: every value must keep its codec's guarantee."""
    with one_line_errors(), _files.open_file(compressed, max_nbytes=max_nbytes) as file:
        original = _files.read_arrays(source, max_nbytes).arrays
        if set(original) != set(file):
            odd = sorted(set(original) ^ set(file))
            names = ", ".join(odd)
            raise VerificationError(f"{compressed}: expected the arrays of {source}, got others: {names}")
        rows = []
        with progress("verifying", len(file), not quiet) as done:
            for name in file:
                compressed_array, row = stored(file, name)
                rows.append(measure.check(original[name], compressed_array, row, threads=threads))
                done(row.spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet)
        require(rows)
