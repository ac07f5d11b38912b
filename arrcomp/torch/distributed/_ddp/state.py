"""The state of the communication hook for DistributedDataParallel."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ...._arguments import checked_integer, shortened, shown, type_name
from ...._methods.error_feedback import ONE_BIT_CODEC, warn_of_one_bit
from ...._methods.seeds import derived
from ....codecs import Codec
from ....codecs._rules import Rule
from ..._tensors import dtype_of
from .._arguments import thread_number
from .layers import ModelLayer, ModelLayers
from .settings import HookSettings, Planning, codec_from_arguments
from .statistics import LayerStatistics, amount, table, total

_STATE_KEYS = ("step", "plan", "residuals", "sum_residuals", "named")


class Gradient(NamedTuple):
    """One layer's gradient, a view of a bucket; without a codec it is not compressed. `planned`: by `bits="auto"`."""

    layer: ModelLayer
    values: Tensor
    codec: Codec | None
    planned: bool = False


class QuantizedState:
    """Settings and memory of `quantized_allreduce_hook` for one model.

    Layers with at least two dimensions and `layer_min_size` values are compressed, unless a rule applies. All others
    are averaged uncompressed, with one all-reduce for each bucket.

    With ``bits="auto"``, L-GreCo (`arrcomp.plan_bits`) chooses each layer's bits: the fewest bytes with at most `alpha`
    times the squared error of `uniform_bits` for all layers. Errors are measured on each rank's gradients (with error
    feedback) before communication, and averaged over the ranks. Choosing synchronizes CUDA.

    With error feedback, each rank adds the compression error of a gradient to the layer's next gradient, and that of an
    average that it codes to the next average (H. Tang et al., "DoubleSqueeze", arXiv:1905.05957, algorithm 1). Over
    many steps, no part of a gradient is lost. This takes 1 + 1 / W times the gradients' memory. Residuals that become
    NaN, in a step that a gradient scaler skips, are set to 0. (If no rank uses a parameter in a step, DDP discards its
    average.)

    Layers are identified by their parameters, in any bucket. With codecs of fixed rate and granularity, such as QSGD,
    the results do not depend on the buckets. (Uncompressed sums of three or more numbers may, as in DDP.)

    A state can be pickled, and has `state_dict` and `load_state_dict`. Each rank must save its own, as residuals
    differ. Training then continues bit for bit. A pickled state has no process group (the default group is used) and no
    model (register it again). Statistics are not saved.

    QSGD with 1 bit gives a UserWarning: its two levels are so far apart that models learn badly or nothing.

    Args:
        process_group: of the ranks; None for the default group.
        bits: of QSGD, 1 to 8, or "auto"; None for 4.
        codec: for gradients, instead of QSGD and its settings. Fixed-rate codecs are asynchronous.
        rules: codecs of some layers; the first match wins, and `Lossless()` means uncompressed. Rules with names need
            a model: `register_model`, or `QuantizedState.for_model`.
        layer_min_size: layers with fewer values and without a matching rule are not compressed.
        error_feedback: whether to add the compression error of a gradient to the next one.
        start_iter: the first step whose gradients are compressed, counted from 0.
        seed: for stochastic rounding; steps, layers and ranks derive their own from it.
        track_error: whether to compute the error of each layer, which takes one more pass.
        threads: CPU threads for the codecs; None for PyTorch's number.
        plan_interval: steps between choices of bits, with "auto".
        uniform_bits: bits of all layers before the first choice, with "auto".
        candidate_bits: bits to choose from, with "auto".
        alpha: the error budget divided by the squared error of `uniform_bits`, with "auto".
        **settings: other arguments of `arrcomp.QSGD`: `bucket_size`, `norm`, `rounding`, `skip_incomplete`, `coding`.

    Attributes:
        process_group: may be set before the first step.
        step: number of backward passes with communication.
        plan: bits of each layer, with "auto", after the first choice.
        residuals: compression errors of each layer's gradient that are not sent yet, with error feedback.
        sum_residuals: the same for the averages of this rank's shard of each layer.
        statistics: of each layer, as `LayerStatistics`.

    Raises:
        TypeError, ValueError: an argument is invalid.
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
        planning = Planning(plan_interval, uniform_bits, candidate_bits, alpha)
        chosen = codec_from_arguments(bits, codec, planning.uniform, settings)
        planned = planning if bits == "auto" else None
        checked = (layer_min_size, error_feedback, start_iter, seed, track_error, threads, planned)
        settings_of_hook = HookSettings(chosen, rules, *checked)
        warn_of_one_bit([chosen, *(rule.codec for rule in rules)], f"or error_feedback=True with codec={ONE_BIT_CODEC}")
        self._begin(process_group, settings_of_hook)

    @classmethod
    def for_model(
        cls, model: Any, bits: int | Literal["auto"] | None = None, *, process_group: Any = None, **settings: Any
    ) -> "QuantizedState":
        """A state with the layer names of a model: a DistributedDataParallel, or the module in it.

        `process_group` is None for that of the DistributedDataParallel, or the default group. Other arguments and
        errors are those of `QuantizedState`.
        """
        if process_group is None and isinstance(model, DistributedDataParallel):
            process_group = model.process_group
        state = cls(process_group, bits, **settings)
        state.register_model(model)
        return state

    def _begin(self, process_group: Any, settings: HookSettings) -> None:
        self.process_group, self.settings, self.step = process_group, settings, 0
        self.plan: dict[str, int] = {}
        self.residuals: dict[str, Tensor] = {}
        self.sum_residuals: dict[str, Tensor] = {}
        self.statistics: dict[str, LayerStatistics] = {}
        self.layers = ModelLayers()
        self.checked = False  # whether the ranks have compared their settings
        self.pending: list[Any] = []  # works of this step's buckets, in order
        self.errors: dict[ModelLayer, tuple[list[int], Tensor]] = {}  # bytes and squared errors of each candidate
        self._loaded_names: bool | None = None  # whether a loaded state has the names of a model; None if not loaded
        self._codecs: dict[tuple[str, torch.dtype], Codec | None] = {}

    def register_model(self, model: Any) -> None:
        """Use the layer names of a model: before the first step, and after unpickling.

        `model` is a DistributedDataParallel, or the module in it; names are those in the module.

        Raises:
            TypeError: it is not a module.
            ValueError: earlier steps without a model left residuals or bits of unnamed layers.
        """
        if self._loaded_names is None and not self.layers.named and (self.plan or self.residuals):
            raise ValueError(f"register_model: expected a call before the first step, got one after {self.step} steps")
        self.layers.register(model)

    @property
    def threads(self) -> int:
        """CPU threads for the codecs."""
        return thread_number(self.settings.threads)

    @property
    def is_warm(self) -> bool:
        """Whether this step is compressed."""
        return self.step >= self.settings.start_iter

    @property
    def is_planning(self) -> bool:
        """Whether bits are chosen at the end of this step."""
        planning = self.settings.planning
        return planning is not None and self.is_warm and (self.step - self.settings.start_iter) % planning.interval == 0

    def seed_of_step(self) -> int:
        """The seed of this step, the same on all ranks."""
        return derived(self.settings.seed, self.step)

    def gradients(self, parameters: Sequence[Tensor], values: Sequence[Tensor]) -> list[Gradient]:
        """The gradients of a bucket.

        Raises:
            ValueError: a parameter is not in this state's model, or a rule needs names and there is no model.
        """
        layers = self.layers.of(parameters)
        if not self.checked:
            self._check_names()
        make = _uncompressed_complex if parameters[0].is_complex() else self._gradient
        return [make(layer, x) for layer, x in zip(layers, values, strict=True)]

    def residual(self, gradient: Gradient) -> Tensor:
        """The residual of a layer, shaped like its gradient; zeros at first.

        Raises:
            ValueError: it has another shape.
        """
        return _kept(self.residuals, gradient, gradient.values.shape)

    def sum_residual(self, gradient: Gradient, elements: int) -> Tensor:
        """The residual of this rank's `elements` elements of a layer's average. Errors: same as in `residual`."""
        return _kept(self.sum_residuals, gradient, torch.Size([elements]))

    def statistics_of(self, gradient: Gradient) -> LayerStatistics:
        """Statistics of one layer, to be updated."""
        found = self.statistics.setdefault(gradient.layer.name, LayerStatistics(gradient.values.numel()))
        found.codec = gradient.codec
        return found

    def total(self) -> LayerStatistics:
        """Statistics of all layers together."""
        return total(self.statistics)

    def summary(self) -> str:
        """A plain-text table of all layers' statistics. Synchronizes CUDA if errors are tracked.

        Errors have a column with `track_error=True`. In a group of one process nothing is sent.
        """
        return table(self.statistics, self.step, self.settings.track_error)

    def __repr__(self) -> str:
        known, settings, sums = len(self.layers.names), self.settings, self.total()
        layers = f"{known} layers" if known else "the layers of the first step"
        planned = ", bits chosen for each layer" if settings.planning else ""
        feedback = ", with error feedback" if settings.error_feedback else ""
        sent = f"{amount(sums.sent_nbytes)} sent, {amount(sums.plain_nbytes)} without compression"
        return f"<QuantizedState of {layers} by {settings.codec}{planned}{feedback}: step {self.step}, {sent}>"

    def clear_step(self) -> None:
        """Forget the data of an unfinished step."""
        self.pending.clear()
        self.errors.clear()

    def end_step(self) -> None:
        """Finish a step."""
        self.clear_step()
        self.layers.close()
        self.step += 1

    def state_dict(self) -> dict[str, Any]:
        """Step, plan and residuals of this rank: dicts, numbers and tensors, for `torch.save`."""
        return {
            "step": self.step,
            "plan": dict(self.plan),
            "residuals": dict(self.residuals),
            "sum_residuals": dict(self.sum_residuals),
            "named": self.layers.named if self._loaded_names is None else self._loaded_names,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict` of a state with the same settings.

        All ranks must call this between the same two steps, each with its own. (Residuals are for the same number of
        ranks.) Anything else than what `state_dict` returned is a TypeError, other settings are a ValueError.
        """
        if not isinstance(state_dict, Mapping) or set(state_dict) != set(_STATE_KEYS):
            got = list(state_dict) if isinstance(state_dict, Mapping) else type_name(state_dict)
            raise TypeError(f"state_dict: expected a mapping with {', '.join(_STATE_KEYS)}, got {shortened(str(got))}")
        step = checked_integer("state_dict['step']", state_dict["step"], 0, 1 << 62)
        plan, residuals, sums = (dict(state_dict[name]) for name in _STATE_KEYS[1:4])
        if plan and not set(plan.values()) <= set(self.settings.planned):
            candidates = list(self.settings.planned) or "no plan without bits='auto'"
            raise ValueError(f"state_dict['plan']: expected {candidates}, got {shown(plan)}")
        if residuals and not self.settings.error_feedback:
            raise ValueError("state_dict['residuals']: expected none without error_feedback=True, got some")
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
            return Gradient(layer, values, None)
        key = layer.name, values.dtype
        if key not in self._codecs:
            self._codecs[key] = self.settings.codec_for(layer.name, dtype_of(values), tuple(values.shape))
        codec, planning = self._codecs[key], self.settings.planning
        if planning is None or codec is not self.settings.codec:
            return Gradient(layer, values, codec)
        return Gradient(layer, values, self.settings.planned[self.plan.get(layer.name, planning.uniform)], True)

    def _check_names(self) -> None:
        patterns = [name for rule in self.settings.rules for name in rule.names if name != "*"]
        if patterns and not self.layers.named:
            raise ValueError(
                f"rules: expected a registered model for the names {', '.join(patterns)}, got none; call "
                "state.register_model(model), or create the state with QuantizedState.for_model(model, ...)"
            )
        if self._loaded_names is not None and (self.plan or self.residuals):
            if self._loaded_names != self.layers.named:
                with_model, without = "one saved with register_model", "one saved without register_model"
                expected, got = (without, with_model) if self._loaded_names else (with_model, without)
                raise ValueError(f"state_dict: expected {expected}, got {got}")
            if self.layers.named and (unknown := sorted({*self.plan, *self.residuals} - set(self.layers.names))):
                raise ValueError(f"state_dict: expected names of the model's parameters, got {shown(unknown[0])}")
        self._loaded_names = None


def _uncompressed_complex(layer: ModelLayer, values: Tensor) -> Gradient:
    """A gradient in a bucket of complex gradients, which are not compressed; only its size is used.

    DDP's bucket contains real and imaginary parts, but its views of single gradients are wrong.
    """
    return Gradient(layer, values.new_empty(1).expand(*values.shape, 2), None)


def _kept(residuals: dict[str, Tensor], gradient: Gradient, shape: torch.Size) -> Tensor:
    name, x = gradient.layer.name, gradient.values
    found = residuals[name] if name in residuals else x.new_zeros(shape)
    if found.shape != shape:
        raise ValueError(f"residual of {shown(name)}: expected shape {list(shape)}, got {list(found.shape)}")
    residuals[name] = found.to(x)
    return residuals[name]


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.detach().clone(memory_format=torch.contiguous_format) for name, x in tensors.items()}
