"""The command `arrcomp compress`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .. import _files
from .._arrays.device import parse_kind
from .._files import Lazy
from .._format.frame import checked_level
from .choice import PREDICTORS, NamedRule, check_rules_match
from .common import (
    Force,
    Json,
    MaxNbytes,
    Quiet,
    Threads,
    Timings,
    check_json_has_room,
    one_line_errors,
    print_json,
    print_line,
    show,
)
from .encoding import (
    Absolute,
    Check,
    CodecName,
    Compressing,
    Others,
    Pointwise,
    Relative,
    RuleFile,
    RuleTexts,
    Seed,
    Speed,
    Zstd,
    check_output,
    chosen,
)
from .files import COMPRESSED_END, READABLE_SUFFIXES, compressed_path, is_compressed, read_arrays
from .jobs import Job, planned
from .measure import Measurement, Settings
from .page import Example, described
from .reports import compressed_verdict, files_document
from .standard import STANDARD, input_file, output_file
from .words import count_text

_IN = "Files (.npy, .npz, .safetensors, .pt, .pth) and folders of them; - for standard input, a .npy file."
_OUT = (
    f"File to write, .arrcomp or .safetensors; a folder for several files; or -. [default: IN with .arrcomp, or "
    f"{COMPRESSED_END}, at its end]"
)
_PREDICTOR = "For fields, images, volumes: predict along the axes. For tables: code by columns. It takes longer."


@described(
    Example("Keep every bit; it writes x.npy.arrcomp", "arrcomp compress x.npy"),
    Example("Keep every value within 0.0001", "arrcomp compress x.npy -o x.arrcomp --abs 1e-4"),
    Example(
        "A model: norms losslessly, other floats within a thousandth of their range",
        "arrcomp compress model.safetensors -o small.safetensors \\\n    --rule '*norm*=lossless' --rel 1e-3",
    ),
    Example(
        "A smooth field, every value within a thousandth of its range",
        "arrcomp compress field.npy --rel 1e-3 --predictor auto",
    ),
    Example("Four bits a value", "arrcomp compress x.npy -o x.arrcomp --codec int4"),
    Example("All files of a folder, into another folder", "arrcomp compress data -o small"),
    Example("From one program to another", "cat x.npy | arrcomp compress - | arrcomp info -"),
    failed="a value breaks its guarantee; its file is not written",
    streams=False,
)
def compress(
    sources: Annotated[list[Path], Argument(metavar="IN...", help=_IN)],
    output: Annotated[Path | None, Option("-o", "--output", metavar="OUT", help=_OUT)] = None,
    codec: CodecName = None,
    absolute: Absolute = None,
    relative: Relative = None,
    pointwise: Pointwise = None,
    speed: Speed = None,
    predictor: Annotated[str | None, Option(metavar=PREDICTORS, help=_PREDICTOR)] = None,
    others: Others = None,
    rule: RuleTexts = None,
    rules: RuleFile = None,
    seed: Seed = None,
    zstd: Zstd = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    device: Annotated[str, Option(metavar="cpu|cuda[:N]", help="Where to compress.")] = "cpu",
    check: Check = True,
    force: Force = False,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compress the arrays of files, one array after the other.

    A model need not fit in memory, unless it is in a .pt file. One array (.npy) becomes one stream (.arrcomp). Several
    arrays become a .safetensors file of streams. With - as OUT the stream goes to standard output.

    Arrays whose dtype the codec does not support (for example integers with error-bounded) are stored losslessly.
    """
    with one_line_errors():
        bounds = {"abs": absolute, "rel": relative, "pointwise": pointwise}
        choice = chosen(codec, bounds | {"speed": speed, "predictor": predictor}, others, rule, rules, seed)
        level, named = checked_level(zstd, "--zstd"), choice.named
        kind, index = parse_kind(device)
        settings = Settings(threads, seed, level, index if kind == "cuda" else None)
        jobs = planned(sources, output, output_of=compressed_path, takes=_is_input, force=force)
        several = jobs[0].is_one_of_several
        check_json_has_room(as_json, jobs[0].output)
        if several:
            _check_rules_match(named, jobs, max_nbytes)
        job_rows = []
        for job in jobs:
            job.make_folder()
            rows: list[Measurement] = []
            with (
                job.naming(),
                input_file(job.source, ".npy") as readable,
                output_file(job.output, ".arrcomp", job.source, force=force) as writable,
            ):
                content = read_arrays(readable, max_nbytes)
                check_output(readable, writable, len(content.arrays))
                if not several:
                    check_rules_match(named, list(content.arrays))
                results = Lazy(content.arrays, Compressing(content, choice.rules, settings, check, rows))
                _files.save_file(results, writable, metadata=content.metadata, progress=not quiet)
            silent = quiet or job.output == STANDARD
            verdict = "" if silent else compressed_verdict(rows, job.output, job.output.stat().st_size)
            if not several:
                show(rows, as_json=as_json, quiet=silent, timings=timings, verdict=verdict)
            elif not (quiet or as_json):
                print_line(verdict)
            job_rows.append((job, rows))
        if several:
            _show_several(job_rows, as_json=as_json, quiet=quiet)


def _is_input(path: Path) -> bool:
    return path.suffix in READABLE_SUFFIXES and not is_compressed(path)


def _check_rules_match(rules: Sequence[NamedRule], jobs: Sequence[Job], max_nbytes: int | None) -> None:
    """A rule is for the arrays of all files: it must match one of them."""
    if rules:
        names = dict.fromkeys(name for job in jobs for name in read_arrays(job.source, max_nbytes).arrays)
        check_rules_match(rules, list(names))


def _show_several(job_rows: Sequence[tuple[Job, list[Measurement]]], *, as_json: bool, quiet: bool) -> None:
    """The total of several files, or all of them as JSON."""
    if as_json:
        print_json(files_document(job_rows))
    elif not quiet:
        nbytes = sum(job.output.stat().st_size for job, _ in job_rows)
        all_rows = [row for _, rows in job_rows for row in rows]
        print_line(compressed_verdict(all_rows, count_text(len(job_rows), "file"), nbytes))
