"""How a Pod gets its MIG slices through ResourceClaims instead of extended resources."""
