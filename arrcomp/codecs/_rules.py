"""Which codec for which array: rules for the arrays of a model, by name, data type and size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from .._arguments import checked_integer
from .._dtypes import MAX_DIMENSIONS, MAX_VALUES, DType, by_name
from . import Codec, Lossless, codec_from_config

# Small parts of models that an error does most harm to, and that a name tells of where their shape does not: norms,
# biases and scales of several dimensions, embeddings of positions and segments.
_DELICATE = (
    "*norm*", "*Norm*", "*ln_*", "*.bn*", "*bias*", "*scale*", "*pos_embed*", "*position*", "*token_type*",
    "*cls_token*",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A codec, and the arrays it is for: those that fit all that is said.

    Args:
        codec: the codec.
        names: a pattern, or several of which one must fit, as `fnmatch` has them: `*`, `?`, `[abc]`; upper and lower
            case are told apart.
        dtypes: a name of a data type, or several ("float32", "bfloat16"); None for all.
        min_size: the fewest values, of the array.
        max_size: the most values; None for any number.
        min_ndim: the fewest dimensions.
        max_ndim: the most dimensions; None for any number.

    Raises:
        TypeError: an argument is of a wrong type, or `dtypes` names one that there is not.
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
            raise TypeError(f"codec={self.codec!r} is a {type(self.codec).__name__}; a codec is allowed")
        object.__setattr__(self, "names", _checked_texts("names", self.names))
        if self.dtypes is not None:
            object.__setattr__(self, "dtypes", _checked_texts("dtypes", self.dtypes))
            for name in self.dtypes:
                by_name(name)
        for name, most in (("size", MAX_VALUES), ("ndim", MAX_DIMENSIONS)):
            least = checked_integer(f"min_{name}", getattr(self, f"min_{name}"), 0, most)
            if getattr(self, f"max_{name}") is not None:
                checked_integer(f"max_{name}", getattr(self, f"max_{name}"), least, most)

    def fits(self, name: str, dtype: DType, shape: tuple[int, ...]) -> bool:
        """Whether the rule is for this array and its codec takes it."""
        return (
            self.min_size <= math.prod(shape) <= (MAX_VALUES if self.max_size is None else self.max_size)
            and self.min_ndim <= len(shape) <= (MAX_DIMENSIONS if self.max_ndim is None else self.max_ndim)
            and (self.dtypes is None or dtype.name in self.dtypes)
            and any(fnmatchcase(name, pattern) for pattern in self.names)
            and self.codec.takes(dtype)
        )

    def config(self) -> dict[str, Any]:
        """The rule as a plain JSON object; `rule_from_config` turns it back.

        >>> from arrcomp import Lossless
        >>> Rule(Lossless(), "*.bias", max_ndim=1).config()["names"]
        ['*.bias']
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        plain = values | lists | {"codec": self.codec.config()}
        return {name: value for name, value in plain.items() if value is not None}


def rule_from_config(config: Mapping[str, Any]) -> Rule:
    """The rule that `Rule.config()` describes.

    Args:
        config: a mapping with the codec's configuration, or its name alone, under "codec", and what else a rule takes;
            what is left out has its default.

    Raises:
        TypeError, ValueError: it is not such a mapping, or something in it is unknown or not allowed.
        UnknownCodecError: there is no such codec.

    >>> rule_from_config({"names": "*.weight", "codec": {"codec": "error-bounded", "abs": 1e-4}}).codec
    ErrorBounded(abs=0.0001)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; a mapping is allowed")
    allowed = [field.name for field in fields(Rule)]
    for key in config:
        if key not in allowed:
            raise TypeError(f"{key!r} is no part of a rule; {', '.join(allowed)} are allowed")
    if "codec" not in config:
        raise ValueError(f"config {dict(config)!r} has no 'codec'; a codec's name or configuration is allowed")
    codec = config["codec"]
    made = codec_from_config({"codec": codec} if isinstance(codec, str) else codec)
    lists = {name: tuple(value) for name, value in config.items() if isinstance(value, list)}
    return Rule(**{**config, **lists, "codec": made})


def model_rules(codec: Codec, *, min_size: int = 4096) -> list[Rule]:
    """The usual rules for a model: `codec` for its large matrices, and every bit of all else.

    All else is what has fewer than two dimensions or few values, and what is called norm, bias, scale, or an embedding
    of positions or token types: it makes up little of a model and much of its quality.

    Args:
        codec: for the rest.
        min_size: arrays with fewer values are kept losslessly.

    Raises:
        TypeError: `codec` is not one, or `min_size` not an integer.
        ValueError: `min_size` is below 0.

    >>> from arrcomp import ErrorBounded
    >>> [rule.codec for rule in model_rules(ErrorBounded(abs=1e-4))][-1]
    ErrorBounded(abs=0.0001)
    """
    rest = Rule(codec, min_size=min_size, min_ndim=2)
    return [Rule(Lossless(), _DELICATE), rest]


def checked_rules(codec: Any) -> tuple[Rule, ...]:
    """Rules of what functions take as `codec`: a codec, rules, or None for none.

    Raises:
        TypeError: it is neither.
    """
    if codec is None:
        return ()
    if isinstance(codec, Codec):
        return (Rule(codec),)
    if isinstance(codec, Sequence) and all(isinstance(rule, Rule) for rule in codec):
        return tuple(codec)
    raise TypeError(f"codec={codec!r} is a {type(codec).__name__}; a codec, a list of Rule, or None is allowed")


def codec_for(rules: Sequence[Rule], name: str, dtype: DType, shape: tuple[int, ...]) -> Codec:
    """The codec of the first rule that is for an array and takes its data type; else `Lossless()`."""
    for rule in rules:
        if rule.fits(name, dtype, shape):
            return rule.codec
    return Lossless()


def _checked_texts(name: str, value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, (tuple, list)) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name}={value!r}: a text, or a tuple of texts, is allowed")
    if not texts:
        raise ValueError(f"{name}={value!r}: one at least is allowed")
    return tuple(texts)
