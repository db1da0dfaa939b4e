"""What a candidate policy file would change, from recorded requests and stored objects."""
