"""Policies about Pods, and the Pod templates in workloads."""
