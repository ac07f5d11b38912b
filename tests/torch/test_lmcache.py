"""LMCache's objects come back of what is stored, and what LMCache calls is there.

Each test runs with the interface as it stands in the sources of LMCache 0.5.6 (`lmcache/v1/distributed/serde`), written
again below; and with LMCache itself where it is installed, which the extras of this package do not do. It was, with
0.5.6 on a computer without a GPU.
"""

from __future__ import annotations

import abc
import math
import subprocess
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from arrcomp import QSGD, ErrorBounded, FloatFormat, Lossless
from arrcomp.errors import CorruptStreamError
from arrcomp.torch.lmcache import ArrcompDeserializer, ArrcompSerializer, _parts, register_serde

SHAPE = (2, 3, 40, 16)  # keys and values, layers, tokens, channels


class Layout:
    """What `MemoryLayoutDesc` has."""

    def __init__(self, xs: Sequence[Any]) -> None:
        self.shapes, self.dtypes = [x.shape for x in xs], [x.dtype for x in xs]


class Memory:
    """What of `MemoryObj` a serializer uses."""

    def __init__(self, xs: Sequence[Any]) -> None:
        self._xs = list(xs)

    def get_shapes(self) -> list[Any]:
        return [x.shape for x in self._xs]

    def get_tensor(self, index: int) -> Any:
        return self._xs[index]

    @property
    def tensor(self) -> Any:
        return self._xs[0]

    def set_used_size(self, nbytes: int) -> None:
        self._xs[0] = self._xs[0][:nbytes]


class Processor:
    """`AsyncSerdeProcessor`, without its threads."""

    def __init__(self, serializer: Any, deserializer: Any, max_workers: int = 1) -> None:
        self._serializer, self._deserializer, self.max_workers = serializer, deserializer, max_workers
        self._done: list[bool] = []

    def estimate_serialized_size(self, layout: Any) -> int:
        return int(self._serializer.estimate_serialized_size(layout))

    def submit_serialize(self, sources: Sequence[Any], targets: Sequence[Any], keys: Sequence[Any]) -> int:
        for source, target, key in zip(sources, targets, keys, strict=True):
            target.set_used_size(self._serializer.serialize(source, target, key))
        self._done.append(True)
        return len(self._done) - 1

    def submit_deserialize(self, sources: Sequence[Any], targets: Sequence[Any], keys: Sequence[Any]) -> int:
        try:
            for source, target, key in zip(sources, targets, keys, strict=True):
                self._deserializer.deserialize(source, target, key)
            self._done.append(True)
        except Exception:
            self._done.append(False)
        return len(self._done) - 1

    def query_serialize_result(self, task: int) -> bool | None:
        return self._done[task]

    query_deserialize_result = query_serialize_result

    def close(self) -> None:
        pass


def interface() -> types.ModuleType:
    """`lmcache.v1.distributed.serde`."""
    factories: dict[str, Callable[[Mapping[str, Any]], Any]] = {}

    def register_serde_factory(name: str, factory: Callable[[Mapping[str, Any]], Any]) -> None:
        if name in factories:
            raise ValueError(f"Serde type already registered: {name!r}")
        factories[name] = factory

    class Config:
        def __init__(self, name: str, kwargs: Mapping[str, Any]) -> None:
            self.type, self.kwargs = name, kwargs

    module: Any = types.ModuleType("lmcache.v1.distributed.serde")
    module.Serializer, module.Deserializer = abc.ABCMeta("Serializer", (), {}), abc.ABCMeta("Deserializer", (), {})
    module.AsyncSerdeProcessor, module.SerdeConfig = Processor, Config
    module.register_serde_factory = register_serde_factory
    module.create_serde_processor = lambda config: factories[config.type](config.kwargs)
    return module


def memory_of_lmcache(xs: Sequence[Any]) -> Any:
    """LMCache's own object: its tensors stand one after the other in bytes."""
    management = pytest.importorskip("lmcache.v1.memory_management")
    data = torch.cat([x.contiguous().view(-1).view(torch.uint8) for x in xs])
    shapes, dtypes = [x.shape for x in xs], [x.dtype for x in xs]
    about = management.MemoryObjMetadata(shapes[0], dtypes[0], 0, data.numel(), 1, shapes=shapes, dtypes=dtypes)
    return management.TensorMemoryObj(data, about, None)


