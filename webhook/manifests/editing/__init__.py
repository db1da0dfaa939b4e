"""Changes the text of a document so that it means another object, and leaves the rest of the text as it is."""
