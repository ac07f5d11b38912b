"""Models with compressed weights through `from_pretrained` and `save_pretrained`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import ConversionOps, WeightConverter
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ..._api.compressed import Compressed, from_bytes
from ..._arguments import check_flag, checked_integer, wrong_value
from ...codecs import Codec
from ...codecs._rules import Rule, rule_from_config
from ...errors import CorruptStreamError
from .._functions import decompress
from .._tensors import type_named
from .._weights.blocks import places_of, replace_weights
from .._weights.functions import (
    add_blocks,
    checked_patterns,
    checked_weight_rules,
    compressed_parameter,
    compressible,
    decompress_weights,
)
from .._weights.weight import CompressedWeight

_METHOD = "arrcomp"


@register_quantization_config(_METHOD)
class ArrcompConfig(QuantizationConfigMixin):
    """How a model's weights are compressed: the `quantization_config` of `from_pretrained`.

    A model whose weights are plain is compressed while it is loaded, a weight at a time. `save_pretrained` then writes
    its compressed weights, in shards as usual, and this configuration into `config.json`; so `from_pretrained` loads
    them as they are wherever `arrcomp.torch.transformers` has been imported. `model.dequantize()` makes the weights
    plain.

    Args:
        codec: a codec, or rules that choose one for each parameter; None for `Lossless()`.
        blocks, skip, min_size: same as in `arrcomp.torch.compress_weights`.
        dequantize: whether a model that was saved with compressed weights gets plain ones while it is loaded. This is
            read from the `config.json` of the model.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value.
    """

    def __init__(
        self,
        codec: Codec | Sequence[Rule] | None = None,
        *,
        blocks: str | Iterable[str] | None = None,
        skip: str | Iterable[str] = (),
        min_size: int = 4096,
        dequantize: bool = False,
    ) -> None:
        check_flag("dequantize", dequantize)
        # Plain values alone: transformers writes all attributes to config.json.
        self.quant_method: Any = _METHOD
        self.rules = [rule.config() for rule in checked_weight_rules(codec)]
        self.blocks = None if blocks is None else list(checked_patterns("blocks", blocks))
        self.skip = list(checked_patterns("skip", skip))
        self.min_size = checked_integer("min_size", min_size, 0, float("inf"))
        self.dequantize = dequantize

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any], return_unused_kwargs: bool = False, **kwargs: Any) -> Any:
        """The configuration of a `config.json`.

        Raises TypeError, ValueError or UnknownCodecError if it is not one of `ArrcompConfig`.
        """
        values = {name: value for name, value in config_dict.items() if name != "quant_method"}
        config = cls([rule_from_config(rule) for rule in values.pop("rules", ())], **values)
        return (config, kwargs) if return_unused_kwargs else config

    def checked_rules(self) -> tuple[Rule, ...]:
        """The rules."""
        return tuple(rule_from_config(rule) for rule in self.rules)


@register_quantizer(_METHOD)
class ArrcompQuantizer(HfQuantizer):
    """What transformers calls while it loads and saves a model with an `ArrcompConfig`."""

    requires_calibration = False
    quantization_config: ArrcompConfig

    def __init__(self, quantization_config: ArrcompConfig, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self._rules = quantization_config.checked_rules()
        self._blocks: list[Any] = []  # with their parameters that may be compressed,
        self._expected: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}  # and the shapes and dtypes of these

    def validate_environment(self, *args: Any, device_map: Any = None, **kwargs: Any) -> None:
        """Raise ValueError where weights would be kept on another device, or on disk, between forward passes."""
        places = set(map(str, device_map.values())) if isinstance(device_map, Mapping) else set()
        if "disk" in places or ("cpu" in places and len(places) > 1):
            raise wrong_value("device_map", "no offloaded weights, as those of arrcomp stay compressed", device_map)

    def is_serializable(self) -> bool:
        """Whether `save_pretrained` can write the model."""
        return True

    @property
    def is_trainable(self) -> bool:
        """Whether adapters on top of the model can be trained."""
        return True

    @property
    def is_compileable(self) -> bool:
        """Whether `torch.compile` takes the model."""
        return True

    def param_needs_quantization(self, model: PreTrainedModel, param_name: str, **kwargs: Any) -> bool:
        """Whether a parameter may be compressed, and so be a stream in a file."""
        return param_name in self._expected

    def get_quantize_ops(self) -> ConversionOps:
        """What is done with each weight while a plain model is loaded."""
        return _Compress(self._rules)

    def get_state_dict_and_metadata(self, model: PreTrainedModel) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The tensors to be saved: of compressed weights the streams, as uint8 tensors.

        Weights that transformers itself changes before it writes them, for instance to take the experts of a layer
        apart, are given plain.
        """
        streams: dict[int, Tensor] = {}
        converted = _converted_names(model)
        tensors = {}
        for name, x in model.state_dict().items():
            if not isinstance(x, CompressedWeight):
                tensors[name] = x
            elif name in converted:
                tensors[name] = x.decompressed()
            else:
                tensors[name] = streams.setdefault(id(x._held), _stream_of(x))
        return tensors, {"quant_method": _METHOD}

    def _process_model_before_weight_loading(self, model: PreTrainedModel, **kwargs: Any) -> PreTrainedModel:
        config = self.quantization_config
        self._blocks = compressible(model, config.blocks, config.skip, config.min_size)
        self._expected = {
            name: (tuple(place.weight.shape), place.weight.dtype) for _, own in self._blocks for name, place in own
        }
        return model

    def _process_model_after_weight_loading(self, model: PreTrainedModel, **kwargs: Any) -> PreTrainedModel:
        replace_weights((parameter for _, own in self._blocks for parameter in own), self._loaded)
        add_blocks([module for module, _ in self._blocks])
        return model

    def _dequantize(self, model: PreTrainedModel, dtype: torch.dtype | str | None = None) -> PreTrainedModel:
        kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        places = [place for place in places_of(model) if isinstance(place.weight, CompressedWeight)]
        decompress_weights(model)
        for place in places:  # others may have another dtype for a reason
            place.weight.data = place.weight.data.to(kind)
        return model

    def _loaded(self, name: str, weight: Tensor) -> Tensor:
        """The parameter for what was loaded: a stream, or values."""
        shape, dtype = self._expected[name]
        if not self.pre_quantized or isinstance(weight, CompressedWeight):
            return weight
        values = weight
        if weight.dtype == torch.uint8 and dtype != torch.uint8:
            compressed = _read(name, weight, shape)
            if not self.quantization_config.dequantize and type_named(compressed.spec.dtype.name) == dtype:
                return CompressedWeight(compressed)
            values = nn.Parameter(decompress(compressed).to(dtype), requires_grad=False)
        elif tuple(weight.shape) != shape:
            raise ValueError(f"{name}: expected a tensor of shape {shape}, got one of {tuple(weight.shape)}")
        return values if self.quantization_config.dequantize else compressed_parameter(values, self._rules, name)


