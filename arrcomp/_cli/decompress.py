"""The commands `arrcomp decompress`, `arrcomp info` and `arrcomp verify`, which read compressed files."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .. import _files
from .._files import Content, Lazy
from .._files.progress import progress
from . import measure
from .common import (
    Force,
    Json,
    MaxNbytes,
    Output,
    Quiet,
    Threads,
    VerificationError,
    check_json_has_room,
    one_line_errors,
    require,
    show,
    stored,
)
from .measure import Array, Measurement
from .page import Example, described
from .standard import STANDARD, input_file, output_file

_IN = "A .arrcomp or .safetensors file of compressed arrays; - for standard input, one stream."
_FILE = "A .arrcomp or .safetensors file; - for standard input, one stream."


@described(
    Example("One array", "arrcomp decompress x.arrcomp -o back.npy"),
    Example("A model, in place of the last one", "arrcomp decompress small.safetensors -o model.safetensors --force"),
    Example("From one program to another", "cat x.arrcomp | arrcomp decompress - -o - > back.npy"),
)
def decompress(
    source: Annotated[Path, Argument(metavar="IN", help=_IN)],
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
                array, rows[name] = measure.decode(*stored(file, name), threads)
                done(array.nbytes)
                return array

            _files.write_arrays(writable, Content(Lazy(file, restored, file.info), file.metadata))
        show([rows[name] for name in file], as_json=as_json, quiet=quiet or output == STANDARD)


@described(
    Example("The arrays of a file", "arrcomp info small.safetensors"),
    Example("The same without reading the whole file", "arrcomp info --no-check small.safetensors"),
    Example("Whether it is undamaged, for a script", "arrcomp info --quiet x.arrcomp && echo undamaged"),
    Example("For another program", "arrcomp info --json small.safetensors > small.json"),
)
def info(
    source: Annotated[Path, Argument(metavar="FILE", help=_FILE)],
    check: Annotated[bool, Option(help="Check the checksums too, which reads the whole file.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the arrays of a compressed file: dtype, shape, codec, and bytes in the file."""
    with one_line_errors(), input_file(source, ".arrcomp") as readable, _files.open_file(readable) as file:
        rows = []
        with progress("reading", len(file), not quiet) as done:
            for name in file:
                rows.append(stored(file, name, check=check)[1])
                done(rows[-1].spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet, short=False)


@described(
    Example("Whether the guarantee holds", "arrcomp verify x.npy x.arrcomp"),
    Example("For a script", "arrcomp verify --quiet model.safetensors small.safetensors && echo verified"),
    Example("The largest errors, as JSON", "arrcomp verify --json model.safetensors small.safetensors"),
    failed="a value breaks its guarantee, or the files have different arrays",
)
def verify(
    source: Annotated[Path, Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, Argument(metavar="OUT", help="The compressed file.")],
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress OUT and compare it with IN: every value must keep its codec's guarantee."""
    with one_line_errors(), _files.open_file(compressed, max_nbytes=max_nbytes) as file:
        original = _files.read_arrays(source, max_nbytes).arrays
        if set(original) != set(file):
            odd = ", ".join(sorted(set(original) ^ set(file)))
            raise VerificationError(f"{compressed}: expected the arrays of {source}, got others: {odd}")
        rows = []
        with progress("verifying", len(file), not quiet) as done:
            for name in file:
                rows.append(measure.check(original[name], *stored(file, name), threads))
                done(rows[-1].spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet)
        require(rows)
