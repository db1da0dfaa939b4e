"""Facts with a source and a date, which policies read and never change."""