@pytest.fixture(params=["interface", "package"])
def lmcache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the serializers, and what makes an object of tensors."""
    if request.param == "package":
        serde = pytest.importorskip("lmcache.v1.distributed.serde")
        monkeypatch.setattr(serde.factory, "_SERDE_FACTORY_REGISTRY", {})
        return types.SimpleNamespace(serde=serde, memory=memory_of_lmcache)
    serde = interface()
    for name in ("lmcache", "lmcache.v1", "lmcache.v1.distributed"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, serde.__name__, serde)
    monkeypatch.setattr(sys.modules["lmcache.v1.distributed"], "serde", serde, raising=False)
    return types.SimpleNamespace(serde=serde, memory=Memory)


def tensors(dtype: Any = torch.bfloat16, shape: tuple[int, ...] = SHAPE) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def buffer(nbytes: int) -> Any:
    return torch.full((nbytes,), 255, dtype=torch.uint8)


def waited(query: Callable[[int], Any], task: int) -> Any:
    for _ in range(10_000):
        if (result := query(task)) is not None:
            return result
        time.sleep(0.001)
    raise AssertionError("no result")


def through(lmcache: Any, xs: Sequence[Any], **options: Any) -> tuple[list[Any], int]:
    """What comes back of the tensors of an object, and the bytes that are stored."""
    register_serde("ours")
    processor = lmcache.serde.create_serde_processor(lmcache.serde.SerdeConfig("ours", options))
    try:
        source, target = lmcache.memory(xs), lmcache.memory([torch.zeros_like(x) for x in xs])
        stored = lmcache.memory([buffer(processor.estimate_serialized_size(Layout(xs)))])
        assert waited(processor.query_serialize_result, processor.submit_serialize([source], [stored], [None]))
        nbytes = stored.tensor.numel()
        assert waited(processor.query_deserialize_result, processor.submit_deserialize([stored], [target], [None]))
        return [target.get_tensor(index) for index in range(len(xs))], nbytes
    finally:
        processor.close()


@pytest.mark.parametrize("layout", ["channel", "token"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.uint8])
def test_a_lossless_object_comes_back_otherwise(lmcache: Any, layout: str, dtype: Any) -> None:
    x = tensors(dtype)
    (y,), nbytes = through(lmcache, [x], layout=layout)
    assert y.dtype == dtype
    assert torch.equal(x, y)
    assert nbytes < x.nbytes or dtype == torch.uint8


def test_groups_of_an_object_are_mixed_up(lmcache: Any) -> None:
    xs = [tensors(), tensors(torch.float32, (1, 2, 7, 24)), tensors(torch.float16, (5, 3))]
    ys, _ = through(lmcache, xs)
    assert all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


def test_an_element_exceeds_the_bound_of_the_configuration(lmcache: Any) -> None:
    x = tensors()
    (y,), nbytes = through(lmcache, [x], codec=ErrorBounded(abs=0.01).config(), threads=1, max_workers=2)
    assert float((x.double() - y.double()).abs().max()) <= 0.01
    assert nbytes < 0.6 * x.nbytes


def test_an_object_has_another_size_than_its_share(lmcache: Any) -> None:
    x = tensors()
    (y,), nbytes = through(lmcache, [x], share=0.8)
    assert torch.equal(x, y)
    assert nbytes == math.ceil(0.8 * x.nbytes)


def test_an_object_that_needs_more_than_its_share_is_cut() -> None:
    serializer, x = ArrcompSerializer(share=0.5), tensors()
    stored = buffer(serializer.estimate_serialized_size(Layout([x])))
    with pytest.raises(ValueError, match=f"dst: expected room for .* bytes, got {x.nbytes // 2}"):
        serializer.serialize(Memory([x]), Memory([stored]), None)


class FirstLevel:
    """What LMCache's adapters ask of the memory above them."""

    def __init__(self, success: Any) -> None:
        self._success = success

    def reserve_write(self, keys: Sequence[Any], layout_desc: Any, **options: Any) -> dict[Any, Any]:
        (shape,) = layout_desc.shapes
        return {key: (self._success, memory_of_lmcache([torch.zeros(shape, dtype=torch.uint8)])) for key in keys}

    def __getattr__(self, name: str) -> Any:
        return lambda keys, **options: dict.fromkeys(keys, (self._success, None))


