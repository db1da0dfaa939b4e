"""How a container gets at GPUs that its Pod does not ask for."""
