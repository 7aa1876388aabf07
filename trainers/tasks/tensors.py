"""Large arrays as tensors that share their memory."""

import numpy as np
import tensorflow as tf

ALIGNMENT = 64  # bytes, required by TensorFlow for the memory of a tensor


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy of a one-dimensional array, aligned so that it can become a tensor without another copy."""
    buffer = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % ALIGNMENT
    copy = buffer[first : first + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def shared_tensor(array: np.ndarray) -> tf.Tensor:
    """An aligned array as a tensor that shares its memory. `tf.constant` would make two more copies."""
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
