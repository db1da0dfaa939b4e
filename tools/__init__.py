"""Programs that write files of this repository from facts and from the catalogue; no wheel has them."""
