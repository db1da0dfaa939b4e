"""What ScaledObjects are given where they say nothing."""
