"""The backend "arrcomp" of torch.distributed: NCCL and Gloo with compressed all-reduces."""
