"""What is wrong with an installation of the webhook: facts are read first, then each subject is looked at by itself."""
