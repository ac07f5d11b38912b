"""Files of arrays (.npy, .npz, .safetensors) and of compressed arrays (.arrcomp, .safetensors).

A .arrcomp file is one stream. Several compressed arrays are a .safetensors file with one uint8 tensor for each, its
complete stream, and the metadata `{"format": "arrcomp", "version": "0.1"}`. The original file's metadata is in it as
JSON under "source_metadata". If all arrays were of one framework, "framework" is its name.

Arrays are read and written one by one. Files are replaced atomically.
"""

from .arrays import is_compressed, read_any, read_arrays, write_arrays
from .content import ARRAY_SUFFIXES, COMPRESSED_SUFFIXES, Content, Lazy
from .models import load_file, save_file
from .opened import CompressedFile, open_file

__all__ = [
    "ARRAY_SUFFIXES",
    "COMPRESSED_SUFFIXES",
    "CompressedFile",
    "Content",
    "Lazy",
    "is_compressed",
    "load_file",
    "open_file",
    "read_any",
    "read_arrays",
    "save_file",
    "write_arrays",
]
