"""Policies on Karpenter NodePools and NodeClaims."""
