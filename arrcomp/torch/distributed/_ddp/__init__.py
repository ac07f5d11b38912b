"""The communication hook for DistributedDataParallel, and its state."""
