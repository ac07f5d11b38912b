"""The figures that the README quotes: a block between two marks, written from results.csv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data import MINILM
from measure import Result

README = Path(__file__).parent.parent.parent / "README.md"
BEGIN, END = "<!-- results: written by bench/results.py -->", "<!-- /results -->"
# Array, setting and compressor, and what the README calls them.
_ROWS = (
    (MINILM, "abs 1e-03", "arrcomp", "**arrcomp**, error at most 1e-3"),
    (MINILM, "abs 1e-03", "arrcomp fast", '**arrcomp**, `speed="fast"`'),
    (MINILM, "abs 1e-03", "SZ3 no predictor", "SZ3, no predictor"),
    (MINILM, "abs 1e-03", "quantize + pcodec", "float32 quantizer + pcodec"),
    (MINILM, "abs 1e-03", "zfp", "zfp"),
    (MINILM, "lossless", "arrcomp", "**arrcomp**, lossless"),
    (MINILM, "lossless", "zipnn", "zipnn"),
    (MINILM, "lossless", "pcodec", "pcodec"),
    (MINILM, "lossless", "byte planes + zstd 1", "byte planes + Zstandard 1"),
    (f"{MINILM}_bfloat16", "lossless", "arrcomp", "**arrcomp**, lossless, bfloat16"),
    (f"{MINILM}_bfloat16", "lossless", "zipnn", "zipnn, bfloat16"),
    (f"{MINILM}_bfloat16", "lossless", "pcodec", "pcodec, bfloat16"),
)


def block(results: Sequence[Result]) -> str:
    """The table.

    Raises:
        LookupError: something that it shows was not measured.
    """
    found = {(result.array, result.setting, result.compressor): result for result in results if not result.failure}
    missing = [label for *key, label in _ROWS if tuple(key) not in found]
    if missing:
        raise LookupError(f"not measured, but shown in {README.name}: {', '.join(missing)}")
    rows = [_row(label, found[array, setting, name]) for array, setting, name, label in _ROWS]
    return "\n".join(["| | ratio | encode | decode | bound kept |", "|---|---|---|---|---|", *rows])


def with_block(text: str, results: Sequence[Result]) -> str:
    """A README with the block as these results give it.

    Raises:
        LookupError: as `block`.
        ValueError: the marks are not there, once each.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{README.name}: {BEGIN} and {END}, once each, are needed")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{block(results)}\n{END}{rest.partition(END)[2]}"


def _row(label: str, result: Result) -> str:
    kept = "no" if result.broken else "exact" if result.setting == "lossless" else "yes"
    return f"| {label} | {result.ratio:.3f} | {result.encode:.2f} | {result.decode:.2f} | {kept} |"
