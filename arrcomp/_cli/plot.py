"""The command `arrcomp plot`."""

import math
from pathlib import Path
from typing import Annotated

import typer

from .. import _files
from .._files import Content
from .._files.content import check_suffix
from .._files.replacing import replacing
from ..codecs import ErrorBounded
from . import figure
from .common import Force, MaxNbytes, Threads, one_line_errors
from .measure import Array
from .page import Example, described
from .program import did_you_mean
from .standard import output_file

_MOST_HISTOGRAMS = 6
_FLOATS = ErrorBounded(abs=1.0)  # takes them


@described(
    Example("The largest arrays of a model", "arrcomp plot model.safetensors -o model.png"),
    Example("One array of it", "arrcomp plot model.safetensors -o head.png --tensor head.weight"),
)
def plot(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file of arrays, compressed or not.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="The .png file to write, or -.")],
    tensor: Annotated[
        str | None, typer.Option(metavar="NAME", help="The array to show; without it the largest of floats.")
    ] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    force: Force = False,
) -> None:
    """Draw how values are distributed, and how many bits they take at which error, by bounds and by quantizers.

    The distributions are those of the largest arrays, the rates those of the one named or of the largest. Of large
    arrays, pieces from all over them are taken, a million values together.
    """
    with one_line_errors(), output_file(output, ".png", source, force=force) as writable:
        check_suffix(writable, (".png",))
        content = _files.read_any(source, max_nbytes)
        names = [tensor] if tensor is not None else _largest(content)
        arrays = {name: _values(source, content, name) for name in names}
        arrays = {name: x for name, x in arrays.items() if x.size}
        if not arrays:
            raise ValueError(f"{source} has no array of floats with a finite value, which there must be")
        name, x = next(iter(arrays.items()))
        dtype, shape = content.look(name)
        about = f"{dtype} {' x '.join(map(str, shape)) or 'scalar'}"
        pieces = f", {x.size:,} of its values" if x.size < math.prod(shape) else ""
        with replacing(writable) as temporary:
            figure.draw(temporary, f"{name} of {source.name}: {about}{pieces}", arrays, x, threads)


def _largest(content: Content[Array]) -> list[str]:
    """Names of the largest arrays of floats, the largest first."""
    looks = {name: content.look(name) for name in content.arrays}
    sizes = {name: math.prod(shape) for name, (dtype, shape) in looks.items() if _FLOATS.takes_numpy(dtype)}
    return sorted(sizes, key=lambda name: -sizes[name])[:_MOST_HISTOGRAMS]


def _values(source: Path, content: Content[Array], name: str) -> Array:
    """A sample of an array's finite values."""
    if name not in content.arrays:
        raise ValueError(f"--tensor {name}: {source} has no such array{did_you_mean(name, content.arrays)}")
    array = content.arrays[name]
    if not _FLOATS.takes_numpy(array.dtype):
        raise ValueError(f"--tensor {name}: dtype {array.dtype}; {', '.join(_FLOATS.dtypes or ())} are allowed")
    return figure.sample(array)
