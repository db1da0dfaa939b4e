"""Disruption budgets of NodePools: when they are active, and what they leave to Karpenter."""
