"""What the site's search finds first: guides before measurements, and words that people search for.

    python docs/tools/site_search.py site        checks a site that was built: what each of `EXPECTED` finds
    python docs/tools/site_search.py site NaN    prints what a query finds, best first

Material for MkDocs gives the index to lunr in the browser. `found` ranks as both do, so that a check needs no browser.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# The weight of a page's words, by the beginning of its path: the first that fits. A word in a title weighs a thousand
# times as much as one in the text, so measurements need small weights.
_BOOSTS = (
    ("measurements/", 0.0002),
    (("format.md", "trust.md", "changelog.md", "contributing.md", "security.md"), 0.0002),
    (("reference/", "glossary.md"), 0.02),
    (("use/", "fields.md", "start.md", "choosing.md", "bounds.md"), 2.0),
)
# Words that people search for, and that the page does not have in a title.
_WORDS = {
    "use/files.md": ("save", "load", "checkpoint", "safetensors", "incremental"),
    "use/deltas.md": ("delta", "reference", "sync", "incremental", "diff"),
    "fields.md": ("xarray", "netCDF", "climate", "HDF5", "masked"),
    "use/stores.md": ("dask", "shard", "s3", "object store"),
    "use/transformers.md": ("transformers", "huggingface"),
    "use/compressed-models.md": ("weights", "from_pretrained", "LoRA", "DFloat11"),
    "use/kv-caches.md": ("KV cache", "attention", "LMCache", "generate"),
    "use/numpy.md": ("decompress",),
    "use/c.md": ("C++", "Rust", "library", "plugin", "h5py"),
    "use/training.md": ("memory", "adam"),
    "choosing.md": ("quantization", "quantisation", "int8", "int4", "fp8", "nf4"),
    "bounds.md": ("accuracy", "tolerance"),
    "speed.md": ("fastest", "benchmark", "slow"),
    "start.md": ("install", "tutorial"),
}
# What a query must find first. Several pages: any of them.
EXPECTED: Mapping[str, tuple[str, ...]] = {
    "xarray": ("fields.html", "use/stores.html"),
    "netCDF": ("fields.html",),
    "transformers": ("use/transformers.html",),
    "from_pretrained": ("use/compressed-models.html",),
    "KV cache": ("use/kv-caches.html",),
    "checkpoint": ("use/files.html", "use/pytorch.html"),
    "save model": ("use/files.html", "use/pytorch.html", "start.html"),
    "load model": ("use/files.html", "use/pytorch.html", "use/transformers.html"),
    "quantisation": ("choosing.html",),
    "quantization": ("choosing.html",),
    "NaN": ("codecs/error-bounded.html", "fields.html", "questions.html"),
    "decompress": ("use/numpy.html", "start.html"),
    "error bound": ("codecs/error-bounded.html", "bounds.html"),
    "fastest": ("speed.html",),
    "install": ("start.html",),
    "delta": ("use/deltas.html",),
    "weight sync": ("use/deltas.html",),
    "zarr": ("fields.html", "use/stores.html"),
    "dask": ("use/stores.html",),
    "h5py": ("use/c.html",),
    "Rust": ("use/c.html",),
    "DDP": ("use/collectives.html",),
    "nf4": ("codecs/codebook.html", "choosing.html"),
    "fp8": ("codecs/float-format.html", "choosing.html"),
    "windows": ("platforms.html", "questions.html", "limits.html"),
}
_TITLE, _TAGS = 1e3, 1e6  # weights of Material for MkDocs
_K1 = 1.2  # of lunr


def boost_of(page: str) -> float:
    """The weight of a page's words in the search."""
    return next((boost for begin, boost in _BOOSTS if page.startswith(begin)), 1.0)


def words_of(page: str) -> tuple[str, ...]:
    """What people search for to find this page, besides its own words."""
    return _WORDS.get(page, ())


def found(index: Mapping[str, Any], query: str) -> list[str]:
    """The pages that a query finds, best first."""
    entries, separator = index["docs"], re.compile(index["config"]["separator"])
    scores: dict[str, float] = {}
    terms = list(_terms(query, separator))
    for entry, score, matched in _scored(entries, terms, separator):
        page, _, part = entry["location"].partition("#")
        whole = (not part) + matched / len(terms)
        scores[page] = max(scores.get(page, 0), score * (1 + whole**2))
    return sorted(scores, key=lambda page: -scores[page])


def _scored(
    entries: list[Any], terms: list[str], separator: re.Pattern[str]
) -> Iterator[tuple[Mapping[str, Any], float, int]]:
    """Each entry that has words which begin with a term, its score, and how many of the terms."""
    fields = ("title", "text", "tags")
    counted = [{field: _counts(entry.get(field, ""), separator) for field in fields} for entry in entries]
    holding: dict[str, int] = {}
    for one in counted:
        for counts in one.values():
            for word in counts:
                holding[word] = holding.get(word, 0) + 1
    for entry, one in zip(entries, counted, strict=True):
        score, matched = 0.0, set()
        for field, weight in zip(fields, (_TITLE, 1.0, _TAGS), strict=True):
            for word, count in one[field].items():
                begun = {term for term in terms if word.startswith(term)}
                if begun:
                    rare = math.log(1 + abs((len(entries) - holding[word] + 0.5) / (holding[word] + 0.5)))
                    score += len(begun) * rare * (_K1 + 1) * count / (_K1 + count) * weight * entry.get("boost", 1)
                    matched |= begun
        if matched:
            yield entry, score, len(matched)


def _counts(text: str | list[str], separator: re.Pattern[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in [text] if isinstance(text, str) else text:
        for word in _terms(re.sub(r"<[^>]*>", " ", part), separator):
            counts[word] = counts.get(word, 0) + 1
    return counts


def _terms(text: str, separator: re.Pattern[str]) -> Iterator[str]:
    return (word.lower() for word in separator.split(text) if word)


def main() -> int:
    """Parse the command line, and check or print; 1 if a query finds something else first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("query", nargs="?")
    options = parser.parse_args()
    index = json.loads((options.site / "search" / "search_index.json").read_text("utf-8"))
    if options.query:
        print("\n".join(found(index, options.query)[:8]))
        return 0
    wrong = 0
    for query, pages in EXPECTED.items():
        first = (found(index, query) or ["nothing"])[:4]
        if first[0] not in pages:
            wrong += 1
            print(f"search {query!r}: expected {' or '.join(pages)} first, got {', '.join(first)}", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
