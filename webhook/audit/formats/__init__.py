"""What an audit is printed as."""
