"""Door three: objects that are stored already, judged as if they were created now."""
