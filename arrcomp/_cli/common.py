"""Common parts of commands: options, errors in one line, exit codes, tables or JSON."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from .._api.compressed import Compressed
from .._arguments import shortened, shown
from .._files import CompressedFile
from .._interrupts import INTERRUPTED
from ..codecs import Codec
from ..errors import ArrcompError, CorruptStreamError, FormatVersionError, UnknownCodecError
from . import measure, reports, tables
from .guarantees import Comparison
from .measure import Array, Measurement
from .page import CORRUPT, FAILED, PROGRAM, USAGE
from .program import discard_output
from .standard import STANDARD
from .tables import Table
from .words import codec_text, count_text

_MAX_NBYTES = (
    "The most bytes of an array of a compressed file, or of a .npz file, in memory. "
    "[default: 8192 times its bytes in the file, or 1 GiB if that is more]"
)

Force = Annotated[bool, Option("-f", "--force", help="Overwrite files that exist.")]
Threads = Annotated[int | None, Option(metavar="N", help="Threads on the CPU. [default: all cores]")]
MaxNbytes = Annotated[int | None, Option(metavar="BYTES", help=_MAX_NBYTES)]
Json = Annotated[bool, Option("--json", help="Print JSON instead of a table (NaN and infinity become null).")]
Timings = Annotated[bool, Option("--timings", help="Show how fast each array was compressed and decompressed.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Print nothing but errors, and the JSON of --json.")]


class VerificationError(ArrcompError):
    """The decompressed array breaks the codec's guarantee."""


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn exceptions into one line on standard error and an exit code."""
    try:
        yield
    except BrokenPipeError:
        raise
    except VerificationError as error:
        _fail(error, FAILED)
    except (CorruptStreamError, FormatVersionError, UnknownCodecError) as error:
        _fail(error, CORRUPT)
    except (ArrcompError, TypeError, ValueError, OSError, ImportError, MemoryError) as error:
        _fail(error, USAGE)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _fail(error: Exception, code: int) -> None:
    named = isinstance(error, OSError) and error.filename is not None
    text = f"{error.filename}: {error.strerror}" if named else str(error)  # type: ignore[attr-defined]
    typer.echo(f"{PROGRAM}: {' '.join(text.split()) or type(error).__name__}", err=True)
    raise typer.Exit(code) from None


def stored(file: CompressedFile, name: str, *, check: bool = True) -> tuple[Compressed, Measurement]:
    """A compressed array of a file and its measurement; `check` is the same as in `CompressedFile.compressed`."""
    compressed = file.compressed(name, check=check)
    return compressed, Measurement(name, compressed.spec, file.nbytes(name), compressed.payload.is_framed)


def loaded(file: CompressedFile, name: str, threads: int | None) -> tuple[Array, Measurement]:
    """An array of a file, decompressed to NumPy with those that it needs, and its measurement with the time."""
    compressed, row = stored(file, name)
    if not compressed.needs_reference:
        return measure.decode(compressed, row, threads)
    start = time.perf_counter()
    array: Array = file.load(name, like="numpy", threads=threads)
    return array, row._replace(decode_seconds=time.perf_counter() - start)


def check_json_has_room(as_json: bool, output: Path) -> None:
    """Raise ValueError if both JSON and an array would go to standard output."""
    if as_json and output == STANDARD:
        raise ValueError("--json: expected a file as OUT, got -; standard output cannot hold both")


def show(
    rows: Sequence[Measurement],
    *,
    as_json: bool,
    quiet: bool,
    total: bool = True,
    timings: bool = False,
    verdict: str | None = None,
) -> None:
    """Print measurements: a line for each array, with `total` also their total, and below them a verdict in words."""
    if as_json:
        print_json(reports.measurements_document(rows))
    elif not quiet:
        print_table(reports.measurements_table(rows, total=total, timings=timings), verdict)


def print_table(table: Table, verdict: str | None = None) -> None:
    """Write a table to standard output, and below it a verdict."""
    _print(tables.rendered(table) + ("" if verdict is None else f"\n{verdict}\n"))


def print_line(text: str) -> None:
    """Write a line to standard output."""
    _print(f"{text}\n")


def print_json(document: Any) -> None:
    """Write a document to standard output."""
    _print(json.dumps(document, indent=1, allow_nan=False) + "\n")


def _print(text: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # names may have characters that it lacks
    try:
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
    except OSError as error:
        discard_output()
        raise OSError(error.errno, error.strerror, "standard output") from None


def require(rows: Sequence[Measurement]) -> None:
    """Raise VerificationError unless every array keeps its codec's guarantee."""
    broken = [row for row in rows if row.comparison is not None and not row.comparison.holds]
    if not broken:
        return
    row, found = broken[0], broken[0].comparison
    assert found is not None
    others = f" (and {count_text(len(broken) - 1, 'other array')})" if len(broken) > 1 else ""
    raise VerificationError(f"array {shown(row.name)}{others}: {_fault(found, row.spec.codec)}")


def _fault(found: Comparison, codec: Codec) -> str:
    """What is wrong with an array, in words."""
    if found.mismatch is not None:
        what, original, restored = found.mismatch
        return f"expected {what} {shortened(str(original))}, that of the original, got {shortened(str(restored))}"
    violations = f"{count_text(found.violations, 'value')} break{'s' if found.violations == 1 else ''}"
    return f"{violations} the guarantee of {codec_text(codec)}; largest error {found.largest_error:.6g}"
