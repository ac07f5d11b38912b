"""Compares codecs and layouts of a compressed KV cache on a small decoder; writes kv_caches.csv and KV_CACHES.md.

python bench/kv_caches.py                        trains the decoder first (bench/trained_decoder.py): many minutes
python bench/kv_caches.py --model FILE           its weights are read, if the file is there, and else kept in it
python bench/kv_caches.py --redraw               measures nothing: the page again, from kv_caches.csv
python bench/kv_caches.py --check                whether the page is what kv_caches.csv gives
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import DynamicCache

from arrcomp import QSGD, Codebook, Codec, ErrorBounded, FloatFormat, Lossless
from arrcomp.torch.lmcache import ArrcompDeserializer, ArrcompSerializer
from arrcomp.torch.transformers import CompressedCache
from harness.page import BENCH, Page, page_of_sections
from harness.section import Section
from harness.timing import by_turns

PLAIN, FORGETFUL = "DynamicCache", "no earlier tokens"
CHANNEL, TOKEN, BOTH = "by channel", "by token", "keys by channel, values by token"
LAYOUTS = {CHANNEL: ("channel", "channel"), TOKEN: ("token", "token"), BOTH: ("channel", "token")}
_BATCH = 8  # sequences at once
_ROUNDS, _QUICK_ROUNDS = 31, 3

Found = dict[str, Any]
Coding = Callable[[int], Codec]  # of elements that belong together: the tokens of a channel, or the channels of a token

CODINGS: Mapping[str, Coding] = {
    "Lossless()": lambda bucket: Lossless(),
    "Lossless(speed='fast')": lambda bucket: Lossless(speed="fast"),
    **{f"ErrorBounded(abs={bound})": partial(lambda bound, _: ErrorBounded(abs=bound), bound)
       for bound in (0.01, 0.03, 0.1, 0.3, 1.0)},
    "FloatFormat('fp8_e4m3')": lambda bucket: FloatFormat("fp8_e4m3"),
    **{f"QSGD({bits})": partial(lambda bits, bucket: QSGD(bits, bucket_size=bucket), bits) for bits in (8, 4, 3, 2)},
    "Codebook.nf4()": lambda bucket: Codebook.nf4(bucket_size=bucket),
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """What a cache is measured on.

    Attributes:
        block: tokens of a compressed block, and of a step that the text is read in.
        window: of the second measurement, in which the last tokens stay plain.
        lengths: tokens before the ones whose time is taken.
    """

    block: int = 128
    window: int = 128
    lengths: tuple[int, ...] = (512, 2048)


QUICK = Measured(block=16, window=16, lengths=(32, 64))


@cache
def decoder(quick: bool, file: Path | None) -> tuple[Any, Tensor]:
    """The model, float32, and text that it has not seen."""
    import trained_decoder

    size = trained_decoder.QUICK if quick else trained_decoder.Size()
    learned, held_out = trained_decoder.encoded(size)
    if file is not None and file.exists():
        model = trained_decoder.made(size)
        model.load_state_dict(torch.load(file))
    else:
        model = trained_decoder.trained(size, learned)
        if file is not None:
            torch.save(model.state_dict(), file)
    sequences = len(held_out) // size.context
    return model.eval(), held_out[: sequences * size.context].view(sequences, size.context)


class _Short:
    """Keeps keys and values in bfloat16 for a model that computes in float32, which is faster on most CPUs."""

    def update(self, keys: Tensor, values: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        kept = super().update(keys.bfloat16(), values.bfloat16(), *args, **options)  # type: ignore[misc]
        return kept[0].float(), kept[1].float()


class _Plain(_Short, DynamicCache):
    """A plain cache in bfloat16."""


class _Forgetful(DynamicCache):
    """Keeps nothing."""

    def update(self, keys: Tensor, values: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        return keys, values


class _Compressed(_Short, CompressedCache):
    """A compressed cache of bfloat16."""


def made_cache(name: str, layout: str | None, block: int, window: int, channels: int, short: bool = False) -> Any:
    """The cache of a codec's name and a layout's, or the usual one; `short` for bfloat16 below a model of float32."""
    if name == PLAIN:
        return _Plain() if short else DynamicCache()
    keys, values = LAYOUTS[layout] if layout else (None, None)
    codecs = [CODINGS[name](channels if of == "token" else block) for of in (keys, values)]
    options: Any = {"layout": keys, "value_layout": values, "block": block, "window": window, "threads": 1}
    return (_Compressed if short else CompressedCache)(codecs[0], value_codec=codecs[1], **options)


# What is measured


def quality(quick: bool, file: Path | None) -> Found:
    """By codec and layout: bytes of a compressed token, and the perplexity without and with plain recent tokens."""
    torch.set_num_threads(1)
    model, text = decoder(quick, file)
    about, found = QUICK if quick else Measured(), Found()
    text = text[: 2 * _BATCH] if quick else text
    for name, layout in _cases():
        make = partial(made_cache, name, layout, about.block, channels=model.config.head_dim, short=True)
        nbytes, perplexity = _read(model, text, about.block, partial(make, window=0))
        _, windowed = _read(model, text, about.block // 4, partial(make, window=about.window))
        found.setdefault(name, {})[layout] = {"bytes": nbytes, "perplexity": perplexity, "windowed": windowed}
        print(name, layout, found[name][layout], flush=True)
    return found


def _cases() -> Iterator[tuple[str, str]]:
    yield PLAIN, CHANNEL
    for name in CODINGS:
        # A float format sees each value alone.
        yield from ((name, layout) for layout in (LAYOUTS if not name.startswith("FloatFormat") else (CHANNEL,)))


@torch.no_grad()
def _read(model: Any, text: Tensor, step: int, make: Callable[[], Any]) -> tuple[float, float]:
    """Bytes a token of the caches at the end, and the perplexity of the last three quarters of each sequence."""
    losses, nbytes, tokens = [], 0, 0
    skipped = text.shape[1] // 4
    for batch in text.split(_BATCH):
        own = make()
        logits = torch.cat([model(part, past_key_values=own).logits for part in batch.split(step, dim=1)], dim=1)
        predicted, following = logits[:, skipped:-1].float().flatten(0, 1), batch[:, skipped + 1 :].flatten()
        losses.append(cross_entropy(predicted, following, reduction="sum"))
        nbytes, tokens = nbytes + _nbytes(own), tokens + batch.numel()
    return nbytes / tokens, math.exp(float(sum(losses)) / (len(text) * (text.shape[1] - skipped - 1)))


def _nbytes(own: Any) -> int:
    nbytes: int | None = getattr(own, "nbytes", None)
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in own.layers) if nbytes is None else nbytes


def forgetful(quick: bool, file: Path | None) -> Found:
    """The perplexity where attention sees no token of an earlier step: the most that a codec could lose."""
    torch.set_num_threads(1)
    model, text = decoder(quick, file)
    about = QUICK if quick else Measured()
    text = text[: 2 * _BATCH] if quick else text
    return {FORGETFUL: {"perplexity": _read(model, text, about.block, _Forgetful)[1]}}


def times(quick: bool, file: Path | None) -> Found:
    """By the number of tokens before, and codec: seconds that a token takes."""
    torch.set_num_threads(1)
    model, text = decoder(quick, file)
    model = copy.deepcopy(model).bfloat16()
    about, found = QUICK if quick else Measured(), Found()
    for length in about.lengths:
        tokens = text.flatten()[None, :length]
        make = partial(
            made_cache, layout=CHANNEL, block=about.block, window=about.window, channels=model.config.head_dim
        )
        caches = {name: make(name) for name in (PLAIN, *CODINGS)}
        for own in caches.values():
            _step(model, tokens, own)
        calls = {name: partial(_step, model, tokens[:, :1], own) for name, own in caches.items()}
        samples = by_turns(calls, _QUICK_ROUNDS if quick else _ROUNDS, warm=2)
        found[str(length)] = {name: {"time": min(seconds)} for name, seconds in samples.items()}
        print(length, found[str(length)], flush=True)
    return found


def objects(quick: bool, file: Path | None) -> Found:
    """By codec and layout of what LMCache stores: ratio, the error of quantizers, and speeds."""
    torch.set_num_threads(1)
    model, text = decoder(quick, file)
    x, found = _stored(model, text.flatten()[None, : 2 * (QUICK if quick else Measured()).block]), Found()
    for name in CODINGS:
        for layout in (CHANNEL, TOKEN) if not name.startswith("FloatFormat") else (CHANNEL,):
            bucket = x.shape[-2] if layout == CHANNEL else model.config.head_dim
            found.setdefault(name, {})[layout] = _stored_as(x, CODINGS[name](bucket), LAYOUTS[layout][0])
    return found


@torch.no_grad()
def _stored(model: Any, tokens: Tensor) -> Tensor:
    """Keys and values as LMCache has them, bfloat16 (2, layers, tokens, channels of all heads)."""
    own = DynamicCache()
    model(tokens, past_key_values=own)
    kinds = [
        [getattr(layer, kind)[0].transpose(0, 1).flatten(1) for layer in own.layers] for kind in ("keys", "values")
    ]
    return torch.stack([torch.stack(layers) for layers in kinds]).bfloat16()


class _Object:
    """What of LMCache's objects a serializer uses."""

    def __init__(self, x: Tensor) -> None:
        self.tensor = x

    def get_shapes(self) -> list[Any]:
        return [self.tensor.shape]

    def get_tensor(self, index: int) -> Tensor:
        return self.tensor


