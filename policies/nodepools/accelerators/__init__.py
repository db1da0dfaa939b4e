"""What kinds of accelerators a pool may launch, and how many."""
