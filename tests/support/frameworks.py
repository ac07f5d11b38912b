"""Frameworks, devices and ways to call, as the conformance matrix goes through them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import Codec, Compressed
from capsules import OnlyDLPack
from checks import Array, Host, numpy_dtype

EAGER, COMPILED, MANY = "eager", "compiled", "compress_many"


def seed_of(codec: Codec) -> int | None:
    """The seed that all tests of the matrix give to a codec."""
    return 7 if codec.needs_seed else None


class Place(Host):
    """A framework on a device: NumPy, the base of the others.

    Attributes:
        name: as tests and tables show it.
        ways: of calling the codec there.
    """

    name = "NumPy"
    ways: tuple[str, ...] = (EAGER, MANY)

    @property
    def title(self) -> str:
        """The row's heading in the table."""
        return f"{self.name}, {'CPU' if self.device == 'cpu' else 'CUDA'}"

    def check(self) -> None:
        """Skip the test where the framework or the device is missing."""

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """What the framework needs around the test."""
        return contextlib.nullcontext()

    def put(self, array: Array) -> Any:
        """The framework's array; skips the test where it has no such dtype."""
        return array

    def get(self, array: Any) -> Array:
        """The array back in NumPy."""
        assert isinstance(array, np.ndarray)
        return array

    def describe(self, x: Any) -> tuple[Any, ...]:
        """What must be kept: type, dtype, shape and device."""
        return type(x), x.dtype, tuple(x.shape)

    def functions(self, way: str, codec: Codec) -> tuple[Callable[[Any], Compressed], Callable[[Compressed], Any]]:
        """How to compress and to decompress."""
        if way == MANY:  # beside two others, of which one has another size
            return (
                lambda x: arrcomp.compress_many(
                    [self.put(np.zeros(5, np.float32)), {"x": x}, x[:1]], codec, seed=seed_of(codec)
                )[1]["x"],
                lambda c: arrcomp.decompress_many((c, [c]))[1][0],
            )
        if way == COMPILED:
            return self.compiled(codec)
        return (lambda x: arrcomp.compress(x, codec, seed=seed_of(codec))), arrcomp.decompress

    def compiled(self, codec: Codec) -> tuple[Callable[[Any], Compressed], Callable[[Compressed], Any]]:
        """How to do so with the framework's compiler."""
        raise AssertionError(f"{self.name} has no compiler")

    def functions_with_reference(self, way: str, codec: Codec) -> WithReference:
        """How to compress an array against a reference, and to decompress it."""
        if way == MANY:
            tree = lambda x: [1, {"x": x}, x[:1]]  # noqa: E731
            return (
                lambda x, old: arrcomp.compress_many(tree(x), codec, reference=tree(old))[1]["x"],
                lambda c, old: arrcomp.decompress_many({"c": [c], "d": 3}, reference={"c": (old,)})["c"][0],
            )
        if way == COMPILED:
            return self.compiled_with_reference(codec)
        return (
            lambda x, old: arrcomp.compress(x, codec, reference=old),
            lambda c, old: arrcomp.decompress(c, reference=old),
        )

    def compiled_with_reference(self, codec: Codec) -> WithReference:
        """How to do so with the framework's compiler."""
        raise AssertionError(f"{self.name} has no compiler")


WithReference = tuple[Callable[[Any, Any], Compressed], Callable[[Compressed, Any], Any]]


class DLPack(Place):
    """Some library's arrays in host memory; NumPy's come back."""

    name = "DLPack"
    ways = (EAGER,)

    def put(self, array: Array) -> Any:
        try:
            array.__dlpack__()
        except (BufferError, TypeError, RuntimeError) as error:
            pytest.skip(f"NumPy exports no {array.dtype}: {error}")
        return OnlyDLPack(array)

    def describe(self, x: Any) -> tuple[Any, ...]:
        return ()


class Torch(Place):
    """PyTorch's tensors."""

    name = "PyTorch"
    ways = (EAGER, COMPILED, MANY)

    def check(self) -> None:
        self.torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
        if self.torch is None:
            pytest.skip("PyTorch is not installed")
        if self.device == "cuda":
            _need_cuda(self.torch.cuda.is_available(), "PyTorch")

    def put(self, array: Array) -> Any:
        torch = self.torch
        dtype = None if array.dtype.name in ("int4", "uint4") else getattr(torch, array.dtype.name, None)
        if dtype is None:
            pytest.skip(f"PyTorch has no {array.dtype}")
        raw = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy())
        return raw.to(self.device).view(dtype).reshape(array.shape)

    def get(self, array: Any) -> Array:
        x = array
        raw: Array = x.cpu().contiguous().reshape(-1).view(self.torch.uint8).numpy()
        return raw.view(numpy_dtype(str(x.dtype).removeprefix("torch."))).reshape(tuple(x.shape))

    def describe(self, x: Any) -> tuple[Any, ...]:
        return type(x), x.dtype, tuple(x.shape), x.device

    def compiled(self, codec: Codec) -> tuple[Callable[[Any], Compressed], Callable[[Compressed], Any]]:
        import arrcomp.torch

        self.torch.compiler.reset()
        compress = self.torch.compile(
            lambda x: arrcomp.torch.compress(x, codec, seed=seed_of(codec)),
            fullgraph=True,
            dynamic=False,
            backend="aot_eager",
        )
        decompress = self.torch.compile(arrcomp.torch.decompress, fullgraph=True, dynamic=False, backend="aot_eager")
        return compress, decompress

    def compiled_with_reference(self, codec: Codec) -> WithReference:
        import arrcomp.torch

        self.torch.compiler.reset()
        options: dict[str, Any] = {"fullgraph": True, "dynamic": False, "backend": "aot_eager"}
        compress = self.torch.compile(lambda x, old: arrcomp.torch.compress(x, codec, reference=old), **options)
        decompress = self.torch.compile(lambda c, old: arrcomp.torch.decompress(c, reference=old), **options)
        return compress, decompress


