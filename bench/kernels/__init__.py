"""Parts of gpu.py and gpu_check.py: the GPU, cases, what is timed, and kernels of few-bit activations."""
