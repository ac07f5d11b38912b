"""The command `arrcomp info`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import _files
from .._files.progress import progress
from .common import Json, Quiet, one_line_errors, show, stored
from .page import Example, described
from .standard import input_file


@described(
    Example("The arrays of a file", "arrcomp info small.safetensors"),
    Example("The same without reading the whole file", "arrcomp info --no-check small.safetensors"),
    Example("Whether it is undamaged, for a script", "arrcomp info --quiet x.arrcomp && echo undamaged"),
    Example("For another program", "arrcomp info --json small.safetensors > small.json"),
)
def info(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .arrcomp or .safetensors file; - for standard input, one stream.")
    ],
    check: Annotated[bool, typer.Option(help="Check the checksums too, which reads the whole file.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the arrays of a compressed file: dtype, shape, codec, and bytes in the file."""
    with one_line_errors(), input_file(source, ".arrcomp") as readable, _files.open_file(readable) as file:
        rows = []
        with progress("reading", len(file), not quiet) as done:
            for name in file:
                _, row = stored(file, name, check=check)
                rows.append(row)
                done(row.spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet, short=False)
