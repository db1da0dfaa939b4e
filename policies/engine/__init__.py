"""What runs the policies: configuration, stance, evaluation, patching, verdict."""
