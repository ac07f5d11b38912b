"""The command `arrcomp compress`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import dtypes, files, measure
from ..codecs import Lossless
from ..compressed import Compressed
from ..files import Content, Lazy
from ..files.content import naming
from ..frame import checked_level
from ..measure import Array, Measurement
from ..rules import Rule, codec_for
from .choice import chosen_rules, codec_named, parameters
from .common import Json, Output, Threads, check_distinct, one_line_errors, require, show


def compress(
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
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=CODEC[:NAME=VALUE,...]",
            help="Codec of the arrays whose names fit, as '*norm*=lossless' or '*.weight=error-bounded:abs=1e-4'; the "
            "first rule that fits wins, --codec is for the rest.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON list of rules, as `Rule.config()` gives them; they follow --rule."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="For codecs that round at random.")] = None,
    zstd: Annotated[
        int | None,
        typer.Option(
            metavar="LEVEL", help="Zstandard frames of level 1 to 22 around payloads that they make 5 % smaller."
        ),
    ] = None,
    threads: Threads = None,
    device: Annotated[str, typer.Option(metavar="cpu|cuda[:N]", help="Where to compress.")] = "cpu",
    check: Annotated[bool, typer.Option(help="Decompress and compare before the file is written.")] = True,
    as_json: Json = False,
) -> None:
    """Compress the arrays of a file, one after the other: a model need not fit into memory.

    One array (.npy) becomes one stream (.arrcomp); several become a .safetensors file of streams.

    Arrays of a dtype that the codec does not take, as integers by error-bounded, are kept losslessly.
    """
    with one_line_errors():
        named = {"abs": absolute, "rel": relative, "pointwise": pointwise, "speed": speed}
        rest = codec_named(codec, named | parameters(others or [], "--set"))
        options = {
            "seed": seed,
            "threads": threads,
            "cuda": _cuda_index(device),
            "zstd_level": checked_level(zstd, "--zstd"),
        }
        job = _Job(chosen_rules(rule or [], rules, rest), options, check)
        content = files.read_arrays(source)
        _check_output(source, output, len(content.arrays))
        results = Lazy(content.arrays, lambda name: job.compressed(name, content))
        files.save_file(results, output, metadata=content.metadata, progress=True)
        show(job.rows, as_json)


class _Job:
    """What is done to each array, and what came of it."""

    def __init__(self, rules: Sequence[Rule], options: Mapping[str, int | None], check: bool) -> None:
        """Made of the rules, of options of `measure.encode`, and of whether to compare what comes back."""
        self.rows: list[Measurement] = []
        self._rules, self._options, self._check = rules, options, check

    def compressed(self, name: str, content: Content[Array]) -> Compressed:
        """An array, compressed, and checked if wanted."""
        array = content.arrays[name]
        with naming(None, name):
            codec = codec_for(self._rules, name, dtypes.by_numpy(array.dtype), array.shape)
            compressed, row = measure.encode(name, array, codec, **self._options)
        if self._check:
            row = measure.check(array, compressed, row, threads=self._options["threads"])
            require([row])
        self.rows.append(row)
        return compressed


def _cuda_index(device: str) -> int | None:
    kind, _, index = device.partition(":")
    if device == "cpu":
        return None
    if kind != "cuda" or (":" in device and not (index.isascii() and index.isdigit())):
        raise ValueError(f"--device {device}: cpu, cuda or cuda:N is allowed")
    return int(index or 0)


def _check_output(source: Path, output: Path, count: int) -> None:
    check_distinct(source, output)
    if source.suffix != ".npy" and output.suffix != ".safetensors":
        names = "s with names" if count != 1 else " with a name"
        raise ValueError(f"{output}: {source} holds {count} array{names}; suffix .safetensors is allowed")
    if output.suffix not in files.COMPRESSED_SUFFIXES:
        raise ValueError(f"{output}: suffix {output.suffix!r}; allowed are {', '.join(files.COMPRESSED_SUFFIXES)}")
