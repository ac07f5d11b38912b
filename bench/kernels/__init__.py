"""Parts of gpu.py: the GPU, and kernels of few-bit activations."""
