"""A weight that is kept compressed: a tensor for everybody else, which is decompressed by whoever computes with it."""

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ..._api.compressed import Compressed
from ..._arguments import wrong_type, wrong_value
from ..._arrays.contract import Payload
from ..._format.spec import Spec
from ...codecs import Codec
from .._adapter import ADAPTER
from .._functions import compress, decompress
from .._tensors import check_tensor, type_named

_aten: Any = torch.ops.aten
_wrapper: Any = Tensor._make_wrapper_subclass  # PyTorch has no type for it


class CompressedWeight(Tensor):
    """A frozen weight whose values are kept compressed, on its device.

    `compress_weights` puts it in place of a model's parameters. It has the weight's shape, dtype and device, and every
    operator takes it: one that reads its values decompresses them to new memory first. One that changes it in place
    compresses the result with the same codec, and so does an assignment to it or to its `data`. `detach`, `clone`,
    `to(device)`, `state_dict`, `load_state_dict`, `torch.save` and copies of a model keep it compressed. Other results
    are ordinary tensors, those of another dtype too. A row, or another view, is a copy: what is written into it is not
    in the weight. It has no gradient: `requires_grad_` raises ValueError.

    Args:
        compressed: the values. Those that this process did not compress are checked: they are decompressed once.

    Raises:
        TypeError: it is not a `Compressed`, needs a reference, or is of a dtype that PyTorch does not have.
        CorruptStreamError: the values are damaged.

    >>> import torch, arrcomp.torch
    >>> weight = arrcomp.torch.CompressedWeight(arrcomp.torch.compress(torch.ones(300, 400)))
    >>> weight.shape, weight.compressed.nbytes < 1000, bool((weight + 1 == 2).all())
    (torch.Size([300, 400]), True, True)
    """

    __torch_function__: Any = torch._C._disabled_torch_function_impl  # above the dispatcher it is a tensor as any other
    _is_param = True  # an instance of Parameter

    _held: "_Held"
    _is_transposed: bool

    @staticmethod
    def __new__(cls, compressed: Compressed) -> "CompressedWeight":
        return _wrapped(_Held(_checked(compressed)))

    @property
    def compressed(self) -> Compressed:
        """The values, compressed: those of the weight that was given, where this is its transpose."""
        return self._held.compressed

    @property
    def codec(self) -> Codec:
        """The codec that keeps the values."""
        return self.compressed.codec

    def decompressed(self) -> Tensor:
        """The values, in new memory."""
        values = decompress(self.compressed)
        return values.t() if self._is_transposed else values

    @property
    def data(self) -> Tensor:
        """The weight itself, compressed. Values that are assigned to it are compressed with the same codec."""
        return Tensor.data.__get__(self)  # type: ignore[attr-defined, no-any-return]

    @data.setter
    def data(self, values: Tensor) -> None:
        check_tensor("data", values)
        if isinstance(values, CompressedWeight):
            _become(self, values)
        else:
            set_values(self, values)

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.decompressed()
        with torch.no_grad():
            values[index] = value
        set_values(self, values)

    def share_memory_(self) -> "CompressedWeight":
        """Move the compressed values to shared memory, as for any tensor."""
        payload: Any = self._payload
        payload.share_memory_()
        return self

    def __dlpack__(self, **options: Any) -> Any:
        return self.decompressed().__dlpack__(**options)

    def is_shared(self) -> bool:
        """Whether the compressed values are in shared memory."""
        payload: Any = self._payload
        return bool(payload.is_shared())

    def requires_grad_(self, requires_grad: bool = True) -> "CompressedWeight":
        """Raise ValueError for True: `decompress_weights` makes weights that can be trained."""
        if requires_grad:
            raise wrong_value("requires_grad", "False, as a compressed weight is frozen (decompress_weights)", True)
        return self

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"CompressedWeight({self.compressed!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._is_transposed:
            return CompressedWeight(compress(self.decompressed(), self.codec)).__reduce_ex__(protocol)
        return CompressedWeight, (self.compressed,)

    # For compilers: the payload is a tensor of the graph, all else a constant.

    @property
    def _payload(self) -> Tensor:
        buffer: Tensor = self.compressed.payload.buffer
        return buffer

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["_payload"], (self.compressed.spec, self._is_transposed)

    @staticmethod
    def __tensor_unflatten__(
        tensors: dict[str, Tensor], about: tuple[Spec, bool], size: Any, stride: Any
    ) -> "CompressedWeight":
        spec, is_transposed = about
        return _wrapped(_held_in(tensors["_payload"], spec), is_transposed)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        kept = _KEPT.get(func)
        result = NotImplemented if kept is None else kept(*args, **kwargs)
        return _computed(func, args, kwargs) if result is NotImplemented else result


class _Held:
    """The values, which all aliases of a weight share."""

    __slots__ = ("compressed",)

    def __init__(self, compressed: Compressed) -> None:
        self.compressed = compressed


def set_values(weight: CompressedWeight, values: Tensor) -> None:
    """Give a weight other values. It becomes one of their shape, dtype and device.

    Raises RuntimeError under tracing.
    """
    _check_changeable()
    if (values.shape, values.dtype, values.device) == (weight.shape, weight.dtype, weight.device):
        weight._held.compressed = compress(values.t() if weight._is_transposed else values, weight.codec)
    else:
        _become(weight, _wrapped(_Held(compress(values, weight.codec))))