class TorchCuda(Torch):
    """PyTorch's tensors on a GPU."""

    device = "cuda"


class Jax(Place):
    """JAX's arrays."""

    name = "JAX"
    ways = (EAGER, COMPILED, MANY)

    def check(self) -> None:
        self.jax: Any = importlib.import_module("jax") if importlib.util.find_spec("jax") else None
        if self.jax is None:
            pytest.skip("JAX is not installed")
        try:
            self.place = self.jax.devices(self.device)[0]
        except RuntimeError as error:
            pytest.skip(f"JAX: {error}")
        if self.device == "cuda":
            _need_cuda(True, "JAX")

    def context(self) -> contextlib.AbstractContextManager[Any]:
        home = self.jax if hasattr(self.jax, "enable_x64") else importlib.import_module("jax.experimental")
        context: contextlib.AbstractContextManager[Any] = home.enable_x64(True)
        return context

    def put(self, array: Array) -> Any:
        if array.dtype.name.startswith("float6_"):  # which newer JAX has
            pytest.skip(f"XLA hands no {array.dtype} to custom calls")
        try:
            return self.jax.device_put(array, self.place)
        except (RuntimeError, TypeError, ValueError) as error:
            pytest.skip(f"JAX has no {array.dtype}: {error}")

    def get(self, array: Any) -> Array:
        return np.asarray(array)

    def describe(self, x: Any) -> tuple[Any, ...]:
        return isinstance(x, self.jax.Array), x.dtype, x.shape, x.devices()

    def compiled(self, codec: Codec) -> tuple[Callable[[Any], Compressed], Callable[[Compressed], Any]]:
        import arrcomp.jax

        compress = self.jax.jit(lambda x: arrcomp.jax.compress(x, codec, seed=seed_of(codec)))
        return compress, self.jax.jit(arrcomp.jax.decompress)

    def compiled_with_reference(self, codec: Codec) -> WithReference:
        import arrcomp.jax

        compress = self.jax.jit(lambda x, old: arrcomp.jax.compress(x, codec, reference=old))
        return compress, self.jax.jit(lambda c, old: arrcomp.jax.decompress(c, reference=old))


class JaxCuda(Jax):
    """JAX's arrays on a GPU."""

    device = "cuda"


class Cupy(Place):
    """CuPy's arrays."""

    name = "CuPy"
    device = "cuda"

    def check(self) -> None:
        self.cupy: Any = importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None
        if self.cupy is None:
            pytest.skip("CuPy is not installed")
        _need_cuda(self.cupy.cuda.is_available(), "CuPy")

    def put(self, array: Array) -> Any:
        try:
            return self.cupy.asarray(array)
        except (TypeError, ValueError) as error:
            pytest.skip(f"CuPy has no {array.dtype}: {error}")

    def get(self, array: Any) -> Array:
        found: Array = self.cupy.asnumpy(array)
        return found

    def describe(self, x: Any) -> tuple[Any, ...]:
        return type(x), x.dtype, x.shape, x.device


PLACES: tuple[Place, ...] = (Place(), Torch(), Jax(), DLPack(), TorchCuda(), JaxCuda(), Cupy())


def on_gpu() -> Place:
    """The first framework that has a GPU; skips the test where none has."""
    for place in (TorchCuda(), Cupy()):
        try:
            place.check()
        except pytest.skip.Exception:
            continue
        return place
    pytest.skip("neither a torch with CUDA nor cupy is installed")


def table(passed: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    """The conformance matrix in Markdown: for how many dtypes all settings of a codec agree with NumPy.

    Args:
        passed: title of the place, way, name of the codec's class, its settings, and dtype of every test that passed.
    """
    settings: dict[tuple[str, str], set[str]] = {}  # that a codec has for a dtype
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for title, way, codec, setting, dtype in passed:
        settings.setdefault((codec, dtype), set()).add(setting)
        found.setdefault((title, way, codec), Counter())[dtype] += 1

    def cell(title: str, way: str, codec: str) -> str:
        counts = found.get((title, way, codec), Counter())
        return str(sum(count == len(settings[codec, dtype]) for dtype, count in counts.items()))

    measured = {codec for codec, _ in settings}
    codecs = [kind.__name__ for kind in arrcomp.available_codecs().values() if kind.__name__ in measured]
    rows = [["", "", *(f"`{codec}`" for codec in codecs)], ["---"] * (2 + len(codecs))]
    rows += [
        [place.title, way, *(cell(place.title, way, codec) for codec in codecs)]
        for place in PLACES
        for way in place.ways
        if any((place.title, way, codec) in found for codec in codecs)
    ]
    return [f"| {' | '.join(row)} |" for row in rows]


def _need_cuda(framework_has_it: bool, framework: str) -> None:
    from arrcomp import _core

    if _core.cuda_device_count() == 0:
        pytest.skip("arrcomp finds no CUDA device")
    if not framework_has_it:
        pytest.skip(f"{framework} finds no CUDA device")
