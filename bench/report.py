"""RESULTS.md: what was measured, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from measure import Result
from run import error_text, ratio_text

_DEFAULT, _FAST = "arrcomp", "arrcomp fast"
_SAME_RATIO = 0.995  # half a percent less is not told apart
_SZ3 = ("SZ3", "SZ3 no predictor")
_BYTE_PLANES = ("byte planes + zstd 1", "byte planes + zstd 3")

_HOW = """\
Speeds are in GB/s (10^9 bytes) of the uncompressed array; "x copy" divides by the speed of `np.copyto` on an array of
the same size with touched pages, measured beside it in the same run (arrays of a few MB stay in the cache, where a copy
is faster). Medians of at least 5 calls after a warm-up. All compressors use one thread unless the name says otherwise.
arrcomp writes into memory that is allocated once (`out=`); a peer that has no such call allocates, and that counts, as
does what NumPy does for it ("quantize": to int32, in float32 arithmetic; "byte planes"). SZ3 and zfp see the array's
shape. "error" is the largest error by the bound, both in float64; V marks a bound that is broken (and by how much), or
a lossless result with another bit. Bounds "of range" are this share of the array's largest minus smallest value, given
to all as the same absolute bound.

The machine is small and shared, so speeds vary from run to run by tens of percent: compare figures of one run, best
with the copy beside them. Ratios and errors do not vary.
"""


def markdown(document: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The page.

    Args:
        document: `machine`, `versions`, `date`, `minutes`, `load` and `arrays`, as results.json has them.
        results: all measurements, arrays and settings each in one piece.
    """
    plain = [result for result in results if not _is_variant(result)]
    sections = [
        "# Results\n\nWritten by `python bench/results.py`; [results.json](results.json) has every figure.",
        _conditions(document),
        "## How it is measured\n\n" + _HOW.rstrip(),
        "![Ratio against speed](results.png)",
        "## Error-bounded: arrcomp, SZ3 and pcodec\n\n" + _bounded_summary(plain),
        "## Lossless: arrcomp, pcodec, zipnn and Zstandard\n\n" + _lossless_summary(plain),
        "## Where a peer is ahead\n\n" + _ahead(plain),
        "## Instruction sets and threads\n\n" + _variants(results),
        "## All figures",
        *(_array(name, about, plain) for name, about in document["arrays"].items()),
    ]
    return "\n\n".join(sections) + "\n"


