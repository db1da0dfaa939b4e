"""ScaledObjects: what they say, and what they are given where they say nothing."""
