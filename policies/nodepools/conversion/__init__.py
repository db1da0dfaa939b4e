"""Writes objects of Karpenter's removed APIs as the v1 objects that replace them."""
