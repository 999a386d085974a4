"""Reads and writes safetensors files: 8 bytes with the length of a JSON header, the header, and the values."""

import json
import mmap
import os

from printing import is_unicode
from tensors import BYTES_OF, FileFault, FileTensor
from tool import whole_file

LONGEST_HEADER = 100 << 20  # bytes, as in the library of the format
MOST_AXES = 64
METADATA = "__metadata__"


def read_safetensors(path):
    """Returns the tensors of a file, and its metadata, a dict of texts."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(LONGEST_HEADER, size - 8):
            raise damaged(path, "the header is longer than the file")
        header = parse_header(path, file.read(length))
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damaged(path, "its metadata is not a table of texts")
    tensors = [tensor_of(path, name, entry, data, 8 + length) for name, entry in header.items()]
    check_ranges(path, [entry["data_offsets"] for entry in header.values()], size - 8 - length)
    return tensors, metadata


def check_ranges(path, ranges, size):
    """The tensors cover the data without a gap, and do not overlap."""
    at = 0
    for begin, end in sorted(ranges):
        if begin != at:
            raise damaged(path, f"{'a gap' if begin > at else 'an overlap'} of tensors begins at byte {min(begin, at)} of the data")
        at = end
    if at != size:
        raise damaged(path, f"its tensors have {at} bytes and its data {size}")


def parse_header(path, text):
    def once(pairs):
        table = dict(pairs)
        if not all(is_unicode(text) for pair in pairs for text in pair if isinstance(text, str)):
            raise damaged(path, "a text in its header is not Unicode")
        if len(table) != len(pairs):
            raise damaged(path, "a name appears twice in its header")
        return table

    try:
        header = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "its header is not valid JSON") from error
    if not isinstance(header, dict):
        raise damaged(path, "its header is not a table")
    return header


def tensor_of(path, name, entry, data, data_at):
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise damaged(path, f"tensor {json.dumps(name)} does not consist of dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BYTES_OF:
        raise FileFault(f"'{path}': tensor {json.dumps(name)} has the dtype {json.dumps(dtype)}, which is not one of {', '.join(BYTES_OF)}; "
                        "convert it to one of these where the file was made")
    if not is_counts(shape) or not is_counts(offsets) or len(offsets) != 2 or len(shape) > MOST_AXES:
        raise damaged(path, f"the shape or the offsets of tensor {json.dumps(name)} are not whole numbers, or too many")
    begin, end = data_at + offsets[0], data_at + offsets[1]
    tensor = FileTensor(name, dtype, tuple(shape), lambda: data[begin:end])
    if end > len(data) or end - begin != tensor.bytes:
        raise damaged(path, f"tensor {json.dumps(name)} is {tensor.type_text()} with {offsets[1] - offsets[0]} bytes from {offsets[0]} on")
    return tensor


def is_counts(values):
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def damaged(path, what):
    return FileFault(f"'{path}': {what}; the file is damaged or not a safetensors file")


def write_safetensors(path, tensors, metadata):
    """The file appears completely or not at all."""
    header, at = {METADATA: metadata} if metadata else {}, 0
    # Larger elements first, so that each tensor begins at a multiple of its element size.
    tensors = sorted(tensors, key=lambda tensor: -BYTES_OF[tensor.dtype])
    for tensor in tensors:
        if tensor.name == METADATA or not is_unicode(tensor.name):
            raise FileFault(f"a tensor may not be called {json.dumps(tensor.name)}; rename it, or leave it out")
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.bytes]}
        at += tensor.bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            file.write(tensor.read())
