"""Sockets, TLS and HTTP limits, between the network and the application."""
