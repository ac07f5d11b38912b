"""Sums of compressed arrays in every framework: the bytes and elements that NumPy's have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
import fake_cupy
from arrcomp import QSGD, Compressed, CorruptStreamError
from checks import Array

COUNT = 9001
WEIGHTS = [1.0, -0.5, 0.3]
CODECS = [QSGD(), QSGD(bits=3, bucket_size=100, norm="l2", rounding="stochastic")]
RESULT = QSGD(bits=8)


def arrays() -> list[Array]:
    """What is added."""
    rng = np.random.default_rng(2)
    return [rng.normal(0, i + 1, COUNT).astype(np.float32) for i in range(3)]


def numpy_parts(codec: QSGD) -> list[Compressed]:
    return [arrcomp.compress(x, codec, seed=i) for i, x in enumerate(arrays())]


def expected_sum(codec: QSGD, result: QSGD | None = None) -> bytes:
    return arrcomp.compress_sum(numpy_parts(codec), result, weights=WEIGHTS, seed=5).to_bytes()


def expected_array(codec: QSGD) -> Array:
    found: Array = arrcomp.accumulate(numpy_parts(codec)[0], np.ones(COUNT, np.float32), 0.3)
    return found


def from_outside(c: Compressed, nbytes: int) -> Compressed:
    """The same as if another process had made it, with a payload of another length."""
    payload = arrcomp._arrays.contract.Payload(c.payload.adapter, c.payload.buffer[:nbytes])
    return Compressed(c.spec, payload)


class TestTorch:
    """PyTorch, eager and compiled."""

    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    def parts(self, torch: Any, codec: QSGD) -> list[Compressed]:
        return [arrcomp.compress(torch.from_numpy(x), codec, seed=i) for i, x in enumerate(arrays())]

    @pytest.mark.parametrize("codec", CODECS)
    def test_eager(self, torch: Any, codec: QSGD) -> None:
        parts = self.parts(torch, codec)
        assert arrcomp.compress_sum(parts, weights=WEIGHTS, seed=5).to_bytes() == expected_sum(codec)
        made = arrcomp.torch.compress_sum(parts, RESULT, weights=WEIGHTS, seed=torch.tensor(5))
        assert made.to_bytes() == expected_sum(codec, RESULT)
        out = torch.zeros(arrcomp.max_compressed_nbytes(COUNT, "float32") + 1, dtype=torch.uint8)
        for room in (out, out[1:]):
            assert arrcomp.compress_sum(parts, weights=WEIGHTS, seed=5, out=room).to_bytes() == expected_sum(codec)
        into = torch.ones(COUNT)
        assert arrcomp.accumulate(parts[0], into, 0.3) is into
        checks.check_same_bits(into.numpy(), expected_array(codec))
        into = torch.ones(COUNT)
        arrcomp.torch.accumulate(numpy_parts(codec)[0], into, 0.3)
        checks.check_same_bits(into.numpy(), expected_array(codec))

    def test_a_result_of_variable_rate(self, torch: Any) -> None:
        parts = self.parts(torch, QSGD())
        expected = arrcomp.compress_sum(numpy_parts(QSGD()), arrcomp.Lossless()).to_bytes()
        assert arrcomp.compress_sum(parts, arrcomp.Lossless()).to_bytes() == expected

    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize("codec", CODECS)
    def test_compiled(self, torch: Any, codec: QSGD, dynamic: bool) -> None:
        def step(x: Any, parts: list[Compressed], into: Any) -> tuple[Compressed, Any]:
            own = arrcomp.torch.compress(x, codec, seed=0)
            arrcomp.torch.accumulate(own, into, 0.3)
            return arrcomp.torch.compress_sum([own, *parts[1:]], weights=WEIGHTS, seed=5), into + 0

        compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        into = torch.ones(COUNT)
        made, twin = compiled(torch.from_numpy(arrays()[0]), self.parts(torch, codec), into)
        assert made.to_bytes() == expected_sum(codec)
        checks.check_same_bits(into.numpy(), expected_array(codec))
        checks.check_same_bits(twin.numpy(), expected_array(codec))

    def test_operators_pass_their_own_checks(self, torch: Any) -> None:
        import arrcomp.torch._ops as ops

        codec = QSGD()
        buffers = [c.payload.buffer for c in self.parts(torch, codec)]
        coding = (codec.id, codec.core_parameters())
        tests = ("test_schema", "test_faketensor")
        into = torch.ones(COUNT)
        torch.library.opcheck(ops.accumulate, (into, buffers, [None] * 3, WEIGHTS, *coding), test_utils=tests)
        about = (COUNT, torch.float32, *coding, *coding)
        torch.library.opcheck(ops.encode_sum, (buffers, [None] * 3, WEIGHTS, *about), test_utils=tests)
        out = torch.zeros(COUNT, dtype=torch.uint8)
        torch.library.opcheck(ops.encode_sum_out, (buffers, [None] * 3, WEIGHTS, out, *about), test_utils=tests)

    def test_wrong_arguments_are_named(self, torch: Any) -> None:
        (c, *_) = self.parts(torch, QSGD())
        cases: list[tuple[Any, type[Exception], str]] = [
            (torch.ones(5), ValueError, r"into: expected shape .*, got \(5,\)"),
            (torch.ones(COUNT, dtype=torch.float64), TypeError, "into: expected dtype float32, got float64"),
            (torch.ones(2 * COUNT)[::2], ValueError, "into: expected a C-contiguous"),
            (torch.ones(COUNT, requires_grad=True), ValueError, "into: expected a tensor that requires no gradient"),
        ]
        for into, error, message in cases:
            with pytest.raises(error, match=message):
                arrcomp.accumulate(c, into)
        with pytest.raises(CorruptStreamError):
            arrcomp.accumulate(from_outside(c, -8), torch.ones(COUNT))
        with pytest.raises(CorruptStreamError, match="payload 1"):
            arrcomp.compress_sum([c, from_outside(c, -8)])
        with pytest.raises(ValueError, match=r"^compressed\[1\]: expected torch on .*, got numpy on cpu"):
            arrcomp.compress_sum([c, numpy_parts(QSGD())[0]])


class TestJax:
    """JAX, outside and inside of its transformations."""

    @pytest.fixture
    def jax(self) -> Any:
        return pytest.importorskip("jax")

    def parts(self, jax: Any, codec: QSGD) -> list[Compressed]:
        return [arrcomp.compress(jax.numpy.asarray(x), codec, seed=i) for i, x in enumerate(arrays())]

    @pytest.mark.parametrize("codec", CODECS)
    def test_outside_and_inside_of_jit(self, jax: Any, codec: QSGD) -> None:
        import arrcomp.jax as ours

        parts, ones = self.parts(jax, codec), jax.numpy.ones(COUNT)

        def both(parts: list[Compressed], into: Any, seed: Any) -> tuple[Compressed, Any]:
            made = ours.compress_sum(parts, RESULT, weights=WEIGHTS, seed=seed)
            return made, ours.accumulate(parts[0], into, 0.3)

        assert arrcomp.compress_sum(parts, weights=WEIGHTS, seed=5).to_bytes() == expected_sum(codec)
        for function in (both, jax.jit(both)):
            made, added = function(parts, ones, jax.numpy.uint32(5))
            assert made.to_bytes() == expected_sum(codec, RESULT)
            checks.check_same_bits(np.asarray(added), expected_array(codec))
            assert (np.asarray(ones) == 1).all()
        assert isinstance(arrcomp.accumulate(numpy_parts(codec)[0], ones), jax.Array)

    @pytest.mark.parametrize("codec", CODECS)
    def test_batches(self, jax: Any, codec: QSGD) -> None:
        import arrcomp.jax as ours

        x = jax.numpy.stack([jax.numpy.asarray(array) for array in arrays()])

        def one(x: Any) -> tuple[Any, Any]:
            parts = [ours.compress(scale * x, codec, seed=1) for scale in (1, 2)]
            total = ours.compress_sum(parts, weights=WEIGHTS[:2], seed=5)
            return ours.decompress(total), ours.accumulate(parts[0], x, 2.0)

        sums, added = jax.vmap(one)(x)
        for i in range(3):
            total, more = one(x[i])
            checks.check_same_bits(np.asarray(sums[i]), np.asarray(total))
            checks.check_same_bits(np.asarray(added[i]), np.asarray(more))

    def test_wrong_arguments_are_named(self, jax: Any) -> None:
        (c, *_) = self.parts(jax, QSGD())
        with pytest.raises(ValueError, match=r"into: expected shape .*, got \(5,\)"):
            arrcomp.accumulate(c, jax.numpy.ones(5))
        with pytest.raises(TypeError, match="out: expected None, got an array; JAX arrays are immutable"):
            arrcomp.compress_sum([c], out=np.zeros(9999, np.uint8))
        with pytest.raises(CorruptStreamError, match="payload 0"):
            arrcomp.accumulate(from_outside(c, -8), jax.numpy.ones(COUNT))
        with pytest.raises(CorruptStreamError, match="payload 1"):
            arrcomp.compress_sum([c, from_outside(c, -8)])


class TestCupy:
    """CuPy's double."""

    @pytest.fixture
    def cupy(self) -> Iterator[Any]:
        with fake_cupy.installed() as module:
            yield module

    def parts(self, cupy: Any, codec: QSGD) -> list[Compressed]:
        return [arrcomp.compress(cupy.asarray(x), codec, seed=i) for i, x in enumerate(arrays())]

    @pytest.mark.parametrize("codec", CODECS)
    def test_the_bytes_are_those_of_numpy(self, cupy: Any, codec: QSGD) -> None:
        parts = self.parts(cupy, codec)
        waits = cupy.cuda.Stream.waits
        made = arrcomp.compress_sum(parts, weights=WEIGHTS, seed=5)
        into = cupy.asarray(np.ones(COUNT, np.float32))
        assert arrcomp.accumulate(parts[0], into, 0.3) is into
        with_seed = arrcomp.compress_sum(parts, RESULT, weights=WEIGHTS, seed=cupy.asarray(np.array(5)))
        lossless = arrcomp.compress_sum(parts, arrcomp.Lossless())
        assert cupy.cuda.Stream.waits == waits
        assert made.to_bytes() == expected_sum(codec)
        assert with_seed.to_bytes() == expected_sum(codec, RESULT)
        expected = arrcomp.compress_sum(numpy_parts(codec), arrcomp.Lossless())
        assert lossless.to_bytes() == expected.to_bytes()
        checks.check_same_bits(cupy.asnumpy(into), expected_array(codec))

    def test_wrong_arguments_are_named(self, cupy: Any) -> None:
        (c, *_) = self.parts(cupy, QSGD())
        with pytest.raises(ValueError, match=r"into: expected shape .*, got \(5,\)"):
            arrcomp.accumulate(c, cupy.asarray(np.ones(5, np.float32)))
        with pytest.raises(CorruptStreamError):
            arrcomp.accumulate(from_outside(c, -8), cupy.asarray(np.ones(COUNT, np.float32)))
        with pytest.raises(CorruptStreamError):
            arrcomp.compress_sum([c, from_outside(c, -8)])
