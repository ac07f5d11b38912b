"""The command `arrcomp compress`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .. import _dtypes, _files
from .._api.compressed import Compressed
from .._arrays.device import parse_kind
from .._files import Content, Lazy
from .._files.content import check_suffix, naming
from .._format.frame import checked_level
from ..codecs import ErrorBounded, Lossless
from ..codecs._rules import Rule, codec_for
from . import measure
from .choice import (
    PREDICTORS,
    NamedRule,
    check_rules_match,
    check_seed,
    codec_named,
    completed_codecs,
    parameters,
    rules_of_file,
    rules_of_options,
)
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
    require,
    show,
)
from .files import COMPRESSED_END, READABLE_SUFFIXES, TORCH_SUFFIXES, compressed_path, is_compressed, read_arrays
from .jobs import Job, planned
from .measure import Array, Measurement, Settings
from .page import Example, described
from .reports import compressed_verdict, files_document
from .standard import STANDARD, input_file, output_file
from .words import count_text

_IN = "Files (.npy, .npz, .safetensors, .pt, .pth) and folders of them; - for standard input, a .npy file."
_OUT = (
    f"File to write, .arrcomp or .safetensors; a folder for several files; or -. [default: IN with .arrcomp, or "
    f"{COMPRESSED_END}, at its end]"
)
_CODEC = (
    "A codec, or a short name such as fp8 or nf4; see `arrcomp codecs`. "
    "[default: error-bounded with a bound, else lossless]"
)
_PREDICTOR = "For smooth fields of several dimensions: predict values along the axes. It takes longer."
_SET = "A parameter of the codec, for instance bits=4."
_RULE = (
    "Codec for the arrays whose names match, for instance '*norm*=lossless' or '*.weight=error-bounded:abs=1e-4'. "
    "The first rule that matches wins; --codec is for other arrays."
)
_RULES = "A JSON list of rules, as from `Rule.config()`. They come after those of --rule."
_ZSTD = "Put payloads into Zstandard frames of level 1 to 22, if that saves 5 %."


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
    codec: Annotated[str | None, Option(metavar="NAME", help=_CODEC, autocompletion=completed_codecs)] = None,
    absolute: Annotated[float | None, Option("--abs", metavar="E", help="Bound: |x - y| <= E.")] = None,
    relative: Annotated[float | None, Option("--rel", metavar="R", help="Bound: R times the range.")] = None,
    pointwise: Annotated[float | None, Option(metavar="P", help="Bound: P times each |x|.")] = None,
    speed: Annotated[str | None, Option(metavar="default|fast", help="A better ratio, or faster.")] = None,
    predictor: Annotated[str | None, Option(metavar=PREDICTORS, help=_PREDICTOR)] = None,
    others: Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help=_SET)] = None,
    rule: Annotated[list[str] | None, Option(metavar="PATTERN=CODEC[:NAME=VALUE,...]", help=_RULE)] = None,
    rules: Annotated[Path | None, Option(metavar="FILE", help=_RULES)] = None,
    seed: Annotated[int | None, Option(metavar="N", help="For codecs with stochastic rounding.")] = None,
    zstd: Annotated[int | None, Option(metavar="LEVEL", help=_ZSTD)] = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    device: Annotated[str, Option(metavar="cpu|cuda[:N]", help="Where to compress.")] = "cpu",
    check: Annotated[bool, Option(help="Decompress and compare before the file is written.")] = True,
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
        if codec is None:
            codec = Lossless.name if set(bounds.values()) == {None} else ErrorBounded.name
        given = bounds | {"speed": speed, "predictor": predictor}
        rest = codec_named(codec, given | parameters(others or [], "--set"))
        level = checked_level(zstd, "--zstd")
        named = rules_of_options(rule or [])
        chosen = [*(each.rule for each in named), *([] if rules is None else rules_of_file(rules)), Rule(rest)]
        for each in chosen:
            check_seed(each.codec, seed)
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
                input_file(job.source, ".npy") as readable,
                output_file(job.output, ".arrcomp", job.source, force=force) as writable,
            ):
                content = read_arrays(readable, max_nbytes)
                _check_output(readable, writable, len(content.arrays))
                if not several:
                    check_rules_match(named, list(content.arrays))
                results = Lazy(content.arrays, _Compressing(content, chosen, settings, check, rows))
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


class _Compressing:
    """Compresses the arrays of a file, by name, and measures each."""

    def __init__(
        self, content: Content[Array], rules: Sequence[Rule], settings: Settings, check: bool, rows: list[Measurement]
    ) -> None:
        self._content, self._rules, self._settings, self._check, self._rows = content, rules, settings, check, rows

    def __call__(self, name: str) -> Compressed:
        result, row = _compressed(name, self._content, self._rules, self._settings, self._check)
        self._rows.append(row)
        return result


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


def _compressed(
    name: str, content: Content[Array], rules: Sequence[Rule], settings: Settings, check: bool
) -> tuple[Compressed, Measurement]:
    """An array, compressed and, with `check`, compared."""
    array = content.arrays[name]
    with naming(None, name):
        codec = codec_for(rules, name, _dtypes.by_numpy(array.dtype), array.shape)
        compressed, row = measure.encode(name, array, codec, settings)
    if check:
        row = measure.check(array, compressed, row, settings.threads)
        require([row])
    return compressed, row


def _check_output(source: Path, output: Path, count: int) -> None:
    if output.suffix in TORCH_SUFFIXES:
        expected = f"suffix {', '.join(_files.COMPRESSED_SUFFIXES)}"
        hint = "in Python, arrcomp.torch.save writes it"
        raise ValueError(f"{output}: expected {expected}, got {output.suffix!r}; {hint}")
    if source.suffix != ".npy" and output.suffix != ".safetensors":
        names = "s with names" if count != 1 else " with a name"
        expected = f"suffix .safetensors for {count} array{names} of {source}"
        raise ValueError(f"{output}: expected {expected}, got {output.suffix!r}")
    check_suffix(output, _files.COMPRESSED_SUFFIXES)
