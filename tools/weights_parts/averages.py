"""Averages the tensors of several files."""

import array
import math
import operator
import struct

from tensors import FileFault, FileTensor

FLOATING = ("F64", "F32", "F16", "BF16")
CHECKSUM = "checksum.fnv1a64"  # the metadata in which Plexaura's files have the hash of their contents


def averaged(files):
    """Returns the tensors of the last file, with the means of the values over all files, which are computed in float64. Tensors that
    are not floating, such as counters, keep the values of the last file. `files`: for each file its path, its tensors and its metadata."""
    tables = [{tensor.name: tensor for tensor in tensors} for _, tensors, _ in files]
    for (path, _, metadata), table in zip(files, tables):
        _check_alike(files[-1], tables[-1], path, table, metadata)
    return [_mean([table[name] for table in tables], [path for path, _, _ in files]) for name in tables[-1]]


def _check_alike(last, expected, path, table, metadata):
    """All files must have the same tensors and the same metadata, so that they are weights of one model for the same data."""
    other = last[0]
    for name in sorted(expected.keys() ^ table.keys()):
        raise FileFault(f"only '{path if name in table else other}' has the tensor '{name}', and not '{other if name in table else path}'; average weights of one model")
    for name, tensor in table.items():
        if (tensor.dtype, tensor.shape) != (expected[name].dtype, expected[name].shape):
            raise FileFault(f"'{name}' is {tensor.type_text()} in '{path}' and {expected[name].type_text()} in '{other}'; average weights of one model")
    for key in sorted((last[2].keys() | metadata.keys()) - {CHECKSUM}):
        if last[2].get(key) != metadata.get(key):
            raise FileFault(f"'{path}' and '{other}' differ in their metadata '{key}', so that they were made with other settings or data; "
                            "average weights of runs that are alike")


def _mean(tensors, paths):
    last = tensors[-1]
    if last.dtype not in FLOATING:
        return last

    def read():
        sums = tensors[0].numbers()
        for tensor in tensors[1:]:
            sums = array.array("d", map(operator.add, sums, tensor.numbers()))
        means = array.array("d", (value / len(tensors) for value in sums))
        if not all(map(math.isfinite, means)):
            raise FileFault(f"'{last.name}' has a value that is not finite, in one of {', '.join(paths)}; average weights that did not diverge")
        return _bytes_of(last.dtype, means)

    return FileTensor(last.name, last.dtype, last.shape, read)


def _bytes_of(dtype, values):
    if dtype == "F64":
        return values.tobytes()
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    floats = array.array("f", values)
    if dtype == "F32":
        return floats.tobytes()
    bits = array.array("I", floats.tobytes())
    # Rounds to the nearest number, and halves to even.
    return array.array("H", (bit + 0x7FFF + (bit >> 16 & 1) >> 16 for bit in bits)).tobytes()
