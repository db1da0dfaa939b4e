"""Policies about what scales workloads: KEDA's ScaledObject and ScaledJob, and HorizontalPodAutoscaler."""
