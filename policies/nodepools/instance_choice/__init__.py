"""What leaves a pool so few instance types, and which could join them."""
