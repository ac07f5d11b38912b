"""What can go wrong besides a wrong argument, which is a `TypeError` or a `ValueError`."""


class ArrcompError(Exception):
    """Base of the package's own errors."""


class CorruptStreamError(ArrcompError, ValueError):
    """A stream is truncated, altered, or was never one; the message names the field."""


def unfit_payload(which: str = "payload") -> CorruptStreamError:
    """The error for a payload that no array of its codec, data type and number of elements has."""
    return CorruptStreamError(f"{which}: not one of this data type and number of elements")


class SizeLimitError(ArrcompError, ValueError):
    """A stream or a file claims an array that is larger than `max_nbytes` allows; nothing was allocated for it."""


class FormatVersionError(ArrcompError, ValueError):
    """A stream is of a newer major format version than this package reads."""


class UnknownCodecError(ArrcompError, ValueError):
    """A stream or a configuration names a codec that this package does not have."""


class DeviceUnavailableError(ArrcompError, RuntimeError):
    """A device was asked for that this build or this machine does not have; the message says what to install."""


class UnknownNameError(ArrcompError, ValueError):
    """A model, a data set or another part is asked for by a name that none has; the message lists those there are."""


class DataNotFoundError(ArrcompError, FileNotFoundError):
    """A data set's files are not there; the message says which are expected where, and how to get them."""
