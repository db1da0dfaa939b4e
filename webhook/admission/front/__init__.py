"""Sockets, TLS and HTTP limits: what stands between the network and the application."""
