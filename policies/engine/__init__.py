"""The engine that runs policies: configuration, stances, evaluation, patching and verdicts."""
