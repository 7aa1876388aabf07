"""The figures of the project, in a common style."""
