"""The command `arrcomp decompress`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import _files
from .._files import Content, Lazy
from .._files.progress import progress
from . import measure
from .common import Force, Json, MaxNbytes, Output, Quiet, Threads, check_json_has_room, one_line_errors, show, stored
from .measure import Array, Measurement
from .page import Example, described
from .standard import STANDARD, input_file, output_file


@described(
    Example("One array", "arrcomp decompress x.arrcomp -o back.npy"),
    Example("A model, in place of the last one", "arrcomp decompress small.safetensors -o model.safetensors --force"),
    Example("From one program to another", "cat x.arrcomp | arrcomp decompress - -o - > back.npy"),
)
def decompress(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A .arrcomp or .safetensors file of compressed arrays; - for standard input, one stream."
        ),
    ],
    output: Output,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress a file into a .npy (one array), .npz or .safetensors file, one array after the other.

    With - as OUT the array goes to standard output, as a .npy file.
    """
    rows: dict[str, Measurement] = {}
    with one_line_errors():
        check_json_has_room(as_json, output)
        with (
            input_file(source, ".arrcomp") as readable,
            output_file(output, ".npy", source, force=force) as writable,
            _files.open_file(readable, max_nbytes=max_nbytes) as file,
            progress("decompressing", len(file), not quiet) as done,
        ):

            def restored(name: str) -> Array:
                array, rows[name] = measure.decode(*stored(file, name), threads=threads)
                done(array.nbytes)
                return array

            _files.write_arrays(writable, Content(Lazy(file, restored, file.info), file.metadata))
        show([rows[name] for name in file], as_json=as_json, quiet=quiet or output == STANDARD)
