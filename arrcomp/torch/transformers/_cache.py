"""A transformers `Cache` that keeps recent tokens plain and compresses older ones by block."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, DynamicLayer

from ..._api.compress import checked_unaided_codec
from ..._api.compressed import Compressed
from ..._api.many import compress_many, decompress_many
from ..._arguments import checked_integer, thread_count, wrong_type, wrong_value
from ...codecs import Codec
from .._layouts import Layout, checked_layout, turned
from .._tensors import dtype_of

_TOKENS = -2  # the axis of tokens in (batch, heads, tokens, channels)
_MOST_TOKENS = 1 << 31


@dataclass(frozen=True)
class _Coding:
    """How keys, or values, are compressed."""

    codec: Codec
    layout: Layout
    threads: int | None

    def compress(self, xs: list[Tensor]) -> list[Compressed]:
        """Compress arrays of shape (heads, tokens, channels)."""
        made: list[Compressed] = compress_many([turned(x, self.layout) for x in xs], self.codec, threads=self.threads)
        # On a device, payloads of one call share memory, and each occupies its capacity.
        return [c.trim() for c in made]

    def joined(self, arrays: Sequence[tuple["_Block", tuple[Compressed, ...]]], recent: Tensor) -> Tensor:
        """The tokens of blocks, decompressed, and recent ones, (batch, heads, tokens, channels)."""
        if not arrays:
            return recent
        distinct = {id(c): c for _, rows in arrays for c in rows}
        plain = decompress_many(distinct, threads=self.threads)
        older = [[turned(plain[id(c)], self.layout)[:, : block.tokens] for c in rows] for block, rows in arrays]
        sequences = [torch.cat(parts, dim=_TOKENS) for parts in zip(*older, recent, strict=True)]
        return sequences[0][None] if len(sequences) == 1 else torch.stack(sequences)


@dataclass(frozen=True)
class _Block:
    """Consecutive tokens of a layer, compressed for each sequence of the batch.

    Each sequence is an array of its own, so that beams share what they have in common, and a change of their order
    moves references instead of compressing again.

    Attributes:
        keys: of each sequence, (heads, tokens, channels) in the layout of the keys.
        values: the same of the values.
        tokens: how many of the compressed tokens still count. `crop` makes it smaller.
    """

    keys: tuple[Compressed, ...]
    values: tuple[Compressed, ...]
    tokens: int

    def select(self, rows: Sequence[int]) -> "_Block":
        keys, values = (tuple(arrays[row] for row in rows) for arrays in (self.keys, self.values))
        return replace(self, keys=keys, values=values)


class _CompressedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """The cache of one layer of full attention."""

    _keys: Tensor  # of the recent tokens
    _values: Tensor

    def __init__(self, keys: _Coding, values: _Coding, block: int, window: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._key_coding, self._value_coding = keys, values
        self._block, self._window = block, window
        self._blocks: list[_Block] = []

    # Cross-attention, and programs that take caches apart, read these attributes.

    @property
    def keys(self) -> Any:
        """The keys of all tokens, decompressed; None before there are any."""
        return self._key_coding.joined(self._blocks_of("keys"), self._keys) if self.is_initialized else None

    @keys.setter
    def keys(self, states: Any) -> None:
        _check_unset("keys", states)

    @property
    def values(self) -> Any:
        """The values of all tokens, decompressed; None before there are any."""
        return self._value_coding.joined(self._blocks_of("values"), self._values) if self.is_initialized else None

    @values.setter
    def values(self, states: Any) -> None:
        _check_unset("values", states)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self._key_coding.codec.check_dtype(dtype_of(key_states))
        self._value_coding.codec.check_dtype(dtype_of(value_states))
        self.dtype, self.device = key_states.dtype, key_states.device
        self._keys, self._values = key_states[:, :, :0], value_states[:, :, :0]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Add tokens. The result has all tokens: earlier ones as they decompress, these as they are."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._keys = torch.cat([self._keys, key_states], dim=_TOKENS)
        self._values = torch.cat([self._values, value_states], dim=_TOKENS)
        keys, values = self.keys, self.values
        self._compress_oldest((self._keys.shape[_TOKENS] - self._window) // self._block)
        return keys, values

    def _blocks_of(self, kind: str) -> list[tuple[_Block, tuple[Compressed, ...]]]:
        return [(block, getattr(block, kind)) for block in self._blocks]

    def _compress_oldest(self, count: int) -> None:
        """Compress so many blocks of the plain tokens."""
        if count <= 0:
            return
        keys = self._key_coding.compress(self._cut(self._keys, count))
        values = self._value_coding.compress(self._cut(self._values, count))
        batch = len(self._keys)
        for start in range(0, count * batch, batch):
            rows = slice(start, start + batch)
            self._blocks.append(_Block(tuple(keys[rows]), tuple(values[rows]), self._block))
        # A copy: a view would keep the memory of all of them.
        self._keys, self._values = (x[:, :, count * self._block :].clone() for x in (self._keys, self._values))

    def _cut(self, x: Tensor, count: int) -> list[Tensor]:
        """The oldest blocks, of each the sequences of the batch."""
        return [
            row[:, start : start + self._block] for start in range(0, count * self._block, self._block) for row in x
        ]

    @property
    def _compressed_tokens(self) -> int:
        return sum(block.tokens for block in self._blocks)

    def get_seq_length(self) -> int:
        return self._compressed_tokens + self._keys.shape[_TOKENS] if self.is_initialized else 0

    def reset(self) -> None:
        self._blocks, self.is_initialized = [], False
        self._keys = self._values = None  # type: ignore[assignment]  # until there are tokens again
        super().reset()

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens; their number is given as a negative one, as transformers does."""
        if tokens_to_remove > 0:
            raise wrong_value("tokens_to_remove", "0 or a negative number of tokens", tokens_to_remove)
        if not (self.is_initialized and tokens_to_remove):
            return
        kept = max(self.get_seq_length() + tokens_to_remove, 0)
        recent = max(kept - self._compressed_tokens, 0)
        self._keys, self._values = self._keys[:, :, :recent], self._values[:, :, :recent]
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            tokens = min(block.tokens, kept - self._compressed_tokens)
            if tokens > 0:
                self._blocks.append(replace(block, tokens=tokens))

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.is_initialized:
            self.batch_select_indices(torch.arange(len(self._keys)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these sequences of the batch: indices, or a mask."""
        if not self.is_initialized:
            return
        rows = torch.arange(len(self._keys))[indices.cpu()]
        self._blocks = [block.select(rows.tolist()) for block in self._blocks]
        rows = rows.to(self._keys.device)
        self._keys, self._values = self._keys[rows], self._values[rows]

    @property
    def nbytes(self) -> int:
        """Bytes of compressed and of recent tokens. What sequences share counts once."""
        if not self.is_initialized:
            return 0
        compressed = {id(c): c for block in self._blocks for c in (*block.keys, *block.values)}
        return sum(c.payload.nbytes for c in compressed.values()) + self._keys.nbytes + self._values.nbytes

    @property
    def plain_nbytes(self) -> int:
        """Bytes that all tokens have uncompressed."""
        if not self.is_initialized:
            return 0
        shapes = [(*x.shape[:_TOKENS], x.shape[-1], x.itemsize) for x in (self._keys, self._values)]
        of_a_token = sum(map(math.prod, shapes))
        return self.get_seq_length() * of_a_token


class CompressedCache(Cache):
    """A cache for the text generation of transformers that compresses the keys and values of older tokens.

    Pass it as `past_key_values`: `generate` and the `forward` of models with a cache take it wherever they take
    a `DynamicCache`. With `Lossless`, the default, attention gets the same bits as from a `DynamicCache`, so that the
    generated tokens are equal. With a lossy codec, the codec's guarantee holds for every key and value.

    The last `window` tokens, and fewer than `block` more, are plain. Before them stand compressed blocks of `block`
    tokens. The keys of a block are one array for each layer and sequence of the batch, and so are its values: beams
    share blocks that they have in common. No token is compressed twice. The first `forward` of a cache sees its own
    keys and values, uncompressed.

    Attention needs whole tensors. So each step decompresses the cache of one layer after the other, which takes time
    proportional to the tokens before, and memory for the plain keys and values of one layer.

    `reset`, `crop`, `reorder_cache`, `batch_select_indices` and `batch_repeat_interleave` work as for a `DynamicCache`,
    and so do beam search and assisted decoding. No gradient flows into compressed tokens. For a model with encoder and
    decoder, put it beside a `DynamicCache` for the cross-attention: ``EncoderDecoderCache(CompressedCache(),
    DynamicCache())``.

    Reference: keys by channel and values by token, with a window of plain tokens: Z. Liu et al., "KIVI",
    arXiv:2402.02750, section 3; channels of the keys with large values: C. Hooper et al., "KVQuant", arXiv:2401.18079.

    Args:
        codec: the codec of keys and values; None for `Lossless()`. A bound relative to the range is relative to that of
            a block.
        value_codec: another codec for the values; None for `codec`.
        layout: the order of the elements of a block. "channel": the tokens of a channel follow each other, in arrays of
            shape (heads, channels, tokens). "token": the channels of a token do, (heads, tokens, channels). It decides
            what a bucket of `QSGD` and `Codebook` has in it: choose ``bucket_size=block`` for one channel, or a head's
            number of channels for one token. None is "token" for `Lossless`, `ErrorBounded` and `FloatFormat` without
            scales, and "channel" for codecs with scales: the better ones where both were measured
            (bench/KV_CACHES.md).
        value_layout: another layout for the values; None for `layout`.
        block: tokens of a compressed block, at least 1.
        window: recent tokens that stay plain at least; 0 or more.
        config: the model's configuration. Only its layers of full attention are compressed then. Others, such as those
            of sliding windows, are as in a `DynamicCache`. Without it, all layers keep all tokens, and all are
            compressed.
        threads: same as in `arrcomp.compress`.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value, or a codec needs a seed or a reference. When the
            first tokens come: a codec does not take their dtype.

    >>> import torch, transformers, arrcomp.torch.transformers
    >>> config = transformers.LlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2)
    >>> _ = torch.manual_seed(1)
    >>> model, prompt = transformers.LlamaForCausalLM(config).eval(), torch.arange(40)[None]
    >>> options = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    >>> cache = arrcomp.torch.transformers.CompressedCache(block=16, window=16)
    >>> tokens = model.generate(prompt, **options, past_key_values=cache)
    >>> bool((tokens == model.generate(prompt, **options)).all())
    True
    >>> cache.get_seq_length(), cache.nbytes < cache.plain_nbytes
    (59, True)
    """

    def __init__(
        self,
        codec: Codec | None = None,
        *,
        value_codec: Codec | None = None,
        layout: Layout | None = None,
        value_layout: Layout | None = None,
        block: int = 128,
        window: int = 128,
        config: PreTrainedConfig | None = None,
        threads: int | None = None,
    ) -> None:
        thread_count(threads)
        keys = checked_unaided_codec(codec)
        values = keys if value_codec is None else checked_unaided_codec(value_codec, "value_codec")
        key_layout = checked_layout("layout", layout, keys)
        value_layout = checked_layout("value_layout", layout if value_layout is None else value_layout, values)
        block = checked_integer("block", block, 1, _MOST_TOKENS)
        window = checked_integer("window", window, 0, _MOST_TOKENS)
        codings = _Coding(keys, key_layout, threads), _Coding(values, value_layout, threads)
        make = partial(_CompressedLayer, *codings, block, window)
        if config is None:
            super().__init__(layer_class_to_replicate=make)  # type: ignore[arg-type]  # what makes one will do
        else:
            super().__init__(layers=[make() if type(layer) is DynamicLayer else layer for layer in _layers(config)])

    @property
    def nbytes(self) -> int:
        """Bytes that the keys and values of all layers occupy. What sequences share counts once. Synchronizes."""
        return sum(layer.nbytes if isinstance(layer, _CompressedLayer) else _nbytes(layer) for layer in self.layers)

    @property
    def plain_nbytes(self) -> int:
        """Bytes that the keys and values of all layers would occupy in a `DynamicCache`."""
        return sum(
            layer.plain_nbytes if isinstance(layer, _CompressedLayer) else _nbytes(layer) for layer in self.layers
        )


def _check_unset(name: str, states: Any) -> None:
    """Refuse states from outside, but for those of a layer that is made without any."""
    if states is not None:
        raise wrong_type(name, "tokens to be added by update", states)


def _layers(config: Any) -> list[Any]:
    """The layers of a `DynamicCache` for a model."""
    if not isinstance(config, PreTrainedConfig):
        raise wrong_type("config", "the configuration of a transformers model, or None", config)
    return list(DynamicCache(config=config).layers)


def _nbytes(layer: Any) -> int:
    """Bytes of the keys and values of a layer of transformers' own, which may have none."""
    if not isinstance(layer, CacheLayerMixin):
        return 0
    return sum(x.nbytes for x in (layer.keys, layer.values) if x is not None)
