"""Error messages for a machine without enough memory or disk space. Needs no TensorFlow."""

import errno

# Other system errors are bugs of these programs.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
DISK_RULE = "The disk must have space left; free some and run the same command again to resume"
# TensorFlow and HDF5 report a full disk only in the text of an error.
DISK_WORDS = ("No space left on device", "Disk quota exceeded")


def shortage(error: BaseException) -> str:
    """The message for an error that is due to the machine; empty for any other."""
    first = str(error).strip().partition("\n")[0]
    if isinstance(error, OSError) and error.errno in DISK:
        place = f" ({error.filename})" if error.filename else ""
        return f"{DISK_RULE}. Received: {error.strerror}{place}"
    if any(words in str(error) for words in DISK_WORDS):
        return f"{DISK_RULE}. Received: {first}"
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        return (
            "The run must fit into memory: try a smaller model, a smaller batch or a larger --accumulate. "
            f"Received: {first or 'out of memory'}"
        )
    return ""
