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
from .choice import chosen_rules, codec_named, completed_codecs, parameters
from .common import Force, Json, MaxNbytes, Output, Quiet, Threads, check_json_has_room, one_line_errors, require, show
from .measure import Array, Measurement, Settings
from .page import Example, described
from .standard import STANDARD, input_file, output_file

_IN = "A .npy, .npz or .safetensors file; - for standard input, a .npy file."
_CODEC = "How to compress; see `arrcomp codecs`. [default: error-bounded with a bound, else lossless]"
_SET = "A parameter of the codec, for instance bits=4."
_RULE = (
    "Codec of the arrays whose names match, for instance '*norm*=lossless' or '*.weight=error-bounded:abs=1e-4'. "
    "The first rule that matches wins; --codec is for other arrays."
)
_RULES = "JSON list of rules, as from `Rule.config()`. They come after those of --rule."
_ZSTD = "Put payloads into Zstandard frames of level 1 to 22, if that saves 5 %."


@described(
    Example("Keep every bit", "arrcomp compress x.npy -o x.arrcomp"),
    Example("Keep every value within 0.0001", "arrcomp compress x.npy -o x.arrcomp --abs 1e-4"),
    Example(
        "A model: norms losslessly, other floats within a thousandth of their range",
        "arrcomp compress model.safetensors -o small.safetensors \\\n    --rule '*norm*=lossless' --rel 1e-3",
    ),
    Example("Four bits a value", "arrcomp compress x.npy -o x.arrcomp --codec qsgd --set bits=4"),
    Example("From one program to another", "cat x.npy | arrcomp compress - -o - | arrcomp info -"),
    failed="a value breaks its guarantee; OUT is not written",
    streams=False,
)
def compress(
    source: Annotated[Path, Argument(metavar="IN", help=_IN)],
    output: Output,
    codec: Annotated[str | None, Option(metavar="NAME", help=_CODEC, autocompletion=completed_codecs)] = None,
    absolute: Annotated[float | None, Option("--abs", metavar="E", help="Bound: |x - y| <= E.")] = None,
    relative: Annotated[float | None, Option("--rel", metavar="R", help="Bound: R times the range.")] = None,
    pointwise: Annotated[float | None, Option(metavar="P", help="Bound: P times each |x|.")] = None,
    speed: Annotated[str | None, Option(metavar="default|fast", help="A better ratio, or faster.")] = None,
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
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compress the arrays of a file, one after the other: a model need not fit into memory.

    One array (.npy) becomes one stream (.arrcomp). Several arrays become a .safetensors file of streams. With - as OUT
    the stream goes to standard output.

    Arrays of a dtype that the codec does not take, for instance integers with error-bounded, are compressed losslessly.
    """
    with one_line_errors():
        bounds = {"abs": absolute, "rel": relative, "pointwise": pointwise}
        if codec is None:
            codec = Lossless.name if set(bounds.values()) == {None} else ErrorBounded.name
        rest = codec_named(codec, bounds | {"speed": speed} | parameters(others or [], "--set"))
        level = checked_level(zstd, "--zstd")
        chosen = chosen_rules(rule or [], rules, rest)
        kind, index = parse_kind(device)
        settings = Settings(threads, seed, level, index if kind == "cuda" else None)
        check_json_has_room(as_json, output)
        rows: list[Measurement] = []
        with input_file(source, ".npy") as readable, output_file(output, ".arrcomp", source, force=force) as writable:
            content = _files.read_arrays(readable, max_nbytes)
            _check_output(readable, writable, len(content.arrays))

            def compressed(name: str) -> Compressed:
                result, row = _compressed(name, content, chosen, settings, check)
                rows.append(row)
                return result

            results = Lazy(content.arrays, compressed)
            _files.save_file(results, writable, metadata=content.metadata, progress=not quiet)
        show(rows, as_json=as_json, quiet=quiet or output == STANDARD)


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
    if source.suffix != ".npy" and output.suffix != ".safetensors":
        names = "s with names" if count != 1 else " with a name"
        expected = f"suffix .safetensors for {count} array{names} of {source}"
        raise ValueError(f"{output}: expected {expected}, got {output.suffix!r}")
    check_suffix(output, _files.COMPRESSED_SUFFIXES)
