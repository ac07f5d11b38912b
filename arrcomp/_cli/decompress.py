"""The commands `arrcomp decompress`, `arrcomp info` and `arrcomp verify`, which read compressed files."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .. import _files
from .._api.compressed import Compressed
from .._files import Content, Lazy
from .._files.content import check_exists
from .._files.progress import progress
from .common import (
    Force,
    Json,
    MaxNbytes,
    Quiet,
    Threads,
    Timings,
    VerificationError,
    check_json_has_room,
    loaded,
    one_line_errors,
    print_json,
    print_line,
    print_table,
    require,
    show,
    stored,
)
from .files import COMPRESSED_END, is_compressed, read_any, read_arrays, restored_path, write_arrays
from .guarantees import compare
from .jobs import Job, planned
from .measure import Array, Measurement
from .page import Example, described
from .reports import files_document, measurements_document, raw_document, raw_table, sums
from .standard import STANDARD, input_file, output_file, shown_path
from .words import count_text, kept_text, names_text, size_text, smaller_text

_IN = "Compressed files (.arrcomp, .safetensors) and folders of them; - for standard input, one stream."
_OUT = (
    "File to write: .npy (of one array), .npz, .safetensors or .pt; a folder for several files; or -. [default: IN "
    f"without .arrcomp, or without {COMPRESSED_END}]"
)
_COMPRESSED_ENDS = (".arrcomp", COMPRESSED_END)
_DELTA = "The file to decompress (.arrcomp, .safetensors); - for standard input, one stream."
_FULL = (
    f"File to write: .npy (of one array), .npz, .safetensors or .pt; .arrcomp or {COMPRESSED_END}; or -. [default: "
    f"DELTA without .arrcomp, or without {COMPRESSED_END}]"
)
_BASE = "The file of arrays, compressed or not, that the file needs. [default: the one that it names, in its folder]"
Base = Annotated[Path | None, Option("--base", metavar="OLD", help=_BASE)]
_FILE = "A file of arrays, compressed or not; - for standard input, one stream."


@described(
    Example("One array; it writes x.npy", "arrcomp decompress x.npy.arrcomp"),
    Example("To another place", "arrcomp decompress x.arrcomp -o back.npy"),
    Example("A model, in place of the last one", "arrcomp decompress small.safetensors -o model.safetensors --force"),
    Example("From one program to another", "cat x.arrcomp | arrcomp decompress - > back.npy"),
)
def decompress(
    sources: Annotated[list[Path], Argument(metavar="IN...", help=_IN)],
    output: Annotated[Path | None, Option("-o", "--output", metavar="OUT", help=_OUT)] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    force: Force = False,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress files, one array after the other.

    With - as OUT the array goes to standard output, as a .npy file. A .pt file gets the structure that it had, and must
    fit in memory.
    """
    with one_line_errors():
        jobs = planned(sources, output, output_of=restored_path, takes=is_compressed, force=force)
        check_json_has_room(as_json, jobs[0].output)
        for job in jobs:
            _check_uncompressed(job.output)
        job_rows = []
        for job in jobs:
            job.make_folder()
            rows = _decompressed(job, threads, max_nbytes, force=force, quiet=quiet)
            verdict = _restored_verdict(rows, job.output)
            if not job.is_one_of_several:
                silent = quiet or job.output == STANDARD
                show(rows, as_json=as_json, quiet=silent, timings=timings, verdict=verdict)
            elif not (quiet or as_json):
                print_line(verdict)
            job_rows.append((job, rows))
        all_rows = [row for _, rows in job_rows for row in rows]
        several = jobs[0].is_one_of_several
        if several and as_json:
            print_json(files_document(job_rows))
        elif several and not quiet:
            print_line(_restored_verdict(all_rows, count_text(len(jobs), "file")))


def _check_uncompressed(output: Path) -> None:
    """Raise ValueError for a name of compressed files, which only `arrcomp apply` writes."""
    if output.name.endswith(_COMPRESSED_ENDS):
        expected = f"a name that does not end in {' or '.join(_COMPRESSED_ENDS)}, as compressed files do"
        raise ValueError(f"{output}: expected {expected}, got {output.name!r}")


def _decompressed(
    job: Job, threads: int | None, max_nbytes: int | None, *, force: bool, quiet: bool, base: Path | None = None
) -> list[Measurement]:
    """Decompress a file, with the base that it needs. Returns the measurements of its arrays, in the file's order."""
    rows: dict[str, Measurement] = {}
    with (
        job.naming(),
        input_file(job.source, ".arrcomp") as readable,
        output_file(job.output, ".npy", job.source, force=force) as writable,
        _files.open_file(readable, max_nbytes=max_nbytes, base=base) as file,
        progress("decompressing", len(file), not quiet) as done,
    ):
        file.check_base(file)

        def restored(name: str) -> Array:
            array, rows[name] = loaded(file, name, threads)
            done(array.nbytes)
            return array

        def complete(name: str) -> Array | Compressed:
            compressed, row = stored(file, name)
            if compressed.needs_reference:
                return restored(name)
            rows[name] = row
            done(row.spec.nbytes)
            return compressed

        if job.output.name.endswith(_COMPRESSED_ENDS):
            _files.save_file(Lazy(file, complete), writable, metadata=file.metadata, threads=threads)
        else:
            write_arrays(writable, Content(Lazy(file, restored, file.info), file.metadata))
        return [rows[name] for name in file]


