"""The command `arrcomp delta`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .. import _files
from .._files import Against, Lazy, open_base
from .._format.frame import checked_level
from .choice import check_rules_match
from .common import Force, Json, MaxNbytes, Quiet, Threads, Timings, check_json_has_room, one_line_errors, show
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
from .files import COMPRESSED_END, delta_path, read_arrays
from .measure import Measurement, Settings
from .page import Example, described
from .reports import compressed_verdict
from .standard import STANDARD, input_file, output_file

_OLD = "The base: a file of arrays (.npy, .npz, .safetensors), or of compressed ones, which may need a base itself."
_NEW = "The file to compress (.npy, .npz, .safetensors, .pt, .pth); - for standard input, a .npy file."
_OUT = f"File to write, .safetensors, or .arrcomp for one array; or -. [default: NEW with {COMPRESSED_END} at its end]"


@described(
    Example("What has changed since the last checkpoint", "arrcomp delta step1.safetensors step2.safetensors"),
    Example("Get it back", "arrcomp apply step2.arrcomp.safetensors -o back.safetensors"),
    Example("Keep every value within 0.0001", "arrcomp delta old.npy new.npy -o new.arrcomp --abs 1e-4"),
    failed="a value breaks its guarantee; the file is not written",
)
def delta(
    old: Annotated[Path, Argument(metavar="OLD", help=_OLD)],
    new: Annotated[Path, Argument(metavar="NEW", help=_NEW)],
    output: Annotated[Path | None, Option("-o", "--output", metavar="OUT", help=_OUT)] = None,
    codec: CodecName = None,
    absolute: Absolute = None,
    relative: Relative = None,
    pointwise: Pointwise = None,
    speed: Speed = None,
    others: Others = None,
    rule: RuleTexts = None,
    rules: RuleFile = None,
    seed: Seed = None,
    zstd: Zstd = None,
    threads: Threads = None,
    max_nbytes: MaxNbytes = None,
    check: Check = True,
    force: Force = False,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compress the arrays of NEW against those of OLD: by what they differ in.

    OUT is small if little has changed, and to decompress it OLD is needed, with the same values. OUT has the path of
    OLD from its own folder, unless it is a .arrcomp file. `arrcomp apply` takes another path.

    Arrays that OLD lacks, or has with another dtype or shape, are compressed as by `arrcomp compress`, and so are
    those of other codecs than lossless and error-bounded.
    """
    with one_line_errors():
        bounds = {"abs": absolute, "rel": relative, "pointwise": pointwise}
        choice = chosen(codec, bounds | {"speed": speed}, others, rule, rules, seed)
        settings = Settings(threads, seed, checked_level(zstd, "--zstd"))
        output = output or (STANDARD if new == STANDARD else delta_path(new))
        check_json_has_room(as_json, output)
        rows: list[Measurement] = []
        with input_file(new, ".npy") as readable, output_file(output, ".arrcomp", new, force=force) as writable:
            content = read_arrays(readable, max_nbytes)
            check_output(readable, writable, len(content.arrays))
            check_rules_match(choice.named, list(content.arrays))
            against = Against(open_base(old, max_nbytes), writable, len(content.arrays))
            results = Lazy(content.arrays, Compressing(content, choice.rules, settings, check, rows, against))
            _files.save_file(results, writable, metadata=content.metadata, progress=not quiet, base=against)
        silent = quiet or output == STANDARD
        verdict = "" if silent else f"{compressed_verdict(rows, output, output.stat().st_size)}{_base_text(rows, old)}"
        show(rows, as_json=as_json, quiet=silent, timings=timings, verdict=verdict)


def _base_text(rows: Sequence[Measurement], old: Path) -> str:
    """Whether the file needs its base, in words."""
    needed = any(row.spec.codec.needs_reference for row in rows)
    return f", against {old}" if needed else f"; no array was coded against {old}"
