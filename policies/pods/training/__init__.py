"""Pods that train models."""
