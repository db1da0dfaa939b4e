"""Every example of the policy library as requests to the API server, and how they end."""
