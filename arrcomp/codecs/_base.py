"""The base of all codecs: frozen dataclasses of checked parameters, which convert to plain JSON and back."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arguments import check_mapping, checked_integer, shown, type_name, wrong_type, wrong_value
from .._dtypes import DType, by_numpy

SPEEDS = ("default", "fast")
ROUNDINGS = ("nearest", "stochastic")
TRUNCATING_ROUNDINGS = (*ROUNDINGS, "truncate")
PREDICTORS = ("auto", "interpolation", "lorenzo", "columns")
REFERENCE: Literal["reference"] = "reference"  # an array is coded by what it differs in from another one
_NUMBERED_PREDICTORS = (*PREDICTORS, REFERENCE)  # as the core numbers them, from 1 on
FLOATS = ("float16", "bfloat16", "float32", "float64")
_CHUNK = 4096  # elements that the core codes together (FORMAT.md, section 3)

Parameters = Mapping[str, float | tuple[float, ...]]
_TAKE_REFERENCES = "Lossless and ErrorBounded without a predictor take one"

_PARAMETER_NAMES = {number: names for number, _, _, names in _core.codec_table()}


class Codec:
    """Base of all codecs. Subclasses are frozen dataclasses, which check their fields when they are constructed.

    They implement `named_parameters` and `examples`. (It is no ABC, with which every isinstance would take 130 ns.)

    Attributes:
        name: its name in configurations and on the command line.
        id: its number in a stream.
        dtypes: names of the data types that it takes; None for all data types of the format.

    Raises:
        TypeError, ValueError: in every codec's constructors, an argument is of a wrong type or value, or does not go
            with the others.
    """

    name: ClassVar[str]
    id: ClassVar[int]
    dtypes: ClassVar[tuple[str, ...] | None]
    __dataclass_fields__: ClassVar[dict[str, "Field[Any]"]]
    __match_args__: ClassVar[tuple[str, ...]]  # parameters that need no keyword
    _always_shown: ClassVar[tuple[str, ...]] = ()  # parameters that `repr` shows with their defaults, too
    _meant: ClassVar[tuple[str, ...]] = ()  # what a value without its keyword may mean; none: the first that needs one

    def __new__(cls, *positional: Any, **named: Any) -> "Codec":
        # Dataclasses take the arguments after this. Python's own message would not say what to write. Compilers trace
        # these conditions, and could not trace `fields`.
        free, known = cls.__match_args__, cls.__dataclass_fields__
        given = free[: len(positional)]
        fit = len(given) == len(positional)
        for name in named:
            fit = fit and name in known and name not in given
        for name in free[len(given) :]:
            fit = fit and (name in named or hasattr(cls, name))  # a default is an attribute of the class
        if not fit:
            raise _wrong_arguments(cls, positional, named)
        return super().__new__(cls)

    @property
    def fixed_rate(self) -> bool:
        """Whether dtype and shape alone determine the payload's length."""
        return False

    @property
    def has_sums(self) -> bool:
        """Whether `accumulate` and `compress_sum` accept its compressed arrays."""
        return False

    @property
    def needs_seed(self) -> bool:
        """Whether it uses random numbers, for stochastic rounding for instance. `compress` then needs a seed."""
        return False

    @property
    def granularity(self) -> int:
        """Values in a bucket. An array that is split at multiples of this number keeps its buckets.

        Statistics of a whole array, such as its range or its mean, are different for each shard.
        """
        return getattr(self, "bucket_size", None) or _CHUNK

    @property
    def needs_reference(self) -> bool:
        """Whether it codes arrays by what they differ in from others. `compress` and `decompress` then need these."""
        return getattr(self, "predictor", None) == REFERENCE

    @property
    def predicts(self) -> bool:
        """Whether it may predict values from others of the array, so that a part of it needs more than its blocks."""
        return getattr(self, "predictor", None) not in (None, REFERENCE)

    def with_reference(self) -> "Codec":
        """The codec for arrays that are compressed against others; raises TypeError where it cannot do that."""
        raise TypeError(f"reference: expected None for {type(self).__name__}, got an array; {_TAKE_REFERENCES}")

    def max_errors(self, buckets: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """The largest error that the codec guarantees for each value, which the command line verifies.

        Args:
            buckets: rows of `granularity` values of an array. Rows with NaN or infinity are expected to become NaN.
        """
        return 0.0

    def named_parameters(self) -> Parameters:
        """The parameters as the core's table of codecs names them: numbers, or tuples of numbers."""
        raise NotImplementedError

    def core_parameters(self) -> tuple[float, ...]:
        """The parameters as the core takes them beside the codec's id: numbers, in the order of its table."""
        parameters: tuple[float, ...] = self.__dict__["_core_parameters"]
        return parameters

    def __post_init__(self) -> None:
        self._check()
        # Calls with small arrays would spend much of their time on these.
        object.__setattr__(self, "_core_parameters", in_core_order(self.id, self.named_parameters()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_config, (self.config(),)

    @classmethod
    def examples(cls) -> "tuple[Codec, ...]":
        """A few typical instances, for demonstrations and measurements."""
        raise NotImplementedError

    def config(self) -> dict[str, Any]:
        """The codec as a plain JSON object, from which `codec_from_config` makes an equal codec.

        >>> from arrcomp import ErrorBounded
        >>> ErrorBounded(abs=1e-4).config()
        {'codec': 'error-bounded', 'abs': 0.0001, 'speed': 'default'}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"codec": self.name} | {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Codec":
        """The codec with the parameters of a configuration.

        Raises:
            TypeError, ValueError: a parameter is unknown, or of a wrong type or value.
        """
        check_mapping("config", config)
        parameters = {key: value for key, value in config.items() if key != "codec"}
        known = {field.name: field.default for field in fields(cls)}
        for key in parameters:
            if key not in known:
                raise wrong_value("config", f"parameters of {cls.name} ({', '.join(known)})", key)
        for key, default in known.items():
            if default is MISSING and key not in parameters:
                raise TypeError(f"config: expected {key!r}, which {cls.name} needs, got none")
        return cls(**parameters)

    def takes(self, dtype: DType) -> bool:
        """Whether the codec accepts this data type."""
        return self.dtypes is None or dtype.name in self.dtypes

    def takes_numpy(self, dtype: Any) -> bool:
        """Whether the codec accepts this NumPy dtype."""
        try:
            return self.takes(by_numpy(dtype))
        except TypeError:  # the format has no such type
            return False

    def check_dtype(self, dtype: DType) -> None:
        """Raise TypeError unless the codec accepts this data type."""
        if self.dtypes is not None and not self.takes(dtype):
            hint = "compress real and imaginary parts separately" if dtype.parts == 2 else "Lossless takes every dtype"
            expected = f"{', '.join(self.dtypes)} for {type(self).__name__}"
            raise TypeError(f"dtype: expected {expected}, got {dtype.name}; {hint}")

    def __repr__(self) -> str:
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        shown = {f.name: value for f, value in values if value != f.default or f.name in self._always_shown}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _check(self) -> None:
        """Check the fields, and set them to what they mean."""

    def _set(self, **values: Any) -> None:
        """Set fields of a frozen dataclass, while it is constructed."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def wrong_codec(name: str, expected: str, got: Any) -> TypeError:
    """The error for an argument that should be, or have, a codec. A class is an instance without its call."""
    if isinstance(got, type) and issubclass(got, Codec) and got is not Codec:
        return TypeError(f"{name}: expected an instance such as {got.examples()[0]!r}, got the class {got.__name__}")
    return wrong_type(name, expected, got)


def _wrong_arguments(kind: type[Codec], positional: tuple[Any, ...], named: Mapping[str, Any]) -> TypeError:
    """The error for arguments that are not those of a codec; it says what to write."""
    name, free, known = kind.__name__, kind.__match_args__, [field.name for field in fields(kind)]
    if len(positional) > len(free):
        return _no_keyword(kind, positional, [each for each in known if each not in free and each not in named])
    for each in named:
        if each not in known:
            return TypeError(f"{name}: expected parameters {', '.join(known)}, got {shown(each)}")
        if each in free[: len(positional)]:
            return TypeError(f"{name}: expected {each} once, got it twice")
    missing = [each for each in free[len(positional) :] if each not in named and not hasattr(kind, each)]
    example = repr(kind.examples()[0])
    return TypeError(f"{name}: expected {' and '.join(missing)}, got none; an example is {example}")


def _no_keyword(kind: type[Codec], positional: tuple[Any, ...], others: list[str]) -> TypeError:
    """The error for the first argument that lacks a keyword; `others` are the parameters that it may be."""
    count = len(kind.__match_args__)
    value = positional[count]
    plain = isinstance(value, (bool, int, float, str))
    got, before = shown(value) if plain else type_name(value), [shown(each) for each in positional[:count]]
    meant = [", ".join([*before, f"{name}={got if plain else '...'}"]) for name in kind._meant or others[:1]]
    hint = "; write " + " or ".join(f"{kind.__name__}({arguments})" for arguments in meant) if meant else ""
    return TypeError(f"{kind.__name__}: expected a keyword, got {got}{hint}")


def in_core_order(codec_id: int, named: Parameters) -> tuple[float, ...]:
    """Parameters by name as the numbers that the core takes, in the order of its table; raises TypeError for others."""
    names = _PARAMETER_NAMES[codec_id]
    if len(named) != len(names) or any(name not in named for name in names):
        raise TypeError(f"parameters of codec {codec_id}: expected {', '.join(names)}, got {', '.join(named)}")
    numbers: list[float] = []
    for name in names:
        value = named[name]
        numbers += value if isinstance(value, tuple) else (float(value),)
    return tuple(numbers)


def check_predictor(value: Any) -> None:
    """Raise unless `value` is a predictor or None."""
    if value is None or (isinstance(value, str) and value in _NUMBERED_PREDICTORS):
        return
    expected = f"None or {' or '.join(map(repr, PREDICTORS))}"
    raise (wrong_value if isinstance(value, str) else wrong_type)("predictor", expected, value)


def predictor_number(predictor: str | None) -> float:
    """A predictor as the core numbers it; 0 for None."""
    return 0.0 if predictor is None else 1.0 + _NUMBERED_PREDICTORS.index(predictor)


def check_unpredicted(predictor: str | None) -> None:
    """Raise TypeError where a codec predicts arrays, and so cannot code them against a reference."""
    if predictor not in (None, REFERENCE):
        raise TypeError(f"reference: expected None with predictor={predictor!r}, got an array; {_TAKE_REFERENCES}")


def checked_bucket_size(value: Any) -> int:
    """`value` as the number of elements of a bucket."""
    return checked_integer("bucket_size", value, 16, 1 << 40)
