"""Exceptions of the package. A wrong argument raises `TypeError` or `ValueError`."""

__all__ = [
    "ArrcompError",
    "CorruptStreamError",
    "DeviceUnavailableError",
    "FormatVersionError",
    "SizeLimitError",
    "UnknownCodecError",
    "UnknownNameError",
    "WrongReferenceError",
]


class ArrcompError(Exception):
    """Base of the package's own exceptions."""


class CorruptStreamError(ArrcompError, ValueError):
    """The bytes are not a stream, or a stream is truncated or altered. The message names the field."""


def unfit_payload(which: str = "payload") -> CorruptStreamError:
    """The exception for a payload that does not belong to any array of its codec, data type and number of elements."""
    return CorruptStreamError(f"{which}: expected one of this data type and number of elements, got other bytes")


def raise_for_status(status: int) -> None:
    """Raise what the core's kernels report: bit 0 a corrupt payload, bit 1 a wrong reference."""
    if status & 2:
        raise WrongReferenceError("reference: expected the array that was given to compress, got another one")
    if status:
        raise unfit_payload()


class SizeLimitError(ArrcompError, ValueError):
    """A stream or a file claims to hold an array of more than `max_nbytes` bytes. Nothing was allocated for it."""


class FormatVersionError(ArrcompError, ValueError):
    """A stream has a newer major format version than this package reads."""


class UnknownCodecError(ArrcompError, ValueError):
    """A stream or a configuration names a codec that this package does not have."""


class DeviceUnavailableError(ArrcompError, RuntimeError):
    """This build or this computer does not have the device. The message says what to install."""


class UnknownNameError(ArrcompError, ValueError):
    """There is no model, data set or other item of this name. The message lists the known names."""


class WrongReferenceError(ArrcompError, ValueError):
    """An array is decompressed with another reference than it was compressed against. Nothing was written."""
