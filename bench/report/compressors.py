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
Speeds are in GB/s (10^9 bytes) of the uncompressed array; "x copy" divides by the speed of `np.copyto` on an array of
the same size with touched pages, measured beside it in the same run (arrays of a few MB stay in the cache, where a
copy is faster). Medians of at least 5 calls after a warm-up. All compressors use one thread unless the name says
otherwise. arrcomp writes into memory that is allocated once (`out=`); a peer that has no such call allocates, and
that counts, as does what NumPy does for it ("quantize": to int32, in float32 arithmetic; "byte planes"). SZ3 and zfp
see the array's shape; zfp's reversible mode, made for fields, is left out on flat arrays. "error" is the largest
error by the bound, both in float64; V marks a bound that is broken (and by how much), or a lossless result with
another bit. Bounds "of range" are this share of the array's largest minus smallest value, given to all as the same
absolute bound.

The machine is small and shared: speeds vary from run to run by tens of percent, and single ones by a factor of 3 where
other programs run beside (each section has its load), those of two threads above all. Compare figures of one run, best
with the copy beside them. Ratios and errors do not vary."""


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
        "Ratios; then encoding and decoding by arrcomp's default, in GB/s, and in parentheses as multiples of SZ3's\n"
        "and pcodec's speed. SZ3 stands for that one of its two settings which has the better ratio."
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
        "Ratios (of Zstandard the better of two levels); then encoding and decoding by arrcomp's default, in GB/s,\n"
        "and in parentheses as multiples of pcodec's and zipnn's speed."
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
        "In ratio: the best peer, if more than 0.5% above arrcomp's default. In encoding or decoding: faster than\n"
        "every setting of arrcomp that has at least its ratio (less 0.5%). Speeds in GB/s, arrcomp's those of its\n"
        "default."
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
    return f"On {array}; the bytes are the same in all of them.\n\n{_figures(chosen)}"


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
