"""A compressed cache generates what a plain one does, keeps its codec's bound, and says what it cannot do."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.full  # the extra test-full has transformers

from arrcomp import QSGD, Codebook, Codec, ErrorBounded, FloatFormat, Lossless
from arrcomp.torch.transformers import CompressedCache

SYMBOLS, PROMPT, NEW = 61, 21, 16
FAMILIES = ["llama", "gpt2", "gemma2"]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "beams": {"do_sample": False, "num_beams": 3},
    "sampling": {"do_sample": True},
    "sampled beams": {"do_sample": True, "num_beams": 2, "num_return_sequences": 2},
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The models are small: threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def configuration(family: str, **others: Any) -> Any:
    sizes = {"vocab_size": SYMBOLS, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0} | others
    if family == "gpt2":
        return transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=128, **sizes)
    kind = {"llama": transformers.LlamaConfig, "gemma2": transformers.Gemma2Config}[family]
    # The layers of a Gemma 2 have a sliding window by turns.
    windows = {"sliding_window": 12, "head_dim": 16} if family == "gemma2" else {}
    return kind(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        **windows,
        **sizes,
    )


@functools.cache
def model_of(family: str, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(configuration(family)).eval()
    for parameter in model.parameters():  # as they are made, all tokens are equally likely
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.to(dtype)


def prompts(count: int = 2) -> Any:
    return torch.randint(1, SYMBOLS, (count, PROMPT), generator=torch.Generator().manual_seed(1))


def generated(family: str, cache: Any, dtype: Any = torch.float32, **options: Any) -> Any:
    model = model_of(family, dtype)  # which seeds too, the first time
    torch.manual_seed(2)
    options = {"do_sample": False, "max_new_tokens": NEW} | options
    return model.generate(prompts(), past_key_values=cache, **options)


def states(tokens: int, batch: int = 2, dtype: Any = torch.float32, seed: int = 0) -> tuple[Any, Any]:
    """Keys and values of 3 heads with 8 and 6 channels."""
    generator = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(batch, 3, tokens, channels, generator=generator) for channels in (8, 6))
    return keys.to(dtype), values.to(dtype)


def filled(cache: Any, *parts: int, **options: Any) -> tuple[Any, Any]:
    """What a cache and a plain one give after so many tokens, added part by part."""
    plain, given, expected = transformers.DynamicCache(), None, None
    for seed, tokens in enumerate(parts):
        added = states(tokens, seed=seed, **options)
        given, expected = cache.update(*added, 0), plain.update(*added, 0)
    return given, expected


def same(given: Any, expected: Any) -> bool:
    return all(torch.equal(x, y) for x, y in zip(given, expected, strict=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_lossless_cache_generates_other_tokens(family: str, way: str) -> None:
    cache = CompressedCache(threads=1, block=8, window=5)
    tokens = generated(family, cache, **WAYS[way])
    assert torch.equal(tokens, generated(family, transformers.DynamicCache(), **WAYS[way]))
    assert len(tokens.unique()) > 10, "the model says nothing"
    assert len(cache) == 2
    assert cache.get_seq_length() == PROMPT + NEW - 1


@pytest.mark.parametrize("layout", ["channel", "token"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_lossless_cache_generates_other_tokens_in_a_short_dtype(dtype: Any, layout: Any) -> None:
    tokens = generated("llama", CompressedCache(threads=1, block=16, window=0, layout=layout), dtype, num_beams=2)
    assert torch.equal(tokens, generated("llama", transformers.DynamicCache(), dtype, num_beams=2))


@pytest.mark.parametrize("family", ["gemma2", "llama"])
def test_layers_of_the_configuration_are_of_another_kind(family: str) -> None:
    cache = CompressedCache(threads=1, block=8, window=5, config=configuration(family))
    assert cache.is_sliding == [family == "gemma2", False]
    tokens = generated(family, cache, num_beams=2)
    assert torch.equal(tokens, generated(family, transformers.DynamicCache(config=configuration(family)), num_beams=2))
    assert 0 < cache.nbytes < cache.plain_nbytes


@pytest.mark.parametrize("assistant", [True, False])
def test_assisted_decoding_generates_other_tokens(assistant: bool) -> None:
    helper = {"assistant_model": model_of("llama")} if assistant else {"prompt_lookup_num_tokens": 3}
    model, prompt = copy.deepcopy(model_of("llama")), prompts(1)
    model.lm_head.weight.data += 0.05 * torch.randn(model.lm_head.weight.shape)  # the assistant errs
    options = {"max_new_tokens": NEW, "do_sample": False}
    tokens = model.generate(prompt, past_key_values=CompressedCache(threads=1, block=4, window=0), **helper, **options)
    assert torch.equal(tokens, model.generate(prompt, **options))


def test_a_model_with_an_encoder_generates_other_tokens() -> None:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=SYMBOLS, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    small, plain = functools.partial(CompressedCache, block=4, window=3, threads=1), transformers.DynamicCache
    options = {"max_new_tokens": 20, "do_sample": False, "num_beams": 2, "eos_token_id": None}
    tokens = [
        model.generate(prompts(), past_key_values=transformers.EncoderDecoderCache(own(), cross()), **options)
        for own, cross in ((plain, plain), (small, plain), (small, small))
    ]
    assert torch.equal(tokens[0], tokens[1])
    assert torch.equal(tokens[0], tokens[2])


def test_states_of_a_layer_are_those_of_some_tokens() -> None:
    cache, plain = CompressedCache(block=4, window=3), transformers.DynamicCache()
    for each in (cache, plain):
        each.update(*states(23), 0)
    layer: Any = cache.layers[0]
    assert same((layer.keys, layer.values), (plain.layers[0].keys, plain.layers[0].values))
    with pytest.raises(TypeError, match="keys: expected tokens to be added by update, got"):
        layer.keys = layer.keys
    cache.reset()
    assert layer.keys is None


@pytest.mark.parametrize("parts", [(1,), (20,), (7, 1, 1, 13, 1), (1,) * 23, (64, 1, 16)])
@pytest.mark.parametrize(("block", "window"), [(1, 0), (4, 3), (5, 10), (16, 0)])
def test_tokens_are_lost_or_out_of_order(parts: tuple[int, ...], block: int, window: int) -> None:
    cache = CompressedCache(block=block, window=window)
    assert same(*filled(cache, *parts))
    assert cache.get_seq_length() == sum(parts)
    assert cache.get_mask_sizes(2, 0) == (sum(parts) + 2, 0)


@pytest.mark.parametrize("layout", ["channel", "token"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_key_or_a_value_exceeds_its_bound(dtype: Any, layout: Any) -> None:
    cache = CompressedCache(ErrorBounded(abs=0.05), value_codec=ErrorBounded(abs=0.2), layout=layout, block=8, window=4)
    given, expected = filled(cache, 30, 1, 9, 1, dtype=dtype)
    for y, x, bound in zip(given, expected, (0.05, 0.2), strict=True):
        error = (y.double() - x.double()).abs()
        assert float(error.max()) <= bound
        assert float(error[:, :, :32].max()) > bound / 2, "nothing was compressed"
        assert y.dtype == dtype


@pytest.mark.parametrize(("window", "plain"), [(4, 7), (0, 7), (13, 15), (40, 39), (41, 39)])
def test_recent_tokens_are_not_plain(window: int, plain: int) -> None:
    cache = CompressedCache(ErrorBounded(abs=0.5), block=8, window=window)
    given, expected = filled(cache, 38, 1)
    for y, x in zip(given, expected, strict=True):
        assert torch.equal(y[:, :, -plain:], x[:, :, -plain:])
        assert plain == 39 or not torch.equal(y[:, :, : 39 - plain], x[:, :, : 39 - plain])


def test_what_a_first_forward_sees_is_compressed() -> None:
    cache = CompressedCache(ErrorBounded(abs=0.5), block=8, window=0)
    assert same(*filled(cache, 39))
    assert cache.nbytes < 0.5 * cache.plain_nbytes


def test_a_token_is_compressed_twice() -> None:
    cache = CompressedCache(QSGD(bits=2, bucket_size=16), block=4, window=0)
    added = states(8)
    cache.update(*added, 0)
    first = [x[:, :, :8].clone() for x in cache.update(*states(1), 0)]
    cache.crop(-4)  # within a block
    for _ in range(12):
        cache.update(*states(1), 0)
    cache.reorder_cache(torch.tensor([1, 0]))
    again = [x[:, :, :5] for x in cache.update(*states(1), 0)]
    assert same(again, [x[:, :, :5].flip(0) for x in first])


def layout_error(codec: Codec, layout: Any) -> float:
    """The largest error of the small channels of keys with one that is large."""
    cache = CompressedCache(codec, layout=layout, block=32, window=0)
    keys, values = states(32)
    keys[..., 3] *= 1000
    cache.update(keys, values, 0)
    given, _ = cache.update(*states(1), 0)
    return float((given[:, :, :32, :3] - keys[..., :3]).abs().max())


@pytest.mark.parametrize("codec", [QSGD(bits=8, bucket_size=32), Codebook.nf4(bucket_size=32)])
def test_a_large_channel_spoils_the_others(codec: Codec) -> None:
    assert 10 * layout_error(codec, "channel") < layout_error(codec, "token")
    assert layout_error(codec, None) == layout_error(codec, "channel")


def cropped(cache: Any) -> None:
    for tokens in (-1, 0, -3, -9, -14):
        cache.crop(tokens)
        cache.update(*states(2, seed=9), 0)


def selected(cache: Any) -> None:
    cache.batch_select_indices(torch.tensor([1, 1, 0]))
    cache.update(*states(9, batch=3, seed=9), 0)
    cache.batch_select_indices(torch.tensor([True, False, True]))


def repeated(cache: Any) -> None:
    cache.batch_repeat_interleave(3)
    cache.update(*states(9, batch=6, seed=9), 0)
    cache.batch_select_indices(torch.tensor([0, 5]))


def reordered(cache: Any) -> None:
    for order in ([1, 0], [1, 1], [0, 1]):
        cache.reorder_cache(torch.tensor(order))
        cache.update(*states(7, seed=order[0]), 0)


def started_again(cache: Any) -> None:
    cache.reset()
    assert cache.get_seq_length() == 0
    cache.update(*states(20, seed=4), 0)


def emptied(cache: Any) -> None:
    cache.crop(-cache.get_seq_length())
    assert cache.get_seq_length() == 0


@pytest.mark.parametrize("change", [cropped, selected, repeated, reordered, started_again, emptied])
@pytest.mark.parametrize(("block", "window"), [(4, 0), (8, 5)])
def test_a_changed_cache_is_another_one_than_a_changed_plain_one(
    change: Callable[[Any], None], block: int, window: int
) -> None:
    caches = [CompressedCache(block=block, window=window), transformers.DynamicCache()]
    for cache in caches:
        cache.update(*states(21), 0)
        cache.update(*states(12, seed=1), 0)
        change(cache)
    assert caches[0].get_seq_length() == caches[1].get_seq_length()
    assert same(*(cache.update(*states(3, seed=5), 0) for cache in caches))


def test_an_empty_cache_cannot_be_changed() -> None:
    cache = CompressedCache(config=configuration("llama"))
    cache.reset()
    cache.crop(-1)
    cache.reorder_cache(torch.tensor([0]))
    cache.batch_repeat_interleave(2)
    cache.batch_select_indices(torch.tensor([0]))
    assert (cache.get_seq_length(), cache.nbytes, cache.plain_nbytes, len(cache)) == (0, 0, 0, 2)


def test_a_length_is_taken_for_a_number_of_tokens_to_remove() -> None:
    cache = CompressedCache(block=4, window=0)
    filled(cache, 20)
    with pytest.raises(ValueError, match="tokens_to_remove: expected 0 or a negative number of tokens, got 11"):
        cache.crop(11)


def test_beams_do_not_share_what_they_have_in_common() -> None:
    cache = CompressedCache(block=8, window=0)
    cache.update(*states(64, batch=1), 0)
    alone = cache.nbytes
    cache.batch_repeat_interleave(5)
    assert cache.nbytes == alone
    assert cache.plain_nbytes == 5 * sum(x.nbytes for x in states(64, batch=1))


def test_the_bytes_are_not_those_that_are_kept() -> None:
    cache = CompressedCache(FloatFormat("fp8_e4m3"), block=8, window=2)
    plain = sum(x.nbytes for x in states(29, dtype=torch.bfloat16))
    filled(cache, 29, dtype=torch.bfloat16)
    assert cache.plain_nbytes == plain
    least = plain * (24 / 2 + 5) / 29
    assert least <= cache.nbytes < 1.2 * least, "payloads have a few bytes more than their values"


def test_a_copy_changes_with_the_original() -> None:
    cache = CompressedCache(block=4, window=0)
    filled(cache, 10)
    twin = copy.deepcopy(cache)
    cache.crop(-5)
    assert twin.get_seq_length() == 10
    assert same(twin.update(*states(1, seed=1), 0), filled(CompressedCache(), 10, 1)[0])


def test_memory_of_compressed_tokens_is_kept() -> None:
    cache = CompressedCache(block=8, window=0)
    cache.update(*states(100), 0)
    layer: Any = cache.layers[0]
    assert layer._keys.untyped_storage().nbytes() == 2 * 3 * 4 * 8 * 4


def test_a_gradient_flows_into_compressed_tokens() -> None:
    cache = CompressedCache(block=4, window=0)
    older, newer = states(4), states(2)
    for x in (*older, *newer):
        x.requires_grad_()
    cache.update(*older, 0)
    keys, values = cache.update(*newer, 0)
    (keys.sum() + values.sum()).backward()
    assert not older[0].grad.any()
    assert bool((newer[0].grad == 1).all())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"codec": "fp8"}, TypeError, "codec: expected a codec such as"),
        ({"value_codec": 8}, TypeError, "value_codec: expected a codec such as"),
        ({"codec": QSGD(rounding="stochastic")}, ValueError, "codec: expected a codec that needs no seed"),
        ({"value_codec": Lossless(predictor="reference")}, ValueError, "value_codec: .* no reference, got Lossless"),
        ({"layout": "row"}, ValueError, "layout: expected 'channel' or 'token', got 'row'"),
        ({"value_layout": 1}, TypeError, "value_layout: expected 'channel' or 'token', got 1"),
        ({"block": 0}, ValueError, "block: expected an integer from 1 to"),
        ({"block": 1.5}, TypeError, "block: expected an integer from 1 to"),
        ({"window": -1}, ValueError, "window: expected an integer from 0 to"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1"),
        ({"config": "llama"}, TypeError, "config: expected the configuration of a transformers model, or None"),
    ],
)
def test_a_wrong_argument_is_not_named(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        CompressedCache(**arguments)


def test_a_dtype_that_the_codec_does_not_take_fails_late() -> None:
    cache = CompressedCache(ErrorBounded(abs=1), block=100, window=100)
    with pytest.raises(TypeError, match=r"dtype: expected .* for ErrorBounded, got int8"):
        cache.update(*states(1, dtype=torch.int8), 0)


@pytest.mark.parametrize("layout", ["channel", "token"])
@pytest.mark.parametrize("batch", [1, 2])
def test_attention_gets_tensors_of_another_order_in_memory(batch: int, layout: Any) -> None:
    cache = CompressedCache(block=8, window=3, layout=layout)
    given, _ = filled(cache, 30, 1, batch=batch)
    assert all(x.is_contiguous() for x in given), "sums may then be rounded in another way"
