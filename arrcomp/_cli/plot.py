"""The command `arrcomp plot`."""

import math
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .._arguments import shortened, shown
from .._files import Content
from .._files.content import check_suffix
from .._files.replacing import replacing
from ..codecs import Codec, ErrorBounded
from . import figure, slices
from .choice import PREDICTORS
from .common import Force, MaxNbytes, Quiet, Threads, one_line_errors, print_line
from .files import read_any
from .measure import Array
from .page import Example, described
from .program import did_you_mean
from .standard import STANDARD, output_file
from .words import count_text, shape_text

_MOST_HISTOGRAMS = 6
_FLOATS = ErrorBounded(abs=1.0)  # its dtypes are floats
_DEFAULT_BOUND = 1e-3  # of the slice, by the range
_SLICE = "of the picture of a slice"
_TENSOR = "The array to show. [default: the largest array of floats]"


@described(
    Example("The largest arrays of a model", "arrcomp plot model.safetensors -o model.png"),
    Example("One array of it", "arrcomp plot model.safetensors -o head.png --tensor head.weight"),
    Example(
        "A field, and the error of a slice of it", "arrcomp plot field.npy -o field.png --rel 1e-4 --predictor auto"
    ),
)
def plot(
    source: Annotated[Path, Argument(metavar="FILE", help="A file of arrays, compressed or not.")],
    output: Annotated[Path, Option("-o", "--output", metavar="OUT", help="The .png file to write, or -.")],
    tensor: Annotated[str | None, Option(metavar="NAME", help=_TENSOR)] = None,
    absolute: Annotated[float | None, Option("--abs", metavar="E", help=f"Bound {_SLICE}: |x - y| <= E.")] = None,
    relative: Annotated[
        float | None,
        Option("--rel", metavar="R", help=f"Bound {_SLICE}: R times the range. [default: {_DEFAULT_BOUND}]"),
    ] = None,
    predictor: Annotated[str | None, Option(metavar=PREDICTORS, help=f"Predictor {_SLICE}. [default: none]")] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Plot the distribution of values, and bits a value against errors, for error bounds and for quantizers.

    The distributions are those of the largest arrays, the rates those of the named or largest array. Large arrays are
    sampled: a million values in evenly spaced ranges.

    If that array has two or more dimensions, pictures show the slice in its middle, along the last two axes: as it is,
    as error-bounded compression of the whole array gives it back, and the error by the bound.
    """
    with one_line_errors():
        if absolute is None and relative is None:
            relative = _DEFAULT_BOUND
        codec = ErrorBounded(abs=absolute, rel=relative, predictor=predictor)  # type: ignore[arg-type]
        with output_file(output, ".png", source, force=force) as writable:
            check_suffix(writable, (".png",))
            verdict = _plotted(source, writable, tensor, codec, threads, max_nbytes)
        if not quiet and output != STANDARD:
            print_line(f"wrote {output}: {verdict}")


def _plotted(
    source: Path, output: Path, tensor: str | None, codec: Codec, threads: int | None, max_nbytes: int | None
) -> str:
    """Write the plot. Returns what is on it, in words."""
    content = read_any(source, max_nbytes, threads)
    names = [tensor] if tensor is not None else _largest(content)
    arrays = {name: _values(source, content, name) for name in names}
    arrays = {name: x for name, x in arrays.items() if x.size}
    if not arrays:
        raise ValueError(f"{source}: expected an array of floats with finite values, got none")
    name, x = next(iter(arrays.items()))
    dtype, shape = content.info(name)
    sampled = f", {x.size:,} of its values" if x.size < math.prod(shape) else ""
    title = f"{name} of {source.name}: {dtype} {shape_text(shape)}{sampled}"
    shown = slices.compressed_slice(content.arrays[name], codec, threads) if slices.has_slice(shape) else None
    with replacing(output) as temporary:
        figure.draw(temporary, title, arrays, x, threads, shown)
    distributions, rates = f"distributions of {count_text(len(arrays))}", f"bits against error of {name}"
    return f"{distributions}, and {rates}" if shown is None else f"{distributions}, {rates}, and a slice of it"


def _largest(content: Content[Array]) -> list[str]:
    """Names of the largest arrays of floats, the largest first."""
    infos = {name: content.info(name) for name in content.arrays}
    sizes = {name: math.prod(info.shape) for name, info in infos.items() if _FLOATS.takes_numpy(info.dtype)}
    return sorted(sizes, key=lambda name: -sizes[name])[:_MOST_HISTOGRAMS]


def _values(source: Path, content: Content[Array], name: str) -> Array:
    """A sample of an array's finite values."""
    if name not in content.arrays:
        hint = did_you_mean(name, content.arrays)
        raise ValueError(f"--tensor: expected the name of an array of {source}, got {shown(name)}{hint}")
    array = content.arrays[name]
    if not _FLOATS.takes_numpy(array.dtype):
        expected = f"dtype {', '.join(_FLOATS.dtypes or ())}"
        raise ValueError(f"--tensor {shortened(name)}: expected {expected}, got {shortened(str(array.dtype))}")
    return figure.sample(array)
