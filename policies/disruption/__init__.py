"""Policies on PodDisruptionBudgets, and on workloads that need one."""
