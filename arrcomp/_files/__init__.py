"""Files of arrays (.npy, .npz, .safetensors) and of compressed arrays (.arrcomp, .safetensors).

A .arrcomp file is one stream. Several compressed arrays are a .safetensors file with one uint8 tensor for each, its
complete stream, and the metadata `{"format": "arrcomp", "version": "0.1"}`. The original file's metadata is in it as
JSON under "source_metadata". If all arrays were of one framework, "framework" is its name. If arrays are coded against
those of another file, "base" is a JSON object: its path from the file's own folder as "file", and if it has streams, a
hash of their names and checksums as "fingerprint".

Arrays are read and written one by one. Files are replaced atomically; what is appended in place is there wholly or not.
"""

from .against import Against
from .arrays import is_compressed, read_arrays, write_arrays
from .chains import CheckpointChain
from .content import ARRAY_SUFFIXES, COMPRESSED_SUFFIXES, Content, Lazy
from .models import append_file, load_file, save_file
from .opened import CompressedFile, open_base, open_file, read_any

__all__ = [
    "ARRAY_SUFFIXES",
    "COMPRESSED_SUFFIXES",
    "Against",
    "CheckpointChain",
    "CompressedFile",
    "Content",
    "Lazy",
    "append_file",
    "is_compressed",
    "load_file",
    "open_base",
    "open_file",
    "read_any",
    "read_arrays",
    "save_file",
    "write_arrays",
]
