"""What the commands that compress share: options, their codecs and rules, and one array at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Option

from .. import _dtypes, _files
from .._api.compressed import Compressed
from .._arrays.numpy import ADAPTER as NUMPY
from .._files import Against, Content
from .._files.content import check_suffix, naming
from ..codecs import ErrorBounded, Lossless
from ..codecs._rules import Rule, codec_for
from . import measure
from .choice import NamedRule, check_seed, codec_named, completed_codecs, parameters, rules_of_file, rules_of_options
from .common import require
from .files import TORCH_SUFFIXES
from .measure import Array, Measurement, Settings

_CODEC = (
    "A codec, or a short name such as fp8 or nf4; see `arrcomp codecs`. "
    "[default: error-bounded with a bound, else lossless]"
)
_SET = "A parameter of the codec, for instance bits=4."
_RULE = (
    "Codec for the arrays whose names match, for instance '*norm*=lossless' or '*.weight=error-bounded:abs=1e-4'. "
    "The first rule that matches wins; --codec is for other arrays."
)
_RULES = "A JSON list of rules, as from `Rule.config()`. They come after those of --rule."
_ZSTD = "Put payloads into Zstandard frames of level 1 to 22, if that saves 5 %."

CodecName = Annotated[str | None, Option("--codec", metavar="NAME", help=_CODEC, autocompletion=completed_codecs)]
Absolute = Annotated[float | None, Option("--abs", metavar="E", help="Bound: |x - y| <= E.")]
Relative = Annotated[float | None, Option("--rel", metavar="R", help="Bound: R times the range.")]
Pointwise = Annotated[float | None, Option(metavar="P", help="Bound: P times each |x|.")]
Speed = Annotated[str | None, Option(metavar="default|fast", help="A better ratio, or faster.")]
Others = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help=_SET)]
RuleTexts = Annotated[list[str] | None, Option("--rule", metavar="PATTERN=CODEC[:NAME=VALUE,...]", help=_RULE)]
RuleFile = Annotated[Path | None, Option("--rules", metavar="FILE", help=_RULES)]
Seed = Annotated[int | None, Option(metavar="N", help="For codecs with stochastic rounding.")]
Zstd = Annotated[int | None, Option(metavar="LEVEL", help=_ZSTD)]
Check = Annotated[bool, Option(help="Decompress and compare before the file is written.")]


class Choice(NamedTuple):
    """The codecs of the arrays."""

    rules: list[Rule]  # the first that fits an array decides
    named: list[NamedRule]  # those of --rule among them


def chosen(
    codec: str | None,
    options: Mapping[str, Any],
    others: Sequence[str] | None,
    rule: Sequence[str] | None,
    rules: Path | None,
    seed: int | None,
) -> Choice:
    """The codecs of the command line, where `options` are parameters of the codec that have options of their own."""
    if codec is None:
        has_bound = any(options[name] is not None for name in ("abs", "rel", "pointwise"))
        codec = ErrorBounded.name if has_bound else Lossless.name
    rest = codec_named(codec, {**options, **parameters(others or [], "--set")})
    named = rules_of_options(rule or [])
    found = [*(each.rule for each in named), *([] if rules is None else rules_of_file(rules)), Rule(rest)]
    for each in found:
        check_seed(each.codec, seed)
    return Choice(found, named)


class Compressing:
    """Compresses the arrays of a file, by name, and measures each."""

    def __init__(
        self,
        content: Content[Array],
        rules: Sequence[Rule],
        settings: Settings,
        check: bool,
        rows: list[Measurement],
        against: Against | None = None,
    ) -> None:
        """The measurements are added to `rows`. With `check` arrays are decompressed and compared."""
        self._content, self._rules, self._settings, self._check = content, rules, settings, check
        self._rows, self._against = rows, against

    def __call__(self, name: str) -> Compressed:
        array, threads = self._content.arrays[name], self._settings.threads
        with naming(None, name):
            codec, reference = codec_for(self._rules, name, _dtypes.by_numpy(array.dtype), array.shape), None
            if self._against is not None:
                reference = self._against.reference(name, NUMPY, array, codec, threads or 0)
            compressed, row = measure.encode(name, array, codec, self._settings, reference)
        if self._check:
            row = measure.check(array, compressed, row, threads, reference)
            require([row])
        self._rows.append(row)
        return compressed


def check_output(source: Path, output: Path, count: int) -> None:
    """Raise ValueError unless a file may have the `count` compressed arrays of `source`."""
    if output.suffix in TORCH_SUFFIXES:
        expected = f"suffix {', '.join(_files.COMPRESSED_SUFFIXES)}"
        hint = "in Python, arrcomp.torch.save writes it"
        raise ValueError(f"{output}: expected {expected}, got {output.suffix!r}; {hint}")
    if source.suffix != ".npy" and output.suffix != ".safetensors":
        names = "s with names" if count != 1 else " with a name"
        expected = f"suffix .safetensors for {count} array{names} of {source}"
        raise ValueError(f"{output}: expected {expected}, got {output.suffix!r}")
    check_suffix(output, _files.COMPRESSED_SUFFIXES)