@described(
    Example("The checkpoint, with the base beside it", "arrcomp apply step2.arrcomp.safetensors -o step2.safetensors"),
    Example("With the base elsewhere", "arrcomp apply new.arrcomp --base data/old.npy -o new.npy"),
    Example(
        "A compressed file that needs no base",
        "arrcomp apply step2.arrcomp.safetensors -o full.arrcomp.safetensors",
    ),
)
def apply(
    source: Annotated[Path, Argument(metavar="DELTA", help=_DELTA)],
    base: Base = None,
    output: Annotated[Path | None, Option("-o", "--output", metavar="OUT", help=_FULL)] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    force: Force = False,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress a file of `arrcomp delta` or `save_file(..., base=)` with the file that it was made against.

    That one may need another file itself, and so on. All of them must have the arrays that they had: this is checked
    before anything is decompressed. `arrcomp decompress` does the same where all files are in one folder.

    If OUT ends in .arrcomp or .arrcomp.safetensors, the arrays that need the base are compressed losslessly, and the
    others stay as they are.
    """
    with one_line_errors():
        target = output or (STANDARD if source == STANDARD else restored_path(source))
        check_json_has_room(as_json, target)
        job = Job(source, target)
        rows = _decompressed(job, threads, max_nbytes, force=force, quiet=quiet, base=base)
        silent = quiet or target == STANDARD
        show(rows, as_json=as_json, quiet=silent, timings=timings, verdict=_restored_verdict(rows, target))


def _restored_verdict(rows: list[Measurement], output: Path | str) -> str:
    return f"wrote {output}: {count_text(len(rows))}, {size_text(sums(rows)[0])}"


@described(
    Example("The arrays of a file", "arrcomp info small.safetensors"),
    Example("Those of a file that is not compressed", "arrcomp info model.safetensors"),
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
    """List the arrays of a file: dtype, shape, size, and of a compressed one codec and size in the file."""
    with one_line_errors(), input_file(source, ".arrcomp") as readable:
        check_exists(readable)
        if is_compressed(readable):
            _show_compressed(source, readable, check, quiet=quiet, as_json=as_json)
        else:
            content = read_any(readable)
            infos = {name: content.info(name) for name in content.arrays}
            if as_json:
                print_json(raw_document(infos))
            elif not quiet:
                table, nbytes = raw_table(infos)
                in_file = readable.stat().st_size  # NumPy and arrcomp.torch.save compress too
                how = "not compressed" if in_file >= nbytes else f"in a file of {size_text(in_file)}"
                print_table(table, f"{shown_path(source)}: {count_text(len(infos))}, {size_text(nbytes)}, {how}")


def _show_compressed(source: Path, readable: Path, check: bool, *, quiet: bool, as_json: bool) -> None:
    with _files.open_file(readable) as file:
        rows, needs_base = [], False
        with progress("reading", len(file), not quiet) as done:
            for name in file:
                compressed, row = stored(file, name, check=check)
                rows.append(row)
                needs_base |= compressed.needs_reference
                done(row.spec.nbytes)
    before, after = sums(rows)
    sound = "checksums are right" if check else "checksums not checked"
    counts = f"{count_text(len(rows))}, {size_text(after)}, {smaller_text(before, after)}"
    if as_json:
        about = {"base": None if file.base is None else str(file.base)} if needs_base else {}
        print_json(measurements_document(rows) | about)
        return
    base = f", against {_base_text(file.base)}" if needs_base else ""
    show(rows, as_json=False, quiet=quiet, verdict=f"{shown_path(source)}: {counts}, {sound}{base}")


def _base_text(base: Path | str | None) -> str:
    """What a file of `arrcomp delta` needs, in words."""
    if base is None:
        return "a file that it does not name"
    is_missing = isinstance(base, Path) and not base.exists()
    return f"{base}{', which is missing' if is_missing else ''}"


@described(
    Example("Whether the guarantee holds", "arrcomp verify x.npy x.arrcomp"),
    Example("A file of `arrcomp delta`", "arrcomp verify new.npy new.arrcomp --base old.npy"),
    Example("For a script", "arrcomp verify --quiet model.safetensors small.safetensors && echo verified"),
    Example("The largest errors, as JSON", "arrcomp verify --json model.safetensors small.safetensors"),
    failed="a value breaks its guarantee, or the files have different arrays",
)
def verify(
    source: Annotated[Path, Argument(metavar="IN", help="The file that was compressed.")],
    compressed: Annotated[Path, Argument(metavar="OUT", help="The compressed file.")],
    base: Base = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decompress OUT and compare it with IN: every value must keep its codec's guarantee."""
    with one_line_errors():
        original = read_arrays(source, max_nbytes).arrays
        with _files.open_file(compressed, max_nbytes=max_nbytes, base=base) as file:
            lacks = [
                f"{path} lacks {names_text(sorted(names))}"
                for path, names in ((source, set(file) - set(original)), (compressed, set(original) - set(file)))
                if names
            ]
            if lacks:
                raise VerificationError(f"expected the same arrays in both files: {'; '.join(lacks)}")
            file.check_base(file)
            rows = []
            with progress("verifying", len(file), not quiet) as done:
                for name in file:
                    array, row = loaded(file, name, threads)
                    rows.append(row._replace(comparison=compare(original[name], array, row.spec.codec)))
                    done(rows[-1].spec.nbytes)
        kept = kept_text(row.spec.codec for row in rows)
        holds = all(row.comparison is not None and row.comparison.holds for row in rows)
        verdict = f"verified {compressed}: {count_text(len(rows))}, {kept}" if holds else None
        show(rows, as_json=as_json, quiet=quiet, timings=timings, verdict=verdict)
        require(rows)
