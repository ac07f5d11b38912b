"""The page of bench/kv_caches.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import conditions
from harness.page import markdown_of
from harness.tables import table

_TITLES = {
    "quality": "Bytes and perplexity",
    "forgetful": "No earlier tokens",
    "times": "Time a token",
    "objects": "Objects of LMCache",
}
_PLAIN = "DynamicCache"

_HOW = """\
The decoder has the architecture of Llama: 4 layers of width 256, 4 heads of queries and 2 of keys and values, each of
64 channels, and rotary positions; 3.4 million parameters. bench/trained_decoder.py trains it for 500 steps of 4 texts
of 512 tokens, on one thread. The text is in every Python: the English language reference (`pydoc_data.topics`) and the
docstrings of the standard library, 1.9 MB in tokens of 2048 byte pairs. One topic in ten is held out. Its 46 sequences
of 512 tokens are read here. The model computes in float32, and the caches keep bfloat16.

"Bytes a token" is what all layers keep of a token that is compressed, in blocks of 128 tokens. The perplexity is that
of the last 384 tokens of each sequence. They are read in steps of 128 tokens with no window (`window=0`): attention
sees all tokens of earlier steps compressed, and those of its own step plain. This is the hardest case. "Change" is that
of the perplexity against `DynamicCache`, where "0" means the same number. "Change, window" is the same with the usual
window of 128 plain tokens, read in steps of 32. In the last row attention sees the tokens of its own step alone: the
difference is what the cache is worth to this model.

By channel: the 128 tokens of a channel in a block follow each other, and are the bucket of `QSGD` and `Codebook`. By
token: the 64 channels of a token in a head do. So buckets by token are half as large, and their scales take twice the
bytes. The third layout is that of KIVI (arXiv:2402.02750). An absolute bound and FP8 see each value alone: their
layouts differ in bytes alone, or not at all. Changes of a few hundredths of a percent are of either sign, and say
nothing. At 2 and 3 bits by channel loses least, with the fewest bytes; the layout of KIVI is no better here than the
one by token. So by channel is what `QSGD` and `Codebook` get where no layout is given. The others get the one by token:
their streams are as short, and nothing is transposed.

Times are of one thread and of the model in bfloat16, the least of 31 tokens; all caches take turns in one process. The
layouts are the usual ones, with a window of 128 tokens. The time of `DynamicCache` is that of the model: what is above
it is decompression, and copies into one tensor for each layer. It grows with the length. The machine is small and
shared: times vary from run to run by tens of percent, and bytes do not.

Objects of LMCache are bfloat16 keys and values of 256 tokens, (2 kinds, 4 layers, 256 tokens, 128 channels), 512 KiB:
the beginning of the text. A bucket by channel has 256 tokens, and by token 64 channels. The error is relative to the
root of the mean square of the values. Speeds are of the plain bytes, the fastest of 31 calls on one thread, with the
checksum and the copy into LMCache's buffer in them.

The model is small and was trained for minutes, so its perplexity is high, and its keys may have fewer large channels
than those of models of billions of parameters (arXiv:2401.18079). Measure the quality of your own model before you use
a lossy codec."""

Found = Mapping[str, Any]


def markdown(document: Mapping[str, Any]) -> str:
    """KV_CACHES.md."""
    return markdown_of("kv_caches", "KV caches, measured", _sections(document))


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "quality" in document:
        forgetful = document.get("forgetful", {"found": {}})["found"]
        yield _TITLES["quality"], _quality(document["quality"]["found"], forgetful)
    if "times" in document:
        yield _TITLES["times"], _times(document["times"]["found"])
    if "objects" in document:
        yield _TITLES["objects"], _objects(document["objects"]["found"])
    yield "How it is measured", f"{_HOW}\n\n{conditions.said_of(document, _TITLES)}"


def _quality(found: Found, forgetful: Found) -> str:
    plain = next(iter(found[_PLAIN].values()))
    rows = []
    for name, layouts in found.items():
        for layout, of in layouts.items():
            alone = name == _PLAIN or len(layouts) == 1
            smaller = plain["bytes"] / of["bytes"]
            cells = [f"{of['perplexity']:.2f}", *(_worse(of, plain, kind) for kind in ("perplexity", "windowed"))]
            rows.append([f"`{name}`", "" if alone else layout, f"{of['bytes']:.0f}", f"{smaller:.2f}", *cells])
    for name, of in forgetful.items():
        rows.append([name, "", "0", "", f"{of['perplexity']:.2f}", _worse(of, plain, "perplexity"), ""])
    heads = ["<codec", "<layout", "bytes a token", "times smaller", "perplexity", "change", "change, window"]
    return table(heads, rows)


def _worse(of: Mapping[str, float], plain: Mapping[str, float], kind: str) -> str:
    if of[kind] == plain[kind]:
        return "0"
    change = f"{of[kind] / plain[kind] - 1:+.2%}"
    return change if float(change[:-1]) else "0.00%"


def _times(found: Found) -> str:
    lengths = list(found)
    rows = [[f"`{name}`", *(f"{1e3 * found[length][name]['time']:.1f}" for length in lengths)]
            for name in found[lengths[0]]]  # fmt: skip
    heads = ["<codec", *(f"after {length} tokens" for length in lengths)]
    return f"Milliseconds a token:\n\n{table(heads, rows)}"


def _objects(found: Found) -> str:
    rows = []
    for name, layouts in found.items():
        for layout, of in layouts.items():
            speeds = f"{of['serialize']:.1f} / {of['deserialize']:.1f}"
            error = f"{of['error']:.2%}" if of["error"] else "0"
            rows.append([f"`{name}`", layout if len(layouts) > 1 else "", f"{of['ratio']:.2f}", error, speeds])
    return table(["<codec", "<layout", "times smaller", "error, rms", "serialize / deserialize, GB/s"], rows)
