"""Reads the tensors of a file of torch.save() without PyTorch, and without running code from the file.

Such a file is a zip archive: data.pkl describes objects, and data/KEY holds the values of a storage. A pickle may call any function. Here it
may only call the few that rebuild tensors and tables, and those are this module's own.
"""

import collections
import io
import math
import pickle
import zipfile

from tensors import BYTES_OF, FileFault, FileTensor

STORAGES = {"DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16", "LongStorage": "I64", "IntStorage": "I32",
            "ShortStorage": "I16", "CharStorage": "I8", "ByteStorage": "U8", "BoolStorage": "BOOL"}


class Storage:
    def __init__(self, path, dtype, archive, info):
        self.path, self.dtype, self.archive, self.info, self.bytes = path, dtype, archive, info, info.file_size

    def read(self):
        try:
            return self.archive.read(self.info)
        except (zipfile.BadZipFile, EOFError) as error:
            raise FileFault(f"'{self.path}' is damaged: {error}") from error


class TorchTensor:
    """A view of a storage: offset and strides in elements."""

    def __init__(self, storage, offset, shape, strides):
        self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(shape), tuple(strides)

    def named(self, path, name):
        size, count = BYTES_OF[self.storage.dtype], math.prod(self.shape)
        if count * size > self.storage.bytes:
            raise FileFault(f"'{path}': tensor '{name}' has more elements than its storage, because it repeats them; save it as tensor.contiguous()")
        return FileTensor(name, self.storage.dtype, self.shape, lambda: self.read(path, name))

    def read(self, path, name):
        size, count = BYTES_OF[self.storage.dtype], math.prod(self.shape)
        if count == 0:
            return b""
        data = self.storage.read()
        last = self.offset + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        if not 0 <= last * size < len(data):
            raise FileFault(f"'{path}': tensor '{name}' reaches beyond the end of its storage; the file is damaged")
        if self.strides == contiguous_strides(self.shape):
            return data[self.offset * size:(self.offset + count) * size]
        places = [self.offset]
        for extent, stride in zip(self.shape, self.strides):
            places = [place + i * stride for place in places for i in range(extent)]
        return b"".join(data[place * size:(place + 1) * size] for place in places)


def contiguous_strides(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def rebuild_tensor(storage, offset, shape, strides, *_ignored):
    counts = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or len(shape) != len(strides) or not all(type(count) is int and count >= 0 for count in counts):
        raise pickle.UnpicklingError("a tensor does not consist of a storage, an offset, a shape and strides")
    return TorchTensor(storage, offset, shape, strides)


def rebuild_parameter(tensor, *_ignored):
    return tensor


class TensorUnpickler(pickle.Unpickler):
    ALLOWED = {("collections", "OrderedDict"): collections.OrderedDict, ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
               ("torch._utils", "_rebuild_parameter"): rebuild_parameter, ("torch", "Size"): tuple}

    def __init__(self, path, archive, root):
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")))
        self.path, self.archive, self.root, self.storages = path, archive, root, {}

    def find_class(self, module, name):
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        is_tensor = (module == "torch._utils" and name.startswith("_rebuild_")) or (module.startswith("torch") and name.endswith("Storage"))
        if is_tensor and (module, name) not in self.ALLOWED:
            raise FileFault(f"'{self.path}' has a tensor of a kind that is not read ({name}): sparse, quantised, or of another type than "
                            f"{', '.join(BYTES_OF)}; convert it where the file was made")
        if (module, name) not in self.ALLOWED:
            raise FileFault(f"'{self.path}' contains an object of {module}.{name}, which would have to run code of that module; save only "
                            "the tensors: torch.save(model.state_dict(), FILE)")
        return self.ALLOWED[module, name]

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or pid[1] not in BYTES_OF or not isinstance(pid[2], str):
            raise pickle.UnpicklingError("a storage is not described as PyTorch does")
        key = pid[2]
        if key not in self.storages:
            info = self.archive.getinfo(f"{self.root}data/{key}")  # raises KeyError if the archive lacks it
            if info.compress_type != zipfile.ZIP_STORED:
                raise pickle.UnpicklingError("its values are compressed, which PyTorch does not do")
            self.storages[key] = Storage(self.path, pid[1], self.archive, info)
        return self.storages[key]


def read_torch(path):
    """Returns the object that the file holds: mostly dicts of TorchTensor."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise FileFault(f"'{path}' is no file of torch.save() in the format of PyTorch 1.6 and later; load it there, and save it again") from error
    roots = [name.removesuffix("data.pkl") for name in archive.namelist() if name.endswith("data.pkl")]
    if len(roots) != 1:
        raise FileFault(f"'{path}' is a zip archive without the description of one object; name a file of torch.save()")
    order = f"{roots[0]}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise FileFault(f"'{path}' was written on a big-endian machine; save it again on another one")
    try:
        return TensorUnpickler(path, archive, roots[0]).load()
    except FileFault:
        raise
    except Exception as error:  # a damaged pickle raises errors of many kinds
        raise FileFault(f"'{path}' is damaged: {type(error).__name__}: {error}") from error


def tensors_in(path, table, key):
    """Returns the tensors of a state_dict: the object of the file, or the dict that it holds under `key`."""
    if key:
        if not isinstance(table, dict) or key not in table:
            raise FileFault(f"'{path}' has no '{key}'; it has {listed(table)}")
        table = table[key]
    if not isinstance(table, dict):
        raise FileFault(f"'{path}' holds no table of tensors; save a state_dict: torch.save(model.state_dict(), FILE)")
    others = [name for name, value in table.items() if not isinstance(value, TorchTensor) and not (name == "_metadata")]
    if not others and not all(isinstance(name, str) for name in table):
        raise FileFault(f"'{path}' has a table whose names are not texts; save a state_dict: torch.save(model.state_dict(), FILE)")
    if others:
        tables = [name for name, value in table.items() if isinstance(value, dict)]
        what = f"name the table of the weights with --key, such as --key {tables[0]}" if tables else "save a state_dict: torch.save(model.state_dict(), FILE)"
        raise FileFault(f"'{path}' holds other things than tensors ({listed(others)}); {what}")
    return [tensor.named(path, name) for name, tensor in table.items() if isinstance(tensor, TorchTensor)]


def listed(names):
    texts = [f"'{name}'" for name in names] if isinstance(names, (dict, list)) else ["no table"]
    return ", ".join(texts[:8]) + (f" and {len(texts) - 8} others" if len(texts) > 8 else "")
