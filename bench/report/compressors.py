"""What compressors did, as text: summaries, where a peer is ahead, and every array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from data import MINILM
from harness.tables import table
from measure import Result
from run import error_text, ratio_text

_DEFAULT, _FAST = "arrcomp", "arrcomp fast"
_SAME_RATIO = 0.995  # half a percent less is not told apart
_SZ3 = ("SZ3", "SZ3 no predictor")
_BYTE_PLANES = ("byte planes + zstd 1", "byte planes + zstd 3")

# Array, setting and compressor, and what the short table calls them.
_SHORT = (
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

HOW = """\
Speeds are in GB/s (10^9 bytes) of the uncompressed array. "x copy" is the speed divided by that of `np.copyto` on an
array of the same size with touched pages, measured next to it in the same run. (Arrays of a few MB stay in the cache,
where a copy is faster.) Each figure is the median of at least 5 calls after a warm-up. All compressors use one thread
unless the name says otherwise. arrcomp writes into memory that is allocated once (`out=`). Other compressors allocate
their results if they have no such call, and this time counts. So does the time of NumPy code that they need:
"quantize" converts to int32 in float32 arithmetic, "byte planes" reorders bytes. SZ3 and zfp get the array's shape.
zfp's reversible mode is made for fields, so it is left out on flat arrays. "error" is the largest error divided by the
bound, in float64. V marks a broken bound (and by how much), or a lossless result that differs. Bounds "of range" are a
share of the array's range (largest minus smallest value). All compressors get the same absolute bound.

The machine is small and shared. Speeds vary from run to run by tens of percent, and by a factor of 3 if other programs
run at the same time; speeds with two threads vary most. Each section states the load. Compare figures of one run, best
with the memory copy next to them. Ratios and errors do not vary."""


def _is_variant(result: Result) -> bool:
    return result.compressor.startswith("arrcomp") and result.compressor not in (_DEFAULT, _FAST)


def plain(results: Sequence[Result]) -> list[Result]:
    """Without other instruction sets and threads."""
    return [result for result in results if not _is_variant(result)]


def _cases(results: Sequence[Result], lossless: bool) -> list[dict[str, Result]]:
    """For each array and setting, results by compressor."""
    chosen = [result for result in plain(results) if (result.setting == "lossless") == lossless]
    groups = groupby(chosen, key=lambda result: (result.array, result.setting))
    return [{result.compressor: result for result in group} for _, group in groups]


def _best(case: Mapping[str, Result], names: Iterable[str]) -> Result | None:
    """Of these compressors, the result of the best ratio."""
    found = [case[name] for name in names if name in case and case[name].failure is None]
    return max(found, key=lambda result: result.ratio, default=None)


def _ratio(result: Result | None) -> str:
    return "-" if result is None else ratio_text(result) + " V" * result.broken


def _times(ours: Result, others: Sequence[Result | None]) -> list[str]:
    """Encoding and decoding speed of ours, and of how many times the others' that is."""
    cells = []
    for speed in (_encode, _decode):
        multiples = ["-" if other is None else f"{speed(ours) / speed(other):.1f}" for other in others]
        cells.append(f"{speed(ours):.1f} ({', '.join(multiples)})")
    return cells


def _encode(result: Result) -> float:
    return result.encode


def _decode(result: Result) -> float:
    return result.decode


def short_summary(results: Sequence[Result]) -> str:
    """The weights of one trained network; empty where these were not measured."""
    found = {(result.array, result.setting, result.compressor): result for result in results if not result.failure}
    rows = [_short_row(label, found[array, setting, name]) for array, setting, name, label in _SHORT
            if (array, setting, name) in found]  # fmt: skip
    note = (
        "The weights of all-MiniLM-L6-v2, a trained sentence encoder (22.7 million values). Speeds are in GB/s of the\n"
        "uncompressed array, on one thread."
    )
    heads = ["<compressor", "ratio", "encode", "decode", "<bound kept"]
    return f"{note}\n\n{table(heads, rows)}" if rows else ""


def _short_row(label: str, result: Result) -> list[str]:
    kept = "no" if result.broken else "exact" if result.setting == "lossless" else "yes"
    return [label, f"{result.ratio:.3f}", f"{result.encode:.2f}", f"{result.decode:.2f}", kept]


