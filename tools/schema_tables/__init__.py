"""Makes the tables that come with gpugate, from Go modules: `make schemas`."""
