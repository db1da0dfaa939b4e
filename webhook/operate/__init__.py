"""Looking after an installed webhook: what is wrong with it, whether it is reached, turning it off and on, removing it."""
