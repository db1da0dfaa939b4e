"""What the labels that say who pays must hold."""
