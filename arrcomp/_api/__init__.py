"""The functions that users call, of every framework: compress, decompress and what they return."""

from . import pickling as pickling  # registers how Compressed is pickled
