"""What the Prometheus queries of triggers ask for."""
