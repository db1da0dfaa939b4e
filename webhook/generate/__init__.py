"""What is derived from facts and from the catalogue, and kept in the repository."""
