"""What GPUs cost: which are held, idle or wasted, and what can grow without a limit."""
