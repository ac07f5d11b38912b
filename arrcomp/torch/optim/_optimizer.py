"""An optimizer around another one, whose state it keeps compressed."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..._api.compress import decompress
from ..._api.compressed import Compressed
from ..._arguments import check_flag, checked_integer, thread_count, type_name
from ..._methods.seeds import MAX_SEED
from .._tensors import dtype_of
from ._state_codecs import CodecChoice, StateCodecs, eight_bit
from ._parameters import local, with_layout_of
from ._store import Entries, StateStore, leaves, mapped, replace

# Optimizers of PyTorch, whatever its version has of them, that treat each parameter by itself.
_KINDS = (
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "RAdam", "RMSprop"),
    *("Rprop", "SGD", "SparseAdam"),
)
_MAX_STATES = 3  # of the size of their parameter, that these make: to be expected where there is no state yet
_OURS = "compression"  # in a state_dict

# As PyTorch marks its optimizers' other methods; torch.compiler.disable would import the compiler here: two seconds.
_uncompiled: Callable[[Callable[..., Any]], Callable[..., Any]] = torch._disable_dynamo  # type: ignore[attr-defined]


class StateMemory(NamedTuple):
    """Bytes of an optimizer's state.

    Attributes:
        nbytes: of it between steps, with what is not compressed.
        original_nbytes: of it without compression.
        scratch_nbytes: the most that were decompressed at a time, in the last step.
    """

    nbytes: int
    original_nbytes: int
    scratch_nbytes: int

    @property
    def ratio(self) -> float:
        """How many times smaller the state is."""
        return self.original_nbytes / self.nbytes if self.nbytes else 1.0


class CompressedOptimizer(Optimizer):
    """An optimizer whose state is compressed between steps.

    It takes the place of the one that it wraps: for schedulers, `torch.amp.GradScaler`, hooks, `zero_grad`,
    `add_param_group`. Parameter groups, hooks and state are those of the wrapped one, in whose `state` every tensor
    that is compressed is an `arrcomp.Compressed`. Steps are made by this one alone.

    A step decompresses the state of some parameters, steps these, and compresses their state again, until all are done:
    `scratch` bounds the memory, and large enough parts keep the fast ways of PyTorch (`foreach`, `fused`). State of
    parameters without gradients is not touched. So it is for the optimizers of `torch.optim`, of which none but LBFGS
    looks at other parameters when it steps one, and for classes of them with the same `step`. Of all others a step
    decompresses all state at once, and compresses all of it again, unless `separable` says that parts will do.

    The result of a step is that of the wrapped optimizer on the state that came back. With `Lossless` it is the same to
    the bit. Codecs of a fixed rate put their payload where it was: nothing is allocated but the scratch, nothing waits
    for a device, and CUDA graphs can be captured after the first step (`capturable=True`; with no random rounding).
    `torch.compile` leaves steps as they are.

    Adam and its kin divide first moments by the roots of second ones. Where a second moment comes back as 0 and the
    first does not, the step may be of any size: codecs of first moments should bring zeros back as zeros (as `QSGD`
    with "minmax" does not), and those of second moments nothing else as 0 (as `Codebook.dynamic8(signed=False)`).

    Tensors are compressed that are floating-point, have `min_size` values or more, and a codec. Step counters, small
    tensors, integers and complex numbers, sparse ones and such stay as they are. Parameters that are DTensors, as under
    FSDP2, are taken care of: each process compresses its shards.

    Args:
        optimizer: the one to wrap, new or not: the state that it has is compressed at once.
        codec: a codec for all states; or a mapping from keys of state, as "exp_avg" (or patterns of `fnmatch`, as
            "exp_avg*", of which the first that fits counts) to codecs, or None for what stays as it is, as do keys that
            nothing fits; or a function of a parameter and a key that gives a codec or None. `eight_bit()` is such a
            mapping.
        min_size: the fewest values of a tensor that is compressed. (4096 is what others have: arXiv:2110.02861.)
        scratch: how many bytes of state to decompress at a time, if no single parameter has more; None for a whole
            parameter group.
        separable: whether a step of some parameters at a time is as good as one of all at once; None for what is said
            above.
        seed: from which those of all steps and tensors follow, with codecs that round at random: 0 to 2^64 - 1.
        threads: how many to use on the CPU; None for all cores that the process may use.
        compressed_state_dict: whether `state_dict` holds compressed tensors unless it is told. Without them,
            `torch.distributed.checkpoint` takes it, with `get_optimizer_state_dict` and `set_optimizer_state_dict`.

    Raises:
        TypeError: an argument is of a wrong type; a codec does not take the data type of a state.
        ValueError: a number is out of its range; the optimizer is for gradients through its own steps
            (`differentiable=True`), which no codec has.

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
        """With the codecs of `eight_bit()`: a quarter of the memory, in buckets of 256 values.

        Args:
            optimizer: as of the class.
            **options: as of the class.

        Raises:
            TypeError, ValueError: as the class; or the optimizer is RMSprop with `centered=True`, which takes roots of
                differences of moments: rounded ones may be negative.
        """
        _check_optimizer(optimizer)
        if any(group.get("centered") for group in optimizer.param_groups):
            raise ValueError("optimizer has centered=True, whose differences of moments would be NaN; False is allowed")
        return cls(optimizer, eight_bit(), **options)

    def _begin(self) -> None:
        # One set of hooks, whichever of the two they are registered with.
        hooks = {name: value for name, value in vars(self.optimizer).items() if name.endswith("_hooks")}
        self.__dict__.update(hooks)
        self._patch_step_function()

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of the wrapped optimizer."""
        return self.optimizer.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = groups

    @property
    def state(self) -> Any:
        """That of the wrapped optimizer, with a `Compressed` for every tensor that is."""
        return self.optimizer.state

    @state.setter
    def state(self, state: Any) -> None:
        self.optimizer.state = state

    @property
    def defaults(self) -> dict[str, Any]:
        """Those of the wrapped optimizer."""
        return self.optimizer.defaults

    @defaults.setter
    def defaults(self, defaults: dict[str, Any]) -> None:
        self.optimizer.defaults = defaults

    @_uncompiled
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step all parameters that have gradients.

        Args:
            closure: as of the wrapped optimizer: evaluates the model and returns the loss; once, with all state
                compressed, unless the optimizer is not separable, as LBFGS.

        Returns:
            What the closure returned; else None.

        Raises:
            Whatever the wrapped optimizer raises; state is compressed again before.
        """
        self.optimizer._opt_called = True  # type: ignore[attr-defined]  # what a scheduler of the wrapped one looks at
        self._store.step += 1
        self._store.scratch_nbytes = 0
        if not self._separable:
            return self._step_whole(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._step_parts()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self, *, compressed: bool | None = None) -> dict[str, Any]:
        """That of the wrapped optimizer, and what random rounding needs.

        Args:
            compressed: whether tensors that are compressed are `Compressed`, of which `torch.save` saves the payload,
                or tensors, for use without arrcomp; None for what the optimizer was made with. Loaded as they are,
                compressed ones continue to the bit; others are compressed once more.

        Returns:
            The state. What is compressed, or was, is a copy of it at this time, unlike the other tensors.

        Raises:
            TypeError: `compressed` is not allowed.
        """
        if compressed is None:
            compressed = self.compressed_state_dict
        check_flag("compressed", compressed)
        found = self.optimizer.state_dict()
        if compressed:
            found["state"] = mapped(found["state"], Compressed, copy.deepcopy)
        else:
            of = {id(c): parameter for _, parameter, entry in self._entries() for c in leaves(entry, Compressed)}
            found["state"] = mapped(found["state"], Compressed, lambda c: with_layout_of(decompress(c), of[id(c)]))
        return {**found, _OURS: {"seed": self._store.seed, "step": self._store.step}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take a state: of this class, or of an optimizer like the wrapped one that is not compressed.

        Compressed state stays as it was saved until its next step. Other state is compressed.

        Args:
            state_dict: what `state_dict` returned; it is not changed, then or later.

        Raises:
            TypeError: it is no mapping; a codec does not take the data type of a state.
            ValueError: it does not go with the optimizer.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"state_dict is a {type_name(state_dict)}; a mapping is allowed")
        counters = _checked_counters(state_dict[_OURS]) if _OURS in state_dict else (self._store.seed, self._store.step)
        self.optimizer.load_state_dict({key: value for key, value in state_dict.items() if key != _OURS})
        self._store.seed, self._store.step = counters
        entries = self._entries()
        for _, parameter, entry in entries:
            replace(entry, Compressed, partial(self._loaded, parameter))
        self._store.compress(entries)
        for _, _, entry in entries:
            replace(entry, Tensor, torch.clone)  # PyTorch takes those of the other optimizer, and then changes them

    @property
    def nbytes(self) -> int:
        """Bytes of the state between steps, with what is not compressed."""
        return self.memory().nbytes

    @property
    def original_nbytes(self) -> int:
        """Bytes of the state without compression."""
        return self.memory().original_nbytes

    def memory(self) -> StateMemory:
        """What the state takes, of this process."""
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

    def _loaded(self, parameter: Tensor, c: Compressed) -> Any:
        """A compressed state that was loaded, in memory of its own where the parameter is."""
        mine = local(parameter)
        if dtype_of(mine) != c.spec.dtype and _is_separable(self.optimizer):
            # PyTorch gives state the type of the parameter, and its optimizers take no other.
            return with_layout_of(decompress(c, like=mine).to(mine.dtype), parameter)
        return copy.deepcopy(c.to(mine))

    def _step_whole(self, closure: Callable[[], Any] | None) -> Any:
        """A step with all state decompressed."""
        before = self._store.decompress(self._entries())
        try:
            return _plain_step(type(self.optimizer))(self.optimizer, *(() if closure is None else (closure,)))
        finally:
            self._store.compress(self._entries(), before)

    def _step_parts(self) -> None:
        """A step of all parameters that have gradients, part by part."""
        groups, numbers = self.param_groups, self._numbers()
        try:
            for group in groups:
                self.param_groups = [group]
                everything = group["params"]
                try:
                    for part in list(self._parts(everything)):
                        group["params"] = part
                        self._step_part(part, numbers)
                finally:
                    group["params"] = everything
        finally:
            self.param_groups = groups

    def _step_part(self, part: list[Tensor], numbers: Mapping[int, int]) -> None:
        before = self._store.decompress(self._entries(part, numbers))
        try:
            _plain_step(type(self.optimizer))(self.optimizer)
        finally:
            self._store.compress(self._entries(part, numbers), before)

    def _parts(self, parameters: Iterable[Tensor]) -> Iterator[list[Tensor]]:
        """Parameters with gradients, in runs of which each has no more state than is to be decompressed at a time."""
        part: list[Tensor] = []
        nbytes = 0
        for parameter in parameters:
            if parameter.grad is None:
                continue
            size = self._state_nbytes(parameter)
            if part and self._scratch is not None and nbytes + size > self._scratch:
                yield part
                part, nbytes = [], 0
            part.append(parameter)
            nbytes += size
        if part:
            yield part

    def _state_nbytes(self, parameter: Tensor) -> int:
        """Bytes of a parameter's state that are to be decompressed."""
        entry = self.optimizer.state.get(parameter)
        if not entry:
            return _MAX_STATES * local(parameter).nbytes
        return sum(c.spec.nbytes for c in leaves(entry, Compressed))

    def _numbers(self) -> dict[int, int]:
        """The parameters' numbers, in the order of the groups, by their identity."""
        everything = (parameter for group in self.param_groups for parameter in group["params"])
        return {id(parameter): number for number, parameter in enumerate(everything)}

    def _entries(self, parameters: Iterable[Tensor] | None = None, numbers: Mapping[int, int] | None = None) -> Entries:
        """The states of parameters, or of all."""
        if parameters is None or numbers is None:
            parameters = [parameter for group in self.param_groups for parameter in group["params"]]
            numbers = self._numbers()
        state = self.optimizer.state
        found = [(parameter, state[parameter]) for parameter in parameters if parameter in state]
        return [(numbers[id(parameter)], parameter, entry) for parameter, entry in found if isinstance(entry, dict)]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer is a {type_name(optimizer)}; a torch.optim.Optimizer is allowed")
    if isinstance(optimizer, CompressedOptimizer):
        raise TypeError("optimizer is a CompressedOptimizer; one that is not compressed yet is allowed")
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise ValueError("optimizer has differentiable=True; False is allowed: no gradient passes through codecs")


def _plain_step(kind: type[Optimizer]) -> Callable[..., Any]:
    """The step of a class without its hooks, which are called once for all parts."""
    step: Any = kind.step
    plain: Callable[..., Any] = step.__wrapped__ if getattr(step, "hooked", False) else step
    return plain


def _is_separable(optimizer: Optimizer) -> bool:
    kinds = [getattr(torch.optim, name) for name in _KINDS if hasattr(torch.optim, name)]
    return _plain_step(type(optimizer)) in map(_plain_step, kinds)


def _checked_counters(ours: Any) -> tuple[int, int]:
    if not isinstance(ours, Mapping) or set(ours) != {"seed", "step"}:
        raise TypeError(f"state_dict[{_OURS!r}] is {ours!r}; a mapping of seed and step is allowed")
    seed = checked_integer("seed", ours["seed"], 0, MAX_SEED)
    return seed, checked_integer("step", ours["step"], 0, 1 << 62)