def _check_changeable() -> None:
    if torch.compiler.is_compiling():  # the payload of a graph's input would stay as it is
        raise RuntimeError("weight: expected changes of a compressed weight outside of compiled code, got one in it")


def _become(weight: CompressedWeight, other: CompressedWeight) -> None:
    """Make a weight an alias of another one, of any shape, dtype and device. Raises RuntimeError under tracing."""
    _check_changeable()
    Tensor.data.__set__(weight, other)  # type: ignore[attr-defined]
    weight._held, weight._is_transposed = other._held, other._is_transposed


def _checked(compressed: Any) -> Compressed:
    if not isinstance(compressed, Compressed):
        raise wrong_type("compressed", "a Compressed", compressed)
    if compressed.needs_reference:
        raise TypeError(f"compressed: expected an array without a reference, got one by {compressed.codec!r}")
    type_named(compressed.spec.dtype.name)
    if compressed.payload.adapter is not ADAPTER:
        compressed = compressed.to(torch.empty(0))
    if compressed.payload.buffer.is_meta:
        raise TypeError("compressed: expected values on 'cpu' or 'cuda', got a meta tensor, which has no data")
    checked: Compressed = compressed
    checked.verify()
    return checked.trim()


def _wrapped(held: _Held, is_transposed: bool = False) -> CompressedWeight:
    spec, buffer = held.compressed.spec, held.compressed.payload.buffer
    shape, strides = spec.shape, None
    if is_transposed:
        shape, strides = shape[::-1], (1, max(shape[1], 1))
    weight: CompressedWeight = _wrapper(
        CompressedWeight, shape, strides=strides, dtype=type_named(spec.dtype.name), device=buffer.device
    )
    weight._held = held
    weight._is_transposed = is_transposed
    return weight


def _held_in(buffer: Tensor, spec: Spec) -> _Held:
    return _Held(Compressed(spec, Payload(ADAPTER, buffer, trusted=True)))


# Operators whose result is compressed too. NotImplemented: with these arguments it is not.


def _alias(weight: CompressedWeight) -> CompressedWeight:
    return _wrapped(weight._held, weight._is_transposed)


def _transpose(weight: CompressedWeight, first: int = 0, second: int = 1) -> Any:
    if weight.dim() != 2 or (first - second) % 2 == 0:
        return NotImplemented
    return _wrapped(weight._held, not weight._is_transposed)


def _clone(weight: CompressedWeight, *, memory_format: Any = None) -> Any:
    if memory_format not in (None, torch.preserve_format) and weight._is_transposed:
        return NotImplemented
    if torch.compiler.is_compiling():  # whoever clones a weight there may change the clone
        return NotImplemented
    return _wrapped(_held_in(weight._payload.clone(), weight.compressed.spec), weight._is_transposed)


def _to_copy(
    weight: CompressedWeight, *, dtype: Any = None, device: Any = None, non_blocking: bool = False, **others: Any
) -> Any:
    if dtype not in (None, weight.dtype) or weight._is_transposed or torch.device(device or "cpu").type == "meta":
        return NotImplemented
    payload = weight._payload.to(weight.device if device is None else device, non_blocking=non_blocking, copy=True)
    return _wrapped(_held_in(payload, weight.compressed.spec))


def _copy(weight: CompressedWeight, source: Tensor, non_blocking: bool = False) -> CompressedWeight:
    _check_changeable()
    if isinstance(source, CompressedWeight) and _is_same_kind(weight, source):
        weight._held.compressed = Compressed(
            source.compressed.spec, Payload(ADAPTER, source._payload.to(weight.device, copy=True), trusted=True)
        )
    elif isinstance(weight, CompressedWeight):
        values = source.decompressed() if isinstance(source, CompressedWeight) else source
        set_values(weight, values.to(weight.device, weight.dtype).expand(weight.shape))
    else:
        return NotImplemented
    return weight


def _is_same_kind(weight: Any, source: CompressedWeight) -> bool:
    if not isinstance(weight, CompressedWeight) or weight._is_transposed or source._is_transposed:
        return False
    return bool(weight.compressed.spec == source.compressed.spec)


_KEPT: dict[Any, Any] = {
    _aten.detach.default: _alias,
    _aten.alias.default: _alias,
    _aten.t.default: _transpose,
    _aten.transpose.int: _transpose,
    _aten.clone.default: _clone,
    _aten._to_copy.default: _to_copy,
    _aten.copy_.default: _copy,
}


def _computed(func: Any, args: Any, kwargs: Any) -> Any:
    """The operator's result on decompressed weights; those that it changed are compressed again."""
    values: dict[int, tuple[CompressedWeight, Tensor]] = {}

    def decompressed(weight: CompressedWeight) -> Tensor:
        return values.setdefault(id(weight), (weight, weight.decompressed()))[1]

    plain_args, plain_kwargs = pytree.tree_map_only(CompressedWeight, decompressed, (args, kwargs))
    result = func(*plain_args, **plain_kwargs)
    if not func._schema.is_mutable:
        return result
    changed = [values[id(weight)] for weight in _written(func, args, kwargs) if isinstance(weight, CompressedWeight)]
    for weight, tensor in changed:
        set_values(weight, tensor)
    weights = {id(tensor): weight for weight, tensor in changed}
    return pytree.tree_map_only(Tensor, lambda x: weights.get(id(x), x), result)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an operator changes."""
    given = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
    written = [given.get(a.name) for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return pytree.tree_leaves(written)


torch.serialization.add_safe_globals([CompressedWeight])
