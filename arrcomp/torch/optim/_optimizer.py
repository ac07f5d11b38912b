"""A wrapper of an optimizer that keeps its state compressed."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..._api.compressed import Compressed, decompress
from ..._arguments import check_flag, checked_integer, shown, thread_count, wrong_type
from ..._methods.seeds import MAX_SEED
from .._tensors import dtype_of
from ._parameters import local, with_layout_of
from ._state_codecs import CodecChoice, StateCodecs, eight_bit
from ._store import Entries, StateStore, leaves, mapped, replace

# PyTorch's optimizers (not all in every version) that step each parameter independently.
_KINDS = (
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "RAdam", "RMSprop"),
    *("Rprop", "SGD", "SparseAdam"),
)
_MAX_STATES = 3  # state tensors of a parameter's size that these create: the estimate before the first step
_OURS = "compression"  # key in a state_dict

# PyTorch marks its optimizers' methods so. torch.compiler.disable would import the compiler here: two seconds.
_uncompiled: Callable[[Callable[..., Any]], Callable[..., Any]] = torch._disable_dynamo  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Hidden:
    """A `Compressed` on its way through the `load_state_dict` of the wrapped optimizer, which would refuse it."""

    compressed: Compressed


class StateMemory(NamedTuple):
    """Bytes of an optimizer's state.

    Attributes:
        nbytes: between steps, with uncompressed tensors.
        original_nbytes: without compression.
        scratch_nbytes: the most that was decompressed at a time in the last step.
    """

    nbytes: int
    original_nbytes: int
    scratch_nbytes: int

    @property
    def ratio(self) -> float:
        """Bytes without compression divided by bytes with it."""
        return self.original_nbytes / self.nbytes if self.nbytes else 1.0


def _forwarded(name: str) -> property:
    """An attribute of the wrapped optimizer."""
    return property(lambda self: getattr(self.optimizer, name), lambda self, x: setattr(self.optimizer, name, x))


class CompressedOptimizer(Optimizer):
    """Wraps an optimizer and compresses its state between steps.

    Use it instead of the wrapped optimizer, also for schedulers, `torch.amp.GradScaler`, hooks, `zero_grad` and
    `add_param_group`. Parameter groups, hooks and state are shared with the wrapped optimizer; compressed tensors in
    its `state` are `arrcomp.Compressed`. Only call `step` of the wrapper.
    (`arrcomp.jax.optim.compressed_optimizer` does the same for JAX, where optimizers are pairs of functions.)

    A step decompresses the state of a batch of parameters, steps them, and compresses their state again. `scratch`
    bounds the memory of a batch; large batches keep PyTorch's `foreach` and `fused` implementations fast. State of
    parameters without gradients is not touched. This works for the optimizers of `torch.optim` except LBFGS, and for
    subclasses with the same `step`: they step each parameter independently. For other optimizers a step decompresses
    and compresses all state at once, unless `separable` is True.

    A step computes what the wrapped optimizer computes from the decompressed state: with `Lossless`, the same bits.
    Fixed-rate codecs reuse the memory of payloads, so only the scratch is allocated. They are asynchronous, and CUDA
    graphs can be captured after the first step (with `capturable=True`, without stochastic rounding). `torch.compile`
    does not compile steps.

    Adam and related optimizers divide first moments by the roots of second moments. A second moment that is rounded to
    0 with a nonzero first moment makes a huge step. So the codec of first moments should keep zeros (`QSGD` with
    "minmax" does not), and that of second moments should round nothing else to 0
    (`Codebook.dynamic8(signed=False)` does not).

    Floating-point tensors with a codec and `min_size` values are compressed. Step counters, and small, integer, complex
    and sparse tensors are not. For DTensor parameters (FSDP2), each process compresses its shards.

    Args:
        optimizer: the optimizer to wrap; existing state is compressed at once.
        codec: one codec for all state; or a mapping from keys such as "exp_avg" (or `fnmatch` patterns such as
            "exp_avg*": the first match wins) to codecs, or to None for no compression, as for keys without a match; or
            a function of a parameter and a key that returns a codec or None. `eight_bit()` is such a mapping.
        min_size: tensors with fewer values are not compressed. (4096 is usual: arXiv:2110.02861.)
        scratch: the most bytes of state to decompress at a time (one parameter may exceed it); None for a whole
            parameter group.
        separable: whether batches of parameters may be stepped one after the other; None decides as described above.
        seed: for stochastic rounding, 0 to 2^64 - 1; steps and tensors derive their own from it.
        threads: number of CPU threads; None for all cores that the process may use.
        compressed_state_dict: the default of `state_dict(compressed=)`. With False, `torch.distributed.checkpoint`
            can store it, by `get_optimizer_state_dict` and `set_optimizer_state_dict`.

    Raises:
        TypeError: an argument has a wrong type, or a codec does not support the dtype of a state.
        ValueError: a number is out of range, or the optimizer has `differentiable=True`.

    >>> import torch
    >>> model = torch.nn.Linear(300, 400)
    >>> optimizer = CompressedOptimizer.eight_bit(torch.optim.Adam(model.parameters()))
    >>> model(torch.ones(300)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.memory().ratio > 3.8
    True
    """

    def __init__(
        self,
        optimizer: Optimizer,
        codec: CodecChoice,
        *,
        min_size: int = 4096,
        scratch: int | None = 1 << 26,
        separable: bool | None = None,
        seed: int = 0,
        threads: int | None = None,
        compressed_state_dict: bool = True,
    ) -> None:
        _check_optimizer(optimizer)
        choice = StateCodecs.of(codec, checked_integer("min_size", min_size, 0, 1 << 62))
        self._scratch = None if scratch is None else checked_integer("scratch", scratch, 1, 1 << 62)
        if separable is not None:
            check_flag("separable", separable)
        self._separable = _is_separable(optimizer) if separable is None else separable
        check_flag("compressed_state_dict", compressed_state_dict)
        self.compressed_state_dict = compressed_state_dict
        self._store = StateStore(choice, thread_count(threads), checked_integer("seed", seed, 0, MAX_SEED))
        self.optimizer = optimizer
        self._begin()
        self._store.compress(self._entries())

    @classmethod
    def eight_bit(cls, optimizer: Optimizer, **options: Any) -> "CompressedOptimizer":
        """Use the codecs of `eight_bit()`: a quarter of the memory. `options` are other arguments of the class.

        Raises:
            TypeError, ValueError: same as for the class; or the optimizer is RMSprop with `centered=True`, which takes
                roots of differences of moments: with rounded moments these may be negative.
        """
        _check_optimizer(optimizer)
        if any(group.get("centered") for group in optimizer.param_groups):
            raise ValueError("optimizer: expected centered=False, got True; roots of rounded differences would be NaN")
        return cls(optimizer, eight_bit(), **options)

    def _begin(self) -> None:
        # Both optimizers share one set of hooks.
        hooks = {name: value for name, value in vars(self.optimizer).items() if name.endswith("_hooks")}
        self.__dict__.update(hooks)
        self._patch_step_function()

    param_groups: Any = _forwarded("param_groups")
    """Parameter groups of the wrapped optimizer."""

    state: Any = _forwarded("state")
    """State of the wrapped optimizer, with a `Compressed` for each compressed tensor."""

    defaults: Any = _forwarded("defaults")
    """Defaults of the wrapped optimizer."""

    @_uncompiled
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step all parameters that have gradients, and return what the closure returned, if there is one.

        The closure evaluates the model and returns the loss. It is called once, with all state compressed; an optimizer
        that is not separable (LBFGS) calls it itself. What the wrapped optimizer raises is raised after the state is
        compressed again.
        """
        self.optimizer._opt_called = True  # type: ignore[attr-defined]  # read by schedulers of the wrapped optimizer
        self._store.step += 1
        self._store.scratch_nbytes = 0
        if not self._separable:
            return self._step_states((), *([] if closure is None else [closure]))
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._step_batches()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self, *, compressed: bool | None = None) -> dict[str, Any]:
        """The wrapped optimizer's state_dict, and the counters of stochastic rounding.

        `compressed` says whether to return compressed tensors as `Compressed`, whose payload `torch.save` saves, or as
        tensors, for use without arrcomp: other optimizers refuse a `Compressed` when they load it. None is
        `compressed_state_dict` of the constructor. After loading compressed tensors, training continues bit for bit;
        loading others compresses them again. Tensors with a codec are copies; others are the optimizer's own, as in
        PyTorch.
        """
        if compressed is None:
            compressed = self.compressed_state_dict
        check_flag("compressed", compressed)
        found = self.optimizer.state_dict()
        if compressed:
            found["state"] = mapped(found["state"], Compressed, copy.deepcopy)
        else:
            owners = {id(c): parameter for _, parameter, entry in self._entries() for c in leaves(entry, Compressed)}
            found["state"] = mapped(found["state"], Compressed, lambda c: with_layout_of(decompress(c), owners[id(c)]))
        return {**found, _OURS: {"seed": self._store.seed, "step": self._store.step}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state_dict of this class, or of an uncompressed optimizer like the wrapped one; it is never changed.

        Compressed state is kept as it was saved; other state is compressed.

        Raises:
            TypeError: it is not a mapping, or a codec does not support the dtype of a state.
            ValueError: it does not match the optimizer.
        """
        if not isinstance(state_dict, Mapping):
            raise wrong_type("state_dict", "a mapping", state_dict)
        counters = _checked_counters(state_dict[_OURS]) if _OURS in state_dict else (self._store.seed, self._store.step)
        hidden = {key: mapped(value, Compressed, _Hidden) for key, value in state_dict.items() if key != _OURS}
        self.optimizer.load_state_dict(hidden)
        self._store.seed, self._store.step = counters
        entries = self._entries()
        for _, parameter, entry in entries:
            replace(entry, _Hidden, partial(self._loaded, parameter))
        self._store.compress(entries)
        for _, _, entry in entries:
            replace(entry, Tensor, torch.clone)  # otherwise steps would change the tensors of `state_dict`

    @property
    def nbytes(self) -> int:
        """Bytes of the state between steps, with uncompressed tensors."""
        return self.memory().nbytes

    @property
    def original_nbytes(self) -> int:
        """Bytes of the state without compression."""
        return self.memory().original_nbytes

    def memory(self) -> StateMemory:
        """Bytes of this process's state."""
        entries = [entry for _, _, entry in self._entries()]
        compressed, plain = leaves(entries, Compressed), sum(local(x).nbytes for x in leaves(entries, Tensor))
        nbytes = plain + sum(c.payload.nbytes for c in compressed)
        return StateMemory(nbytes, plain + sum(c.spec.nbytes for c in compressed), self._store.scratch_nbytes)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("optimizer", "compressed_state_dict", "_store", "_scratch", "_separable")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.optimizer!r})"

    def _loaded(self, parameter: Tensor, hidden: "_Hidden") -> Any:
        """A loaded compressed tensor, copied to the parameter's device."""
        c, shard = hidden.compressed, local(parameter)
        if dtype_of(shard) != c.spec.dtype and _is_separable(self.optimizer):
            # PyTorch casts loaded state to the parameter's dtype, which its optimizers require.
            return with_layout_of(decompress(c, like=shard).to(shard.dtype), parameter)
        return copy.deepcopy(c.to(shard))

    def _step_states(self, which: tuple[Any, ...], *closure: Callable[[], Any]) -> Any:
        """Step with the state of some parameters decompressed; `which` are arguments of `_entries`."""
        before = self._store.decompress(self._entries(*which))
        try:
            return _plain_step(type(self.optimizer))(self.optimizer, *closure)
        finally:
            self._store.compress(self._entries(*which), before)

    def _step_batches(self) -> None:
        """Step all parameters that have gradients, batch by batch."""
        groups, numbers = self.param_groups, self._numbers()
        try:
            for group in groups:
                self.param_groups = [group]
                everything = group["params"]
                try:
                    for batch in list(self._batches(everything)):
                        group["params"] = batch
                        self._step_states((batch, numbers))
                finally:
                    group["params"] = everything
        finally:
            self.param_groups = groups

    def _batches(self, parameters: Iterable[Tensor]) -> Iterator[list[Tensor]]:
        """Parameters with gradients, in batches whose decompressed state fits into `scratch`."""
        batch: list[Tensor] = []
        nbytes = 0
        for parameter in parameters:
            if parameter.grad is None:
                continue
            size = self._state_nbytes(parameter)
            if batch and self._scratch is not None and nbytes + size > self._scratch:
                yield batch
                batch, nbytes = [], 0
            batch.append(parameter)
            nbytes += size
        if batch:
            yield batch

    def _state_nbytes(self, parameter: Tensor) -> int:
        """Bytes of a parameter's state when decompressed."""
        entry = self.optimizer.state.get(parameter)
        if not entry:
            return _MAX_STATES * local(parameter).nbytes
        return sum(c.spec.nbytes for c in leaves(entry, Compressed))

    def _numbers(self) -> dict[int, int]:
        """The index of each parameter, in the order of the groups, by its id."""
        everything = (parameter for group in self.param_groups for parameter in group["params"])
        return {id(parameter): number for number, parameter in enumerate(everything)}

    def _entries(self, parameters: Iterable[Tensor] | None = None, numbers: Mapping[int, int] | None = None) -> Entries:
        """The states of some parameters, or of all."""
        if parameters is None or numbers is None:
            parameters = [parameter for group in self.param_groups for parameter in group["params"]]
            numbers = self._numbers()
        state = self.optimizer.state
        found = [(parameter, state[parameter]) for parameter in parameters if parameter in state]
        return [(numbers[id(parameter)], parameter, entry) for parameter, entry in found if isinstance(entry, dict)]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise wrong_type("optimizer", "a torch.optim.Optimizer", optimizer)
    if isinstance(optimizer, CompressedOptimizer):
        raise TypeError("optimizer: expected one that is not compressed, got a CompressedOptimizer")
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise ValueError("optimizer: expected differentiable=False, got True; codecs have no gradient")


def _plain_step(kind: type[Optimizer]) -> Callable[..., Any]:
    """The `step` of a class without its hooks, which run once for all batches."""
    step: Any = kind.step
    plain: Callable[..., Any] = step.__wrapped__ if getattr(step, "hooked", False) else step
    return plain


def _is_separable(optimizer: Optimizer) -> bool:
    kinds = [getattr(torch.optim, name) for name in _KINDS if hasattr(torch.optim, name)]
    return _plain_step(type(optimizer)) in map(_plain_step, kinds)


def _checked_counters(ours: Any) -> tuple[int, int]:
    if not isinstance(ours, Mapping) or set(ours) != {"seed", "step"}:
        raise TypeError(f"state_dict[{_OURS!r}]: expected a mapping with seed and step, got {shown(ours)}")
    seed = checked_integer("seed", ours["seed"], 0, MAX_SEED)
    return seed, checked_integer("step", ours["step"], 0, 1 << 62)
