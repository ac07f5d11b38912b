"""Tensors that are compressed against others, in eager and in compiled code."""

from __future__ import annotations

from typing import Any

import pytest

import arrcomp
from arrcomp import ErrorBounded, Lossless

torch = pytest.importorskip("torch")

import arrcomp.torch

OLD = torch.linspace(-1, 1, 6000).reshape(60, 100)


def changed(old: Any) -> Any:
    new = old.clone()
    new[::10] += 0.25
    return new


NEW = changed(OLD)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_code_applies_in_place(dynamic: bool) -> None:
    torch.compiler.reset()
    c = arrcomp.compress(NEW, reference=OLD)

    def apply(c: Any, weights: Any) -> Any:
        arrcomp.torch.decompress(c, reference=weights, out=weights)
        return weights * 2

    weights = OLD.clone()
    y = torch.compile(apply, fullgraph=True, dynamic=dynamic, backend="aot_eager")(c, weights)
    assert torch.equal(weights, NEW)
    assert torch.equal(y, NEW * 2)


def test_parameters_and_views_are_references() -> None:
    parameter, wide = torch.nn.Parameter(OLD.clone()), OLD.t().contiguous().t()
    assert not wide.is_contiguous()
    for old in (parameter, wide, OLD.to(torch.complex64).conj().real):
        c = arrcomp.torch.compress(NEW, reference=old)
        assert c.ratio > 5
        assert torch.equal(arrcomp.torch.decompress(c, reference=old), NEW)
    with torch.no_grad():
        arrcomp.decompress(arrcomp.compress(NEW, reference=parameter), reference=parameter, out=parameter.data)
    assert torch.equal(parameter, NEW)


def test_a_compressed_weight_is_a_reference() -> None:
    old = arrcomp.torch.CompressedWeight(arrcomp.compress(OLD))
    c = arrcomp.compress(NEW, reference=old)
    assert c.ratio > 5
    assert torch.equal(arrcomp.decompress(c, reference=old), NEW)
    assert arrcomp.compress(old, reference=OLD).ratio > 100
    arrcomp.decompress(c, reference=old, out=old)
    assert isinstance(old, arrcomp.torch.CompressedWeight)
    assert torch.equal(old, NEW)


def test_a_lazy_conjugate_is_a_reference() -> None:
    old, new = torch.complex(OLD, -OLD).conj(), torch.complex(NEW, OLD)
    c = arrcomp.compress(new, reference=old)
    assert c.reference_hash == arrcomp.content_hash(old) == arrcomp.content_hash(old.resolve_conj())
    assert torch.equal(arrcomp.decompress(c, reference=old), new)


def test_states_are_compressed_against_states() -> None:
    old = {"a": OLD, "b": [OLD[0], torch.tensor([1, 2, 3])], "step": 3}
    new = {"a": NEW, "b": [NEW[0], torch.tensor([1, 2, 4])], "step": 4}
    packed = arrcomp.compress_many(new, ErrorBounded(abs=1e-3), reference=old)
    assert packed["a"].codec == ErrorBounded(abs=1e-3).with_reference()
    assert packed["b"][1].codec == Lossless().with_reference()
    back = arrcomp.decompress_many(packed, reference=old)
    assert (back["a"] - NEW).abs().max() <= 1e-3
    assert torch.equal(back["b"][1], new["b"][1])
    assert back["step"] == 4
    with pytest.raises(ValueError, match=r"tree\['a'\]: reference: expected an array at its place"):
        arrcomp.compress_many(new, reference={"b": old["b"]})
    with pytest.raises(TypeError, match=r"tree\['a'\]: reference: expected None for QSGD, got an array"):
        arrcomp.compress_many(new, arrcomp.QSGD(), reference=old)
    with pytest.raises(TypeError, match=r"reference of tree\['a'\]: expected dtype float32, got int64"):
        arrcomp.compress_many(new, reference={**old, "a": OLD.long()})


def test_what_is_no_reference_is_taken() -> None:
    c = arrcomp.torch.compress(NEW, reference=OLD)
    with pytest.raises(arrcomp.WrongReferenceError):
        arrcomp.torch.decompress(c, reference=NEW)
    with pytest.raises(TypeError, match=r"reference: expected a torch.Tensor"):
        arrcomp.torch.compress(NEW, reference=OLD.numpy())
    with pytest.raises(TypeError, match=r"reference: expected a dense tensor"):
        arrcomp.torch.compress(NEW, reference=OLD.to_sparse())
    with pytest.raises(TypeError, match=r"reference: expected None with predictor='auto', got an array"):
        arrcomp.torch.compress(NEW, Lossless(predictor="auto"), reference=OLD)
    with pytest.raises(ValueError, match=r"reference: expected an array"):
        arrcomp.torch.roundtrip(NEW, Lossless(predictor="reference"))
