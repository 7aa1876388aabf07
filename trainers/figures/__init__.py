"""The pictures of the project, in one look."""
