"""The command line.

Exit codes: 0 well; 1 a bound is broken or bits differ; 2 wrong usage or unusable input; 3 a corrupt stream, or one of a
newer format; 130 interrupted.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn
except ImportError as missing:
    raise ImportError(f"the command line needs typer and rich ({missing}): pip install arrcomp[cli]") from None

from numpy.typing import NDArray

from . import dtypes, files, measure, tables
from .codecs import Codec, Lossless, codec_from_config, codecs
from .compressed import Compressed
from .errors import ArrcompError, CorruptStreamError, FormatVersionError, UnknownCodecError
from .measure import Measurement

VERIFICATION_FAILED = 1
USAGE = 2
CORRUPT = 3
INTERRUPTED = 130

T = TypeVar("T")

app = typer.Typer(
    name="arrcomp",
    help=f"Compress arrays in {', '.join(files.ARRAY_SUFFIXES)} files.",
    epilog="Exit codes: 0 well; 1 a bound is broken or bits differ; 2 wrong usage or unusable input; "
    "3 a corrupt stream, or one of a newer format; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="OUT", help="File to write; the suffix says what kind.")
]
Threads = Annotated[int | None, typer.Option(metavar="N", help="Threads on the CPU; all cores if not given.")]


class VerificationError(ArrcompError):
    """What came back breaks the codec's promise."""


@app.command("compress")
def compress_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .npy, .npz or .safetensors file.")],
    output: Output,
    codec: Annotated[str, typer.Option(help="See `arrcomp codecs`.")] = Lossless.name,
    absolute: Annotated[float | None, typer.Option("--abs", metavar="E", help="Bound: |x - y| <= E.")] = None,
    relative: Annotated[float | None, typer.Option("--rel", metavar="R", help="Bound: R times the range.")] = None,
    pointwise: Annotated[float | None, typer.Option(metavar="P", help="Bound: P times each |x|.")] = None,
    speed: Annotated[str | None, typer.Option(metavar="default|fast", help="A better ratio, or faster.")] = None,
    others: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of the codec, as bits=4.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="For codecs that round at random.")] = None,
    threads: Threads = None,
    device: Annotated[str, typer.Option(metavar="cpu|cuda[:N]", help="Where to compress.")] = "cpu",
    check: Annotated[bool, typer.Option(help="Decompress and compare before the file is written.")] = True,
) -> None:
    """Compress the arrays of a file.

    One array (.npy) becomes one stream (.arrcomp); several become a .safetensors file of streams.

    Arrays of a dtype that the codec does not take, as integers by error-bounded, are kept losslessly.
    """
    with _one_line_errors():
        named = {"abs": absolute, "rel": relative, "pointwise": pointwise, "speed": speed}
        chosen = _codec(codec, named | _parameters(others or []))
        cuda = _cuda_index(device)
        content = files.read_arrays(source)
        _check_output(source, output, content.arrays)

        def work(name: str, array: NDArray[Any]) -> Measurement:
            suited = chosen if _takes(chosen, array) else Lossless()
            encoded = measure.encode(name, array, suited, threads=threads, cuda=cuda, seed=seed)
            return measure.check(array, encoded, threads=threads) if check else encoded

        rows = _each("compressing", content.arrays, work, lambda array: array.nbytes)
        _require(rows)
        results = {row.name: row.compressed for row in rows}
        files.write_compressed(output, files.Content(results, content.metadata))
        tables.print_table(tables.measurements_table(rows))


@app.command("decompress")
def decompress_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .arrcomp or .safetensors file of compressed arrays.")],
    output: Output,
    threads: Threads = None,
) -> None:
    """Decompress a file into a .npy (one array), .npz or .safetensors file."""
    with _one_line_errors():
        content = files.read_compressed(source)
        _check_distinct(source, output)

        def work(name: str, compressed: Compressed) -> tuple[NDArray[Any], Measurement]:
            return measure.decode(name, compressed, threads=threads)

        pairs = _each("decompressing", content.arrays, work, _source_nbytes)
        restored = {row.name: array for array, row in pairs}
        files.write_arrays(output, files.Content(restored, content.metadata))
        tables.print_table(tables.measurements_table([row for _, row in pairs]))


@app.command()
def info(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A .arrcomp or .safetensors file.")],
) -> None:
    """Show what a compressed file holds, and check its checksums."""
    with _one_line_errors():
        content = files.read_compressed(source)
        tables.print_table(tables.compressed_table(list(content.arrays.items())))


@app.command()
def verify(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file that was made of it.")],
    threads: Threads = None,
) -> None:
    """Decompress OUT and compare it with IN: exit code 1 if a bound is broken or, of lossless codecs, a bit differs."""
    with _one_line_errors():
        original = files.read_arrays(source).arrays
        content = files.read_compressed(compressed)
        if set(original) != set(content.arrays):
            odd = sorted(set(original) ^ set(content.arrays))
            raise VerificationError(f"only one of {source} and {compressed} has the arrays {', '.join(odd)}")

        def work(name: str, item: Compressed) -> Measurement:
            encoded = Measurement(name, item, _source_nbytes(item))
            return measure.check(original[name], encoded, threads=threads)

        rows = _each("verifying", content.arrays, work, _source_nbytes)
        tables.print_table(tables.measurements_table(rows))
        _require(rows)


