"""Writes fields of older Karpenter APIs as v1 has them."""
