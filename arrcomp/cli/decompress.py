"""The command `arrcomp decompress`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import files, measure
from ..files import Content, Lazy
from ..measure import Array, Measurement
from ..progress import progress
from .common import Json, MaxSize, Output, Threads, check_distinct, one_line_errors, show, stored


def decompress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .arrcomp or .safetensors file of compressed arrays.")],
    output: Output,
    threads: Threads = None,
    max_size: MaxSize = None,
    as_json: Json = False,
) -> None:
    """Decompress a file into a .npy (one array), .npz or .safetensors file, one array after the other."""
    with one_line_errors(), files.open_file(source, max_size=max_size) as file:
        check_distinct(source, output)
        rows: dict[str, Measurement] = {}
        with progress("decompressing", len(file), True) as done:

            def restored(name: str) -> Array:
                array, rows[name] = measure.decode(*stored(file, name), threads=threads)
                done(array.nbytes)
                return array

            files.write_arrays(output, Content(Lazy(file, restored, file.look), file.metadata))
        show([rows[name] for name in file], as_json)
