"""Rules that choose a codec for each array of a model, by name, data type and size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from .._arguments import check_mapping, checked_integer, shown, wrong_type, wrong_value
from .._dtypes import MAX_DIMENSIONS, MAX_VALUES, DType, by_name
from . import Codec, Lossless, codec_from_config
from ._base import wrong_codec

# Small arrays of models that are sensitive to errors, and that names show where shapes do not: norms, biases and scales
# of several dimensions, embeddings of positions and segments.
_DELICATE = (
    "*norm*", "*Norm*", "*ln_*", "*.bn*", "*bias*", "*scale*", "*pos_embed*", "*position*", "*token_type*",
    "*cls_token*",
)  # fmt: skip
_LOSSLESS = Lossless()


@dataclass(frozen=True)
class Rule:
    """Assigns a codec to the arrays that meet all conditions on name, dtype, size and dimensions.

    Args:
        codec: the codec.
        names: a pattern of `fnmatch` (`*`, `?`, `[abc]`), or several, one of which must match. Case matters.
        dtypes: a name of a data type, or several ("float32", "bfloat16"); None for all.
        min_size: the fewest values of the array.
        max_size: the most values; None for any number.
        min_ndim: the fewest dimensions.
        max_ndim: the most dimensions; None for any number.

    Raises:
        TypeError: an argument is of a wrong type, or `dtypes` has an unknown name.
        ValueError: a number is out of its range, or `names` or `dtypes` is empty.

    >>> from arrcomp import ErrorBounded, Lossless
    >>> rules = [Rule(Lossless(), "*.bias"), Rule(ErrorBounded(abs=1e-4), "*.weight", min_ndim=2)]
    """

    codec: Codec
    names: str | tuple[str, ...] = "*"
    dtypes: str | tuple[str, ...] | None = None
    min_size: int = 0
    max_size: int | None = None
    min_ndim: int = 0
    max_ndim: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.codec, Codec):
            raise wrong_codec("codec", "a codec", self.codec)
        object.__setattr__(self, "names", _checked_strings("names", self.names))
        if self.dtypes is not None:
            object.__setattr__(self, "dtypes", _checked_strings("dtypes", self.dtypes))
            for name in self.dtypes:
                by_name(name)
        for name, most in (("size", MAX_VALUES), ("ndim", MAX_DIMENSIONS)):
            least = checked_integer(f"min_{name}", getattr(self, f"min_{name}"), 0, most)
            if getattr(self, f"max_{name}") is not None:
                checked_integer(f"max_{name}", getattr(self, f"max_{name}"), least, most)

    def fits(self, name: str, dtype: DType, shape: tuple[int, ...]) -> bool:
        """Whether the array meets all conditions, and the codec accepts its data type."""
        return (
            self.min_size <= math.prod(shape) <= (MAX_VALUES if self.max_size is None else self.max_size)
            and self.min_ndim <= len(shape) <= (MAX_DIMENSIONS if self.max_ndim is None else self.max_ndim)
            and (self.dtypes is None or dtype.name in self.dtypes)
            and any(fnmatchcase(name, pattern) for pattern in self.names)
            and self.codec.takes(dtype)
        )

    def config(self) -> dict[str, Any]:
        """The rule as a plain JSON object, from which `rule_from_config` makes an equal rule.

        >>> from arrcomp import Lossless
        >>> Rule(Lossless(), "*.bias", max_ndim=1).config()["names"]
        ['*.bias']
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        plain = values | lists | {"codec": self.codec.config()}
        return {name: value for name, value in plain.items() if value is not None}


def rule_from_config(config: Mapping[str, Any]) -> Rule:
    """The rule of a configuration, which `Rule.config()` returned.

    Args:
        config: a mapping with the codec's configuration, or its name alone, under "codec", and a rule's other
            arguments. Missing ones get their defaults.

    Raises:
        TypeError, ValueError: it is not such a mapping, or an argument is unknown, or of a wrong type or value.
        UnknownCodecError: there is no such codec.

    >>> rule_from_config({"names": "*.weight", "codec": {"codec": "error-bounded", "abs": 1e-4}}).codec
    ErrorBounded(abs=0.0001)
    """
    check_mapping("config", config)
    known = [field.name for field in fields(Rule)]
    for key in config:
        if key not in known:
            raise TypeError(f"config: expected arguments of a rule ({', '.join(known)}), got {shown(key)}")
    if "codec" not in config:
        raise wrong_value("config", "a codec's name or configuration under 'codec'", dict(config))
    codec = config["codec"]
    made = codec_from_config({"codec": codec} if isinstance(codec, str) else codec)
    lists = {name: tuple(value) for name, value in config.items() if isinstance(value, list)}
    return Rule(**{**config, **lists, "codec": made})


def model_rules(codec: Codec, *, min_size: int = 4096) -> list[Rule]:
    """The usual rules for a model: `codec` for its large matrices, and `Lossless()` for all other arrays.

    The other arrays have fewer than two dimensions or few values, or a name with norm, bias, scale, or an embedding of
    positions or token types. They are a small part of a model, and its quality depends on them.

    Args:
        codec: for the large matrices.
        min_size: arrays with fewer values are kept losslessly.

    Raises:
        TypeError: `codec` is not a codec, or `min_size` not an integer.
        ValueError: `min_size` is below 0.

    >>> from arrcomp import ErrorBounded
    >>> [rule.codec for rule in model_rules(ErrorBounded(abs=1e-4))][-1]
    ErrorBounded(abs=0.0001)
    """
    rest = Rule(codec, min_size=min_size, min_ndim=2)
    return [Rule(Lossless(), _DELICATE), rest]


def checked_rules(codec: Any) -> tuple[Rule, ...]:
    """The argument `codec` as rules: it is a codec, a list of rules, or None for no rules."""
    if codec is None:
        return ()
    if isinstance(codec, Codec):
        return (Rule(codec),)
    if isinstance(codec, Sequence) and all(isinstance(rule, Rule) for rule in codec):
        return tuple(codec)
    raise wrong_codec("codec", "a codec, a list of Rule, or None", codec)


def codec_for(rules: Sequence[Rule], name: str, dtype: DType, shape: tuple[int, ...]) -> Codec:
    """The codec of the first rule that fits the array; `Lossless()` if none does."""
    return next((rule.codec for rule in rules if rule.fits(name, dtype, shape)), _LOSSLESS)


def _checked_strings(name: str, value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, (tuple, list)) or not all(isinstance(text, str) for text in texts):
        raise wrong_type(name, "a string, or a tuple of strings", value)
    if not texts:
        raise wrong_value(name, "at least one string", value)
    return tuple(texts)
