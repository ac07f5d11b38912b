"""The commands `arrcomp demo` and `arrcomp codecs`."""

from collections.abc import Sequence
from typing import Annotated

from typer import Option

from .._files.progress import progress
from ..codecs import QSGD, BaseDelta, Codebook, Codec, ErrorBounded, FloatFormat, Lossless, available_codecs
from . import measure, reports
from .choice import codec_class, completed_kinds
from .common import (
    Json,
    Quiet,
    Threads,
    Timings,
    one_line_errors,
    print_json,
    print_line,
    print_table,
    require,
    show,
)
from .measure import Measurement
from .page import Example, described

# What docs/choosing.md recommends for each kind of data.
_RECOMMENDED: dict[str, Codec] = {
    "trained_weights": ErrorBounded(abs=1e-3),
    "trained_weights_bfloat16": Lossless(),
    "gaussian_weights": Codebook.nf4(),
    "gradients": ErrorBounded(rel=1e-4),
    "embedding_gradients": QSGD(bits=4),
    "adam_first_moment": Codebook.dynamic8(),
    "activations": FloatFormat("mxfp8"),
    "relu_mask": Lossless(),
    "smooth_field": ErrorBounded(rel=1e-4, predictor="auto"),
    "token_counts": BaseDelta(),
}


@described(Example("Which codecs there are", "arrcomp codecs"), streams=False)
def codecs(as_json: Json = False) -> None:
    """List the codecs: what each guarantees, its dtypes, an example, and short names for usual parameters."""
    with one_line_errors():
        if as_json:
            print_json(reports.codecs_document())
        else:
            print_table(reports.codecs_table())
            print_line("")
            print_table(reports.presets_table())


@described(
    Example("Ten kinds of data, each with a codec for it", "arrcomp demo"),
    Example("One codec on all arrays", "arrcomp demo --codec error-bounded"),
    failed="a value breaks its guarantee",
    streams=False,
)
def demo(
    every: Annotated[bool, Option("--all", help="Every codec on every array; it takes a minute.")] = False,
    chosen: Annotated[
        list[str] | None,
        Option("--codec", metavar="NAME", help="This codec on every array.", autocompletion=completed_kinds),
    ] = None,
    threads: Threads = None,
    timings: Timings = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make realistic arrays, compress them, and check the decompressed arrays. It takes a few seconds."""
    from . import demo_data

    with one_line_errors():
        arrays = demo_data.demo_arrays() if every else demo_data.demo_arrays(steps=demo_data.FEW_STEPS)
        jobs = list(_RECOMMENDED.items())
        if every or chosen:
            kinds = [codec_class(name) for name in chosen] if chosen else available_codecs().values()
            examples = [codec for kind in kinds for codec in kind.examples()]
            jobs = [(name, codec) for name in arrays for codec in examples if codec.takes_numpy(arrays[name].dtype)]
        rows = []
        with progress("compressing", len(jobs), not quiet) as done:
            for name, codec in jobs:
                compressed, row = measure.encode(name, arrays[name], codec, measure.Settings(threads, seed=0))
                rows.append(measure.check(arrays[name], compressed, row, threads))
                done(row.spec.nbytes)
        if as_json or every or chosen:
            show(rows, as_json=as_json, quiet=quiet, total=False, timings=timings, verdict=_verdict(rows))
        elif not quiet:
            print_table(reports.demo_table(rows), _verdict(rows))
        require(rows)


def _verdict(rows: Sequence[Measurement]) -> str:
    broken = [row.name for row in rows if row.comparison is None or not row.comparison.holds]
    if broken:
        return f"{len(broken)} of {len(rows)} promises broken: {', '.join(dict.fromkeys(broken))}"
    return f"all {len(rows)} promises kept"