def bounded_summary(results: Sequence[Result]) -> str:
    """What keeps a bound."""
    heads = ["<array", "<bound", "arrcomp", "fast", "SZ3", "quantize + pcodec", "encode", "decode"]
    rows = []
    for case in _cases(results, lossless=False):
        ours, sz3, pcodec = case[_DEFAULT], _best(case, _SZ3), _best(case, ["quantize + pcodec"])
        ratios = map(_ratio, (ours, case[_FAST], sz3, pcodec))
        rows.append([ours.array, ours.setting, *ratios, *_times(ours, [sz3, pcodec])])
    note = (
        "The first columns are ratios. Encode and decode are speeds of arrcomp's default in GB/s; the parentheses\n"
        "show how many times faster that is than SZ3 and pcodec. SZ3 is shown with the setting of the better ratio."
    )
    return f"{note}\n\n{table(heads, rows)}"


def lossless_summary(results: Sequence[Result]) -> str:
    """What keeps every bit."""
    heads = ["<array", "arrcomp", "fast", "pcodec", "zipnn", "byte planes + zstd", "encode", "decode"]
    rows = []
    for case in _cases(results, lossless=True):
        ours, pcodec, zipnn = case[_DEFAULT], _best(case, ["pcodec"]), _best(case, ["zipnn"])
        ratios = map(_ratio, (ours, case[_FAST], pcodec, zipnn, _best(case, _BYTE_PLANES)))
        rows.append([ours.array, *ratios, *_times(ours, [pcodec, zipnn])])
    note = (
        "The first columns are ratios. Encode and decode are speeds of arrcomp's default in GB/s; the parentheses\n"
        "show how many times faster that is than pcodec and zipnn. Zstandard is shown with the better of two levels."
    )
    return f"{note}\n\n{table(heads, rows)}"


def ahead(results: Sequence[Result]) -> str:
    """Peers that do better somewhere."""
    rows = []
    for case in _cases(results, lossless=False) + _cases(results, lossless=True):
        ours = [case[_DEFAULT], case[_FAST]]
        others = [name for name in case if name not in (_DEFAULT, _FAST)]
        best = _best(case, others)
        for peer in (case[name] for name in others if case[name].failure is None):
            leads = _ahead_in(peer, ours, peer is best)
            if leads:
                figures = [_ratio(peer), _ratio(ours[0]), *_speeds(peer), *_speeds(ours[0]), ", ".join(leads)]
                rows.append([peer.array, peer.setting, peer.compressor, *figures])
    heads = ["<array", "<setting", "<peer", "its ratio", "arrcomp's", "its encode, decode", "arrcomp's", "<ahead in"]
    note = (
        "Ahead in ratio is the best peer if its ratio is more than 0.5 % above that of arrcomp's default. Ahead in\n"
        "encoding or decoding is a peer that is faster than every setting of arrcomp with at least its ratio (less\n"
        "0.5 %). Speeds are in GB/s; those of arrcomp are of its default, which predicts nothing: [fields](FIELDS.md)\n"
        "are measured with predictors too, and activations, masks and counts [by columns](COLUMNS.md)."
    )
    return f"{note}\n\n{table(heads, rows)}" if rows else "Nowhere in this run."


def _speeds(result: Result) -> list[str]:
    return [f"{result.encode:#.3g}, {result.decode:#.3g}"]


def _ahead_in(peer: Result, ours: Sequence[Result], has_best_ratio: bool) -> list[str]:
    if peer.ratio * _SAME_RATIO > ours[0].ratio:
        return ["ratio"] * has_best_ratio
    rivals = [result for result in ours if result.ratio >= peer.ratio * _SAME_RATIO]
    speeds = {"encoding": _encode, "decoding": _decode}
    return [name for name, speed in speeds.items() if speed(peer) > max(map(speed, rivals))]


def variants(results: Sequence[Result]) -> str:
    """Arrcomp with each instruction set, and with two threads."""
    chosen = [result for result in results if _is_variant(result)]
    array = chosen[0].array if chosen else "no array"
    return f"Measured on {array}. All of them write the same bytes.\n\n{_figures(chosen)}"


def every_array(found: Mapping[str, Any], results: Sequence[Result]) -> str:
    """A table for each array."""
    shown = plain(results)
    return "\n\n".join(
        f"### {name}\n\n{about['description']}\n\n{_figures([result for result in shown if result.array == name])}"
        for name, about in found.items()
    )


def _figures(results: Sequence[Result]) -> str:
    heads = ["<setting", "<compressor", "ratio", "error", "encode GB/s", "x copy", "decode GB/s", "x copy"]
    return table(heads, map(_row, results))


def _row(result: Result) -> list[str]:
    name = f"**{result.compressor}**" if result.compressor in (_DEFAULT, _FAST) else result.compressor
    if result.failure is not None:
        return [result.setting, name, "failed", result.failure.replace("|", "/"), "", "", "", ""]
    speeds = [f"{speed:#.3g}" for rate in (result.encode, result.decode) for speed in (rate, rate / result.copy)]
    return [result.setting, name, ratio_text(result), error_text(result), *speeds]
