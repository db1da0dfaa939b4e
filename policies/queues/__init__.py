"""Policies on queues of workloads: Kueue and KAI."""
