"""Which workloads, and which other pools, share the nodes of a NodePool."""