def _stored_as(x: Tensor, codec: Codec, layout: Any) -> Found:
    serializer, deserializer = ArrcompSerializer(codec, layout=layout, threads=1), ArrcompDeserializer(threads=1)
    layout_of = SimpleNamespace(shapes=[x.shape], dtypes=[x.dtype])
    stored = torch.zeros(serializer.estimate_serialized_size(layout_of), dtype=torch.uint8)
    source, buffer, target = _Object(x), _Object(stored), _Object(torch.zeros_like(x))
    nbytes = serializer.serialize(source, buffer, None)
    calls = {
        "serialize": lambda: serializer.serialize(source, buffer, None),
        "deserialize": lambda: deserializer.deserialize(buffer, target, None),
    }
    samples = by_turns(calls, _ROUNDS, warm=2)
    speeds = {kind: x.nbytes / min(seconds) / 1e9 for kind, seconds in samples.items()}
    error = float((x.double() - target.tensor.double()).square().mean().sqrt() / x.double().square().mean().sqrt())
    return {"ratio": x.nbytes / nbytes, "error": error, **speeds}


@torch.no_grad()
def _step(model: Any, tokens: Tensor, cache: Any) -> None:
    model(tokens, past_key_values=cache, logits_to_keep=1)


# The page


def _section(title: str, measure: Callable[[bool, Path | None], Found], file: Path | None, *levels: str) -> Section:
    return Section(
        title,
        lambda quick: measure(quick, file),
        lambda found: "",  # the page is written of both groups: report/kv_caches.py
        levels=levels,
        units={"bytes": "B", "time": "s", "serialize": "GB/s", "deserialize": "GB/s"},
        versions=("arrcomp", "numpy", "torch", "transformers", "tokenizers"),
    )


