"""The process and its surroundings: files, folders, signals, streams, versions. The lowest layer."""
