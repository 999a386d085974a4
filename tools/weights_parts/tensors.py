"""A tensor of a file, whose values are read when they are needed."""

import array
import dataclasses
import math
import operator
import struct
from typing import Callable

BYTES_OF = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B"}


class FileFault(Exception):
    """A file that cannot be read or written, described in one sentence."""


@dataclasses.dataclass(frozen=True)
class FileTensor:
    """`read` returns the values as little-endian bytes, row-major and without gaps."""

    name: str
    dtype: str
    shape: tuple
    read: Callable[[], bytes]

    @property
    def elements(self):
        return math.prod(self.shape)

    @property
    def bytes(self):
        return self.elements * BYTES_OF[self.dtype]

    def type_text(self):
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def numbers(self):
        """Returns the values as a sequence of numbers."""
        data = self.read()
        if self.dtype == "F16":
            return struct.unpack(f"<{self.elements}e", data)
        if self.dtype == "BF16":  # the upper half of a float
            return array.array("f", b"".join(b"\0\0" + data[at:at + 2] for at in range(0, len(data), 2)))
        return array.array(CODES[self.dtype], data)


def largest_difference(a, b):
    """Returns the largest absolute difference of two tensors of one shape. Two NaN, or two equal infinities, do not differ; NaN and a
    number differ by infinity."""
    if a.dtype == b.dtype and a.read() == b.read():
        return 0.0
    x, y = a.numbers(), b.numbers()
    try:
        largest = max(map(abs, map(operator.sub, x, y)), default=0.0)
    except OverflowError:
        largest = math.inf
    # max() may skip NaN, so look at each value if there may be one.
    if largest < math.inf and all(map(math.isfinite, x)) and all(map(math.isfinite, y)):
        return float(largest)
    return max((0.0 if left == right or (left != left and right != right) else _distance(left, right) for left, right in zip(x, y)), default=0.0)


def _distance(left, right):
    difference = abs(left - right)
    return math.inf if difference != difference else float(difference)