@pytest.mark.parametrize("options", [{"share": 0.8}, {"codec": QSGD(bits=8).config()}])
def test_what_lmcache_has_in_files_is_not_loaded(tmp_path: Path, options: dict[str, Any]) -> None:
    """LMCache alone: its file adapter in the wrapper that serializes; only the memory above them is a stand-in."""
    serde = pytest.importorskip("lmcache.v1.distributed.serde")
    from lmcache.v1.distributed import api, error
    from lmcache.v1.distributed.l2_adapters import fs_l2_adapter, serde_wrapper

    ours = _parts(options)
    files = fs_l2_adapter.FSL2Adapter(fs_l2_adapter.FSL2AdapterConfig(str(tmp_path)))
    first_level = FirstLevel(error.L1Error.SUCCESS)
    adapter = serde_wrapper.SerdeL2AdapterWrapper(files, serde.AsyncSerdeProcessor(**ours), first_level)
    try:
        keys, xs = [api.ObjectKey(bytes(8), "model", 0)], [tensors()]
        adapter.submit_store_task(keys, [memory_of_lmcache(xs)])
        assert waited(lambda _: adapter.pop_completed_store_tasks() or None, 0)
        (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
        assert file.stat().st_size <= 0.8 * xs[0].nbytes + 1
        targets = [memory_of_lmcache([torch.zeros_like(xs[0])])]
        assert waited(adapter.query_load_result, adapter.submit_load_task(keys, targets)).test(0)
        assert float((targets[0].tensor.double() - xs[0].double()).abs().max()) <= (0 if "share" in options else 0.05)
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        loaded = waited(adapter.query_load_result, adapter.submit_load_task(keys, targets)).test(0)
        assert not loaded, "altered bytes are a miss"
    finally:
        adapter.close()


def test_lmcache_does_not_take_the_classes_for_its_own(lmcache: Any) -> None:
    register_serde()
    assert issubclass(ArrcompSerializer, lmcache.serde.Serializer)
    assert issubclass(ArrcompDeserializer, lmcache.serde.Deserializer)
    with pytest.raises(ValueError, match="already registered: 'arrcomp'"):
        register_serde()


@pytest.mark.parametrize("codec", [Lossless(), ErrorBounded(abs=1e-9), FloatFormat("fp8_e4m3"), QSGD(bucket_size=16)])
def test_a_buffer_of_the_estimate_is_too_small(codec: Any) -> None:
    serializer = ArrcompSerializer(codec)
    bits = np.random.default_rng(0).integers(0, 1 << 16, math.prod(SHAPE), dtype=np.uint16)
    x = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).view(SHAPE)  # nothing makes these shorter
    estimate = serializer.estimate_serialized_size(Layout([x]))
    assert serializer.serialize(Memory([x]), Memory([buffer(estimate)]), None) <= estimate


def test_quantizers_scale_across_channels_where_tokens_of_a_channel_were_asked_for() -> None:
    x = tensors(torch.float32) * torch.where(torch.arange(16) == 3, 1000.0, 1.0)  # one channel is large
    errors = {}
    for layout in ("channel", "token"):
        target = torch.zeros_like(x)
        serializer = ArrcompSerializer(QSGD(bits=8, bucket_size=40 if layout == "channel" else 16), layout=layout)
        stored = buffer(serializer.estimate_serialized_size(Layout([x])))
        serializer.serialize(Memory([x]), Memory([stored]), None)
        ArrcompDeserializer().deserialize(Memory([stored]), Memory([target]), None)
        errors[layout] = float((x - target)[..., :3].abs().max())
    assert 50 * errors["channel"] < errors["token"]


def test_a_tensor_that_is_not_contiguous_is_stored_in_another_order() -> None:
    x, target = tensors().transpose(0, 2), torch.zeros(SHAPE, dtype=torch.bfloat16).transpose(0, 2)
    stored = buffer(ArrcompSerializer().estimate_serialized_size(Layout([x])))
    ArrcompSerializer().serialize(Memory([x]), Memory([stored]), None)
    ArrcompDeserializer().deserialize(Memory([stored]), Memory([target]), None)
    assert torch.equal(x, target)


