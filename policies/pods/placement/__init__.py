"""Where a Pod may run, and who put it there."""
