"""How the values of labels of instance types are spelled."""
