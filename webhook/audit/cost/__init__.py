"""The cost of GPUs: allocated, idle, wasted and unbounded ones."""
