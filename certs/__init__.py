"""How TLS is obtained and kept."""
