"""What the documentation shows, read from its pages, and how each kind of it is checked."""
