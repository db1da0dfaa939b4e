"""GPUs that several Pods share."""
