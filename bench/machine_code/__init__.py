"""Machine code of the CUDA kernels: what a disassembler lists, its loops, and the instructions on the way around them."""