def _conditions(document: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines = [f"- {name}: {value}" for name, value in document["machine"].items()]
    load = " and ".join(f"{value:.1f}" for value in document["load"])
    lines += [f"- versions: {versions}", f"- date: {document['date']}, in {document['minutes']:.1f} minutes"]
    return "\n".join([*lines, f"- load average over a minute before and after: {load} (this run alone makes about 1)"])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the columns after those of text, marked by a leading '<', are aligned to the right."""
    names = [head.removeprefix("<") for head in heads]
    rule = ["---" if head.startswith("<") else "---:" for head in heads]
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, rule, *rows))


def _is_variant(result: Result) -> bool:
    return result.compressor.startswith("arrcomp") and result.compressor not in (_DEFAULT, _FAST)


def _cases(results: Sequence[Result], lossless: bool) -> list[dict[str, Result]]:
    """For each array and setting, results by compressor."""
    chosen = [result for result in results if (result.setting == "lossless") == lossless]
    groups = groupby(chosen, key=lambda result: (result.array, result.setting))
    return [{result.compressor: result for result in group} for _, group in groups]


def _best(case: Mapping[str, Result], names: Iterable[str]) -> Result | None:
    """Of these compressors, the result of the best ratio."""
    found = [case[name] for name in names if name in case and case[name].failure is None]
    return max(found, key=lambda result: result.ratio, default=None)


def _ratio(result: Result | None) -> str:
    return "-" if result is None else ratio_text(result) + " V" * result.broken


def _times(ours: Result, other: Result | None) -> list[str]:
    """How many times as fast ours encodes and decodes."""
    return ["-", "-"] if other is None else [f"{ours.encode / other.encode:.1f}", f"{ours.decode / other.decode:.1f}"]


def _bounded_summary(results: Sequence[Result]) -> str:
    heads = ["<array", "<bound", "arrcomp", "fast", "SZ3", "quantize + pcodec", "encode x SZ3", "decode x SZ3"]
    heads += ["encode x pcodec", "decode x pcodec"]
    rows = []
    for case in _cases(results, lossless=False):
        ours, sz3, pcodec = case[_DEFAULT], _best(case, _SZ3), _best(case, ["quantize + pcodec"])
        ratios = map(_ratio, (ours, case[_FAST], sz3, pcodec))
        rows.append([ours.array, ours.setting, *ratios, *_times(ours, sz3), *_times(ours, pcodec)])
    note = (
        "Ratios; and how many times as fast arrcomp's default is. SZ3 stands for the better in ratio of its two "
        "settings."
    )
    return f"{note}\n\n{table(heads, rows)}"


def _lossless_summary(results: Sequence[Result]) -> str:
    heads = ["<array", "arrcomp", "fast", "pcodec", "zipnn", "byte planes + zstd", "encode x pcodec", "decode x pcodec"]
    heads += ["encode x zipnn", "decode x zipnn"]
    rows = []
    for case in _cases(results, lossless=True):
        ours, pcodec, zipnn = case[_DEFAULT], _best(case, ["pcodec"]), _best(case, ["zipnn"])
        ratios = map(_ratio, (ours, case[_FAST], pcodec, zipnn, _best(case, _BYTE_PLANES)))
        rows.append([ours.array, *ratios, *_times(ours, pcodec), *_times(ours, zipnn)])
    note = "Ratios (of Zstandard the better of two levels); and how many times as fast arrcomp's default is."
    return f"{note}\n\n{table(heads, rows)}"


def _ahead(results: Sequence[Result]) -> str:
    rows = []
    for case in _cases(results, lossless=False) + _cases(results, lossless=True):
        ours = [case[_DEFAULT], case[_FAST]]
        for name, peer in case.items():
            if name in (_DEFAULT, _FAST) or peer.failure is not None:
                continue
            ahead = _ahead_in(peer, ours)
            if ahead:
                figures = [_ratio(peer), _ratio(ours[0]), *_speeds(peer), *_speeds(ours[0]), ", ".join(ahead)]
                rows.append([peer.array, peer.setting, name, *figures])
    heads = ["<array", "<setting", "<peer", "its ratio", "arrcomp's", "its encode, decode", "arrcomp's", "<ahead in"]
    note = (
        "In ratio: by more than 0.5% over arrcomp's default. In encoding or decoding: faster than every setting of\n"
        "arrcomp that has at least its ratio. Speeds in GB/s."
    )
    return f"{note}\n\n{table(heads, rows)}" if rows else "Nowhere in this run."


def _speeds(result: Result) -> list[str]:
    return [f"{result.encode:#.3g}, {result.decode:#.3g}"]


def _ahead_in(peer: Result, ours: Sequence[Result]) -> list[str]:
    if peer.ratio * _SAME_RATIO > ours[0].ratio:
        return ["ratio"]
    rivals = [result for result in ours if result.ratio >= peer.ratio * _SAME_RATIO]
    speeds: dict[str, Callable[[Result], float]] = {"encoding": lambda r: r.encode, "decoding": lambda r: r.decode}
    return [name for name, speed in speeds.items() if speed(peer) > max(map(speed, rivals))]


def _variants(results: Sequence[Result]) -> str:
    chosen = [result for result in results if _is_variant(result)]
    return "The bytes are the same in all of them.\n\n" + _figures(chosen)


def _array(name: str, about: str, results: Sequence[Result]) -> str:
    return f"### {name}\n\n{about}\n\n{_figures([result for result in results if result.array == name])}"


def _figures(results: Sequence[Result]) -> str:
    heads = ["<setting", "<compressor", "ratio", "error", "encode GB/s", "x copy", "decode GB/s", "x copy"]
    return table(heads, map(_row, results))


def _row(result: Result) -> list[str]:
    name = f"**{result.compressor}**" if result.compressor in (_DEFAULT, _FAST) else result.compressor
    if result.failure is not None:
        return [result.setting, name, "failed", result.failure.replace("|", "/"), "", "", "", ""]
    speeds = [f"{speed:#.3g}" for rate in (result.encode, result.decode) for speed in (rate, rate / result.copy)]
    return [result.setting, name, ratio_text(result), error_text(result), *speeds]
