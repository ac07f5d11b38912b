"""What a codec is: a frozen dataclass of checked parameters, with one mapping to plain JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from .._arguments import checked_integer
from .._dtypes import DType, by_numpy

SPEEDS = ("default", "fast")
ROUNDINGS = ("nearest", "stochastic")
TRUNCATING_ROUNDINGS = (*ROUNDINGS, "truncate")
_CHUNK = 4096  # values that the core codes together (FORMAT.md, section 3)
FLOATS = ("float16", "bfloat16", "float32", "float64")


class Codec(ABC):
    """Base of all codecs: subclasses are frozen dataclasses that check their fields when constructed.

    Attributes:
        name: what configurations and the command line call it.
        id: the number that stands for it in a stream.
        dtypes: names of the data types it takes; None for all of the format.
    """

    name: ClassVar[str]
    id: ClassVar[int]
    dtypes: ClassVar[tuple[str, ...] | None]

    @property
    def fixed_rate(self) -> bool:
        """Whether the payload's length follows from dtype and shape alone."""
        return False

    @property
    def has_sums(self) -> bool:
        """Whether `accumulate` and `compress_sum` take its compressed arrays."""
        return False

    @property
    def needs_seed(self) -> bool:
        """Whether it rounds at random, so that `compress` takes a seed."""
        return False

    @property
    def granularity(self) -> int:
        """Values of a bucket: an array that is cut at multiples of it, and compressed in parts, keeps its buckets.

        What is calculated from all of an array, as its range or its mean, each part has for itself.
        """
        return _CHUNK

    @abstractmethod
    def core_parameters(self) -> tuple[float, ...]:
        """The parameters as the core takes them beside the codec's id: numbers, in an order of the codec's own."""

    @classmethod
    @abstractmethod
    def examples(cls) -> "tuple[Codec, ...]":
        """A few instances worth showing, for demonstrations and measurements."""

    def config(self) -> dict[str, Any]:
        """The codec as a plain JSON object; `codec_from_config` turns it back.

        >>> from arrcomp import ErrorBounded
        >>> ErrorBounded(abs=1e-4).config()
        {'codec': 'error-bounded', 'abs': 0.0001, 'speed': 'default'}
        """
        return {"codec": self.name} | {name: value for name, value in self._values() if value is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Codec":
        """The codec whose parameters a configuration holds.

        Raises:
            TypeError, ValueError: a parameter is unknown or not allowed.
        """
        parameters = {key: value for key, value in config.items() if key != "codec"}
        allowed = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for key in parameters:
            if key not in allowed:
                raise ValueError(f"{key}: codec {cls.name} has no such parameter; allowed are {', '.join(allowed)}")
        return cls(**parameters)

    def takes(self, dtype: DType) -> bool:
        """Whether the codec takes this data type."""
        return self.dtypes is None or dtype.name in self.dtypes

    def takes_numpy(self, dtype: Any) -> bool:
        """Whether the codec takes this NumPy dtype."""
        try:
            return self.takes(by_numpy(dtype))
        except TypeError:  # the format has no such type
            return False

    def check_dtype(self, dtype: DType) -> None:
        """Raise TypeError unless the codec takes this data type."""
        if self.dtypes is not None and not self.takes(dtype):
            allowed = ", ".join(self.dtypes)
            hint = "; compress real and imaginary parts each" if dtype.parts == 2 else "; Lossless takes every dtype"
            raise TypeError(f"dtype {dtype.name}: {type(self).__name__} takes {allowed}{hint}")

    def __repr__(self) -> str:
        shown = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def _values(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]


def checked_bucket_size(value: Any) -> int:
    """`value` as the number of elements of a bucket.

    Raises:
        TypeError, ValueError: as `checked_integer`.
    """
    return checked_integer("bucket_size", value, 16, 1 << 40)
