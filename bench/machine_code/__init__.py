"""Machine code of the CUDA kernels: what a disassembler lists, its loops, and the ways around them."""