class _Compress(ConversionOps):
    """Compresses each weight as soon as it is loaded."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def convert(self, input_dict: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The parameters of these tensors."""
        made = {}
        for name, given in input_dict.items():
            x = given[0] if isinstance(given, list) else given
            made[name] = compressed_parameter(nn.Parameter(x, requires_grad=False), self._rules, name)
        return made


def _read(name: str, stream: Tensor, shape: tuple[int, ...]) -> Compressed:
    """The compressed weight of a stream, uint8[n], on its device."""
    try:
        compressed = from_bytes(stream.detach().cpu().numpy())
    except CorruptStreamError as error:
        raise CorruptStreamError(f"{name}: {error}") from None
    if compressed.shape != shape:
        raise CorruptStreamError(f"{name}: expected a stream of an array of shape {shape}, got {compressed.shape}")
    return compressed.to(stream.new_empty(0))


def _stream_of(weight: CompressedWeight) -> Tensor:
    return torch.frombuffer(bytearray().join(weight.compressed.buffers()), dtype=torch.uint8)


def _converted_names(model: PreTrainedModel) -> set[str]:
    """Parameters that `save_pretrained` writes in another form, such as each expert of a layer as a tensor."""
    conversions = getattr(model, "_weight_conversions", None)
    if conversions is None:
        conversions = get_model_conversion_mapping(model, add_legacy=False)
    patterns = [p for one in conversions or () if isinstance(one, WeightConverter) for p in one.target_patterns]
    return {name for name, _ in model.named_parameters() if any(re.search(pattern, name) for pattern in patterns)}
