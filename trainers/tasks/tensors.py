"""Large arrays as tensors that share their memory."""

import numpy as np
import tensorflow as tf

ALIGNMENT = 64  # bytes, what TensorFlow asks of the memory of a tensor


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy of a one-dimensional array that can be a tensor without being copied again."""
    buffer = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % ALIGNMENT
    copy = buffer[first : first + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def shared_tensor(array: np.ndarray) -> tf.Tensor:
    """An aligned array as a tensor. Not `tf.constant`, which would hold it twice more."""
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
