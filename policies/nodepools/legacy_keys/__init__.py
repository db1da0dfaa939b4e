"""Where objects use keys that Karpenter dropped."""
