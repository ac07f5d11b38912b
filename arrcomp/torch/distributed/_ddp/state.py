"""What the communication hook for DistributedDataParallel keeps from step to step."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ...._arguments import checked_integer, type_name
from ...._methods.seeds import derived
from ....codecs import Codec
from ....codecs._rules import Rule
from ..._tensors import dtype_of
from .._arguments import thread_number
from .layers import ModelLayer, ModelLayers, check_names
from .settings import HookSettings, Planning, codec_from_arguments
from .statistics import LayerStatistics, table, total

_STATE_KEYS = ("step", "plan", "residuals", "sum_residuals", "named")


class Gradient(NamedTuple):
    """One layer's gradient in a bucket.

    Attributes:
        layer: whose it is.
        values: the gradient, a view of the bucket.
        codec: its codec; None where it is not compressed.
        planned: whether its bits are chosen automatically.
    """

    layer: ModelLayer
    values: Tensor
    codec: Codec | None
    planned: bool


class QuantizedState:
    """The settings and the memory of `quantized_allreduce_hook`, of one model.

    Layers of at least two dimensions and `layer_min_size` values are compressed, unless a rule says something else. The
    gradients of all others are averaged as they are, with one all-reduce for those of a bucket together.

    With ``bits="auto"`` each layer has as many bits as the rule of L-GreCo (`arrcomp.plan_bits`) gives it: the fewest
    bytes with at most `alpha` times the squared error of `uniform_bits` for all. The errors are those of the step's own
    gradients (with their feedback), averaged over the processes: the averages that come back are on a codec's levels
    already, and would seem to cost nothing. On CUDA, choosing waits for the device.

    With error feedback each process adds what it lost of a gradient to the layer's next one, and what it lost of an
    average that it codes for all to the next of those (H. Tang et al., "DoubleSqueeze", arXiv:1905.05957, algorithm 1):
    over many steps, all of every gradient arrives. It takes memory for the gradients once more, and 1 / W of that. What
    becomes NaN, in a step that a gradient scaler skips, is forgotten. (Where no process uses a parameter in a step, DDP
    drops what comes back for it.)

    Layers are told by their parameters, in whichever buckets DDP puts them. With codecs as QSGD, of a fixed rate and
    granularity, not a bit of what comes back depends on the buckets. (In the plain sums of other layers one may, as
    with DDP's own all-reduce, where three or more numbers are added in another order.)

    It pickles, and has `state_dict` and `load_state_dict`: of each process its own, as residuals differ. Training then
    goes on as it would have. A pickled state comes back without its process group, for the default one, and without
    its model: register that again. Statistics start anew.

    Args:
        process_group: the processes; None for the default group.
        bits: of QSGD, 1 to 8, or "auto"; None for 4.
        codec: for gradients, in place of QSGD and its settings. One of a fixed rate never waits for the device.
        rules: codecs of some layers, the first that fits counts; `Lossless()` means uncompressed. Rules that look at
            names need a model: `register_model`, or `QuantizedState.for_model`.
        layer_min_size: the fewest values of a layer that is compressed though no rule is for it.
        error_feedback: whether to add what is lost of a gradient to the next one.
        start_iter: the first step whose gradients are compressed, counted from 0.
        seed: from which those of all steps, layers and ranks follow, with codecs that round at random.
        track_error: whether to calculate the error of each layer, which costs a pass.
        threads: for the codecs, on the CPU; None for PyTorch's number.
        plan_interval: steps from one choice of bits to the next, with "auto".
        uniform_bits: bits of all layers before the first choice, with "auto".
        candidate_bits: bits to choose from, with "auto".
        alpha: the budget by the squared error of `uniform_bits`, with "auto".
        **settings: other settings of `arrcomp.QSGD`: `bucket_size`, `norm`, `rounding`, `skip_incomplete`, `coding`.

    Attributes:
        process_group: the processes; may be set before the first step.
        step: backward passes with communication so far.
        plan: bits of each layer, with "auto", from the first choice on.
        residuals: what was lost of each layer's gradient and has not been sent yet, with error feedback.
        sum_residuals: the same of the averages that this process codes: of a part of each layer.
        statistics: of each layer, as `LayerStatistics`.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """

    def __init__(
        self,
        process_group: Any = None,
        bits: int | Literal["auto"] | None = None,
        *,
        codec: Codec | None = None,
        rules: Sequence[Rule] = (),
        layer_min_size: int = 1024,
        error_feedback: bool = False,
        start_iter: int = 0,
        seed: int = 0,
        track_error: bool = False,
        threads: int | None = None,
        plan_interval: int = 100,
        uniform_bits: int = 4,
        candidate_bits: Sequence[int] = (2, 3, 4, 5, 6, 7, 8),
        alpha: float = 1.0,
        **settings: Any,
    ) -> None:
        planning = Planning(plan_interval, uniform_bits, candidate_bits, alpha)  # type: ignore[arg-type]
        checked = HookSettings(
            codec=codec_from_arguments(bits, codec, planning.uniform, settings),
            rules=rules,  # type: ignore[arg-type]
            layer_min_size=layer_min_size,
            error_feedback=error_feedback,
            start_iter=start_iter,
            seed=seed,
            track_error=track_error,
            threads=threads,
            planning=planning if bits == "auto" else None,
        )
        self._begin(process_group, checked)

    @classmethod
    def for_model(
        cls,
        model: Any,
        bits: int | Literal["auto"] | None = None,
        *,
        process_group: Any = None,
        **settings: Any,
    ) -> "QuantizedState":
        """A state that knows the names of a model's layers.

        Args:
            model: a DistributedDataParallel, or the module in it.
            bits: as of `QuantizedState`.
            process_group: the processes; None for those of a DistributedDataParallel, or the default group.
            **settings: as of `QuantizedState`.

        Raises:
            TypeError, ValueError: an argument is not allowed.
        """
        if process_group is None and isinstance(model, DistributedDataParallel):
            process_group = model.process_group
        state = cls(process_group, bits, **settings)
        state.register_model(model)
        return state

    def _begin(self, process_group: Any, settings: HookSettings) -> None:
        self.process_group, self.settings = process_group, settings
        self.step = 0
        self.plan: dict[str, int] = {}
        self.residuals: dict[str, Tensor] = {}
        self.sum_residuals: dict[str, Tensor] = {}
        self.statistics: dict[str, LayerStatistics] = {}
        self.layers = ModelLayers()
        self.checked = False  # whether the processes have compared what they do
        self.pending: list[Any] = []  # of this step's buckets, in their order
        self.errors: dict[ModelLayer, tuple[list[int], Tensor]] = {}  # bytes and squared errors of each candidate
        self._loaded_names: bool | None = None  # whether what was loaded has the names of a model
        self._codecs: dict[tuple[str, torch.dtype], Codec | None] = {}

    def register_model(self, model: Any) -> None:
        """Take the names of layers from a model: before the first step, and after unpickling.

        Args:
            model: a DistributedDataParallel, or the module in it, as names are those in the module.

        Raises:
            TypeError: it is no model.
            ValueError: there have been steps without one, and residuals or bits of layers without names.
        """
        if self._loaded_names is None and not self.layers.named and self._remembers_layers:
            raise ValueError(f"{self.step} steps had no model; register_model before the first one is allowed")
        self.layers.register(model)

    @property
    def threads(self) -> int:
        """For the codecs."""
        return thread_number(self.settings.threads)

    @property
    def is_warm(self) -> bool:
        """Whether gradients are compressed already."""
        return self.step >= self.settings.start_iter

    @property
    def is_planning(self) -> bool:
        """Whether bits are chosen at the end of this step."""
        planning = self.settings.planning
        return planning is not None and self.is_warm and (self.step - self.settings.start_iter) % planning.interval == 0

    def seed_of_step(self) -> int:
        """The seed of this step, the same on all processes."""
        return derived(self.settings.seed, self.step)

    def gradients(self, parameters: Sequence[Tensor], values: Sequence[Tensor]) -> list[Gradient]:
        """The gradients of a bucket.

        Raises:
            ValueError: a parameter is not of this state's model; or names are needed that are not known.
        """
        layers = self.layers.of(parameters)
        if not self.checked:
            self._check_names()
        if parameters[0].is_complex():
            return [_uncompressed_complex(layer, x) for layer, x in zip(layers, values, strict=True)]
        return [self._gradient(layer, x) for layer, x in zip(layers, values, strict=True)]

    def residual(self, gradient: Gradient) -> Tensor:
        """What was lost of a layer before, in a tensor like its gradient; zeros at first.

        Raises:
            ValueError: it has another shape.
        """
        return _kept(self.residuals, gradient, gradient.values.shape)

    def sum_residual(self, gradient: Gradient, elements: int) -> Tensor:
        """The same, of so many elements, of what this process codes of a layer's average.

        Raises:
            ValueError: it has another shape.
        """
        return _kept(self.sum_residuals, gradient, torch.Size([elements]))

    def statistics_of(self, gradient: Gradient) -> LayerStatistics:
        """Of one layer, to be added to."""
        found = self.statistics.setdefault(gradient.layer.name, LayerStatistics(gradient.values.numel()))
        found.codec = gradient.codec
        return found

    def total(self) -> LayerStatistics:
        """What was sent of all layers."""
        return total(self.statistics)

    def summary(self) -> str:
        """A table of what was sent of each layer, as plain text. On CUDA this waits where errors are tracked."""
        return table(self.statistics, self.step)

    def clear_step(self) -> None:
        """Forget what is kept during a step alone."""
        self.pending.clear()
        self.errors.clear()

    def end_step(self) -> None:
        """Count a step."""
        self.clear_step()
        self.layers.close()
        self.step += 1

    def state_dict(self) -> dict[str, Any]:
        """Step, plan and residuals of this process: dicts, numbers and tensors, for `torch.save`."""
        return {
            "step": self.step,
            "plan": dict(self.plan),
            "residuals": dict(self.residuals),
            "sum_residuals": dict(self.sum_residuals),
            "named": self.layers.named if self._loaded_names is None else self._loaded_names,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state of the same settings was when it gave its `state_dict`.

        All processes do this between the same two steps, each with what it saved itself. (Residuals are for the same
        number of processes.)

        Args:
            state_dict: what `state_dict` returned.

        Raises:
            TypeError: it is something else.
            ValueError: it does not go with the settings.
        """
        if not isinstance(state_dict, Mapping) or set(state_dict) != set(_STATE_KEYS):
            raise TypeError(f"state_dict is {type_name(state_dict)} of other things than {', '.join(_STATE_KEYS)}")
        step = checked_integer("state_dict['step']", state_dict["step"], 0, 1 << 62)
        plan, residuals, sums = (dict(state_dict[name]) for name in _STATE_KEYS[1:4])
        if plan and not set(plan.values()) <= set(self.settings.planned):
            raise ValueError(f'state_dict has a plan of bits {plan}; with bits="auto", its candidates are allowed')
        if residuals and not self.settings.error_feedback:
            raise ValueError("state_dict has residuals; with error_feedback=True they are allowed")
        self.step, self.plan, self.checked = step, plan, False
        self.residuals, self.sum_residuals = _copied(residuals), _copied(sums)
        self._loaded_names = bool(state_dict["named"])

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, **self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(None, state["settings"])
        self.load_state_dict({name: value for name, value in state.items() if name != "settings"})

    def _gradient(self, layer: ModelLayer, values: Tensor) -> Gradient:
        if not self.is_warm:
            return Gradient(layer, values, None, False)
        key = layer.name, values.dtype
        if key not in self._codecs:
            self._codecs[key] = self.settings.codec_for(layer.name, dtype_of(values), tuple(values.shape))
        codec, planning = self._codecs[key], self.settings.planning
        if planning is None or codec is not self.settings.codec:
            return Gradient(layer, values, codec, False)
        return Gradient(layer, values, self.settings.planned[self.plan.get(layer.name, planning.uniform)], True)

    def _check_names(self) -> None:
        if self.settings.patterns and not self.layers.named:
            raise ValueError(
                f"rules look for the names {', '.join(self.settings.patterns)}, which only a model has: call "
                "state.register_model(model), or make the state with QuantizedState.for_model(model, ...)"
            )
        if self._loaded_names is not None and self._remembers_layers:
            if self._loaded_names != self.layers.named:
                had = "has the names of a model" if self._loaded_names else "was saved without a model"
                raise ValueError(f"what was loaded {had}; register_model is to be called as it was, or not, before")
            if self.layers.named:
                check_names("what was loaded has a residual or bits", {**self.plan, **self.residuals}, self.layers)
        self._loaded_names = None

    @property
    def _remembers_layers(self) -> bool:
        return bool(self.plan or self.residuals)


def _uncompressed_complex(layer: ModelLayer, values: Tensor) -> Gradient:
    """A gradient in a bucket of complex ones, which is not compressed, and of which only the size counts.

    DDP's bucket has their real and imaginary parts, but the places that it tells of them there are wrong.
    """
    return Gradient(layer, values.new_empty(1).expand(*values.shape, 2), None, False)


def _kept(residuals: dict[str, Tensor], gradient: Gradient, shape: torch.Size) -> Tensor:
    name, x = gradient.layer.name, gradient.values
    found = residuals.get(name)
    if found is None:
        found = torch.zeros(shape, dtype=x.dtype, device=x.device)
    if found.shape != shape:
        raise ValueError(f"the residual of {name!r} has shape {list(found.shape)}; {list(shape)} is allowed")
    residuals[name] = found.to(x)
    return residuals[name]


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.detach().clone(memory_format=torch.contiguous_format) for name, x in tensors.items()}
