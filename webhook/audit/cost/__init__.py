"""What GPUs cost: which are allocated, idle or wasted, and what can grow without a limit."""