@app.command("codecs")
def codecs_command() -> None:
    """List the codecs."""
    tables.print_table(tables.codecs_table())


@app.command()
def demo(threads: Threads = None) -> None:
    """Make real-looking arrays, compress them with every codec, and check what comes back."""
    from .demo_data import demo_arrays

    with _one_line_errors():
        arrays = demo_arrays()
        jobs = {
            (name, codec): array
            for name, array in arrays.items()
            for kind in codecs().values()
            for codec in kind.examples()
            if _takes(codec, array)
        }

        def work(job: tuple[str, Codec], array: NDArray[Any]) -> Measurement:
            name, codec = job
            return measure.check(array, measure.encode(name, array, codec, threads=threads), threads=threads)

        rows = _each("compressing", jobs, work, lambda array: array.nbytes)
        tables.print_table(tables.measurements_table(rows, summary=False))
        _require(rows)


K = TypeVar("K")
V = TypeVar("V")


def _each(title: str, items: Mapping[K, V], work: Callable[[K, V], T], nbytes: Callable[[V], int]) -> list[T]:
    """`work` on every item, with a progress bar where somebody watches."""
    console = Console(stderr=True)
    columns = (TextColumn(title), BarColumn(), TextColumn("{task.fields[done]} of {task.fields[count]} arrays"))
    times = (DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    results = []
    with Progress(*columns, *times, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None, done=0, count=len(items))
        for number, (name, item) in enumerate(items.items(), start=1):
            results.append(work(name, item))
            progress.update(task, advance=nbytes(item), done=number)
    return results


def _parameters(settings: Sequence[str]) -> dict[str, Any]:
    """Parameters of NAME=VALUE; a value that is JSON (a number, true, false) is taken as such, another as text."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals):
            raise ValueError(f"--set {setting}: NAME=VALUE is allowed, for instance bits=4")
        try:
            parameters[name] = json.loads(text)
        except json.JSONDecodeError:
            parameters[name] = text
    return parameters


def _codec(name: str, options: Mapping[str, Any]) -> Codec:
    given = {key: value for key, value in options.items() if value is not None}
    try:
        return codec_from_config({"codec": name} | given)
    except (UnknownCodecError, TypeError, ValueError) as error:
        hint = f"; --codec error-bounded takes --{next(iter(given))}" if name == Lossless.name and given else ""
        raise ValueError(f"--codec {name}: {error}{hint}") from None


def _cuda_index(device: str) -> int | None:
    kind, _, index = device.partition(":")
    if device == "cpu":
        return None
    if kind != "cuda" or (":" in device and not (index.isascii() and index.isdigit())):
        raise ValueError(f"--device {device}: cpu, cuda or cuda:N is allowed")
    return int(index or 0)


def _takes(codec: Codec, array: NDArray[Any]) -> bool:
    try:
        return codec.takes(dtypes.by_numpy(array.dtype))
    except TypeError:
        return True  # of dtypes that the format has not: compressing tells which it has


def _check_output(source: Path, output: Path, arrays: Mapping[str, Any]) -> None:
    _check_distinct(source, output)
    if source.suffix != ".npy" and output.suffix != ".safetensors":
        names = "s with names" if len(arrays) != 1 else " with a name"
        raise ValueError(f"{output}: {source} holds {len(arrays)} array{names}; suffix .safetensors is allowed")
    if output.suffix not in files.COMPRESSED_SUFFIXES:
        raise ValueError(f"{output}: suffix {output.suffix!r}; allowed are {', '.join(files.COMPRESSED_SUFFIXES)}")


def _check_distinct(source: Path, output: Path) -> None:
    if output.exists() and source.exists() and output.samefile(source):
        raise ValueError(f"{output}: IN and OUT are the same file")


def _source_nbytes(compressed: Compressed) -> int:
    return math.prod(compressed.shape) * compressed.dtype.itemsize


def _require(rows: Sequence[Measurement]) -> None:
    """Raise unless every array came back as promised."""
    for row in rows:
        if row.comparison is not None and not row.comparison.holds:
            raise VerificationError(
                f"array {row.name!r}: {row.comparison.violations} values break the promise of "
                f"{row.compressed.codec!r}; largest error {row.comparison.largest_error:.6g}"
            )


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn what may go wrong into a line on standard error and an exit code."""
    try:
        yield
    except VerificationError as error:
        _fail(error, VERIFICATION_FAILED)
    except (CorruptStreamError, FormatVersionError, UnknownCodecError) as error:
        _fail(error, CORRUPT)
    except (ArrcompError, TypeError, ValueError, OSError, ImportError, MemoryError) as error:
        _fail(error, USAGE)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _fail(error: Exception, code: int) -> None:
    message = " ".join(str(error).split()) or type(error).__name__
    typer.echo(f"arrcomp: {message}", err=True)
    raise typer.Exit(code) from None


def main() -> None:
    """Run the command line."""
    app()