def page_of(file: Path | None) -> Page:
    """What is measured and written, with a file of trained weights or without one."""
    from report import kv_caches as report

    sections = {
        "quality": _section("Bytes and perplexity", quality, file, "method", "setting", "metric"),
        "forgetful": _section("Without earlier tokens", forgetful, file, "method", "metric"),
        "times": _section("Time a token", times, file, "setting", "method", "metric"),
        "objects": _section("Objects of LMCache", objects, file, "method", "setting", "metric"),
    }
    return page_of_sections(
        "kv_caches", __doc__, sections, lambda document, to: {to / "KV_CACHES.md": report.markdown(document)}
    )


def main() -> None:
    """Parse the command line, measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="FILE", help="of the decoder's weights")
    parser.add_argument("--only", metavar="quality,forgetful,times,objects", help="these groups alone")
    parser.add_argument("--quick", action="store_true", help="a little of everything: figures mean little")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: read kv_caches.csv again")
    parser.add_argument("--check", action="store_true", help="compare the page with kv_caches.csv")
    parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="for the files")
    options = parser.parse_args()
    page = page_of(options.model)
    if options.redraw or options.check:
        page.check(options.output) if options.check else page.show(options.output, list(page.sections))
        return
    names = options.only.split(",") if options.only else list(page.sections)
    if unknown := set(names) - set(page.sections):
        parser.error(f"--only: expected {', '.join(page.sections)}, got {', '.join(sorted(unknown))}")
    page.measure(names, quick=options.quick, folder=options.output)


if __name__ == "__main__":
    main()
