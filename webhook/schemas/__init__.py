"""What API servers refuse by the schema of a kind, told without one: tables made of the kinds' own definitions."""