def serialized(x: Any) -> Any:
    stored = buffer(ArrcompSerializer().estimate_serialized_size(Layout([x])))
    return stored[: ArrcompSerializer().serialize(Memory([x]), Memory([stored]), None)]


def test_altered_or_truncated_bytes_are_taken_for_a_cache() -> None:
    x = tensors()
    stored, target = serialized(x), torch.zeros_like(x)
    for end in (0, 7, 8, 15, 40, len(stored) - 1):
        with pytest.raises(CorruptStreamError):
            ArrcompDeserializer().deserialize(Memory([stored[:end]]), Memory([target]), None)
    for index in (0, 8, 15, 17, 60, len(stored) // 2, len(stored) - 1):
        altered = stored.clone()
        altered[index] ^= 0x7F
        with pytest.raises(CorruptStreamError):
            ArrcompDeserializer().deserialize(Memory([altered]), Memory([target]), None)


def test_a_tensor_of_another_shape_or_dtype_is_filled() -> None:
    x = tensors()
    stored = serialized(x)
    others = (torch.zeros(2, 3, 39, 16, dtype=x.dtype), torch.zeros(SHAPE), torch.zeros(SHAPE, dtype=torch.float16))
    for other in (*others, x.new_zeros(2, 3, 16, 40)):
        with pytest.raises(ValueError, match=r"expected a tensor bfloat16\[2, 3, 40, 16\], as it was serialized, got"):
            ArrcompDeserializer().deserialize(Memory([stored]), Memory([other]), None)


def test_what_cannot_be_done_is_not_said() -> None:
    with pytest.raises(TypeError, match="codec: expected a codec such as"):
        ArrcompSerializer("lossless")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="codec: expected a codec that needs no seed and no reference"):
        ArrcompSerializer(QSGD(rounding="stochastic"))
    with pytest.raises(ValueError, match="layout: expected 'channel' or 'token', got 'tokens'"):
        ArrcompSerializer(layout="tokens")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share: expected a number above 0, or None, got 0"):
        ArrcompSerializer(share=0)
    with pytest.raises(ValueError, match="threads: expected an integer of at least 1"):
        ArrcompDeserializer(threads=0)
    with pytest.raises(TypeError, match=r"dtype: expected .* for ErrorBounded, got uint8"):
        ArrcompSerializer(ErrorBounded(abs=1)).estimate_serialized_size(Layout([tensors(torch.uint8)]))
    with pytest.raises(ValueError, match=r"dst: expected room for .* bytes, got 100"):
        ArrcompSerializer().serialize(Memory([tensors()]), Memory([buffer(100)]), None)
    with pytest.raises(TypeError, match="src: expected a MemoryObj with contiguous bytes in host memory, got None"):
        ArrcompDeserializer().deserialize(Memory([None]), Memory([tensors()]), None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"codecs": {}}, "serde: expected the options codec, layout, share, threads, max_workers, got 'codecs'"),
        ({"codec": {"codec": "lossles"}}, r"config\['codec'\]: expected"),
        ({"max_workers": 0}, "max_workers: expected"),
        ({"layout": 1}, "layout: expected 'channel' or 'token', got 1"),
    ],
)
def test_a_wrong_configuration_is_not_said(lmcache: Any, options: dict[str, Any], error: str) -> None:
    register_serde()
    with pytest.raises((TypeError, ValueError, LookupError), match=error):
        lmcache.serde.create_serde_processor(lmcache.serde.SerdeConfig("arrcomp", options))


def test_a_name_that_is_not_a_string_is_registered(lmcache: Any) -> None:
    with pytest.raises(TypeError, match=r"name: expected a string, got 1 \(int\)"):
        register_serde(1)  # type: ignore[arg-type]


@pytest.mark.full  # where LMCache is not installed, importing this module shows it
def test_importing_the_module_imports_lmcache() -> None:
    program = "import sys, arrcomp.torch.lmcache; assert not [name for name in sys.modules if name[:7] == 'lmcache']"
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=100)
