"""Finds the tensors of what a user names: a file, a checkpoint, or the local folder of a model from a hub."""

import json
import pathlib

from safetensors_file import read_safetensors
from tensors import FileFault
from torch_file import read_torch, tensors_in

# Names of files of weights in a folder, in the order in which they are looked for: first that of a checkpoint, then those of a hub.
IN_FOLDER = ("weights.safetensors", "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
OF_TORCH = (".pt", ".pth", ".bin", ".ckpt")


def read_weights(path, key=None):
    """Returns the tensors, and the metadata if the file has any."""
    path = file_of(pathlib.Path(path))
    if path.name.endswith(".index.json"):
        return read_shards(path, key), {}
    if path.suffix in OF_TORCH:
        return tensors_in(path, read_torch(path), key), {}
    if key:
        raise FileFault(f"--key has no effect on '{path}', which is one table of tensors; leave it out")
    return read_safetensors(path)


def file_of(path):
    if not path.is_dir():
        return path
    for name in IN_FOLDER:
        if (path / name).is_file():
            return path / name
    checkpoints = [file for file in path.glob("checkpoint-*/weights.safetensors") if number_of(file).isdecimal()]
    if checkpoints:
        return max(checkpoints, key=lambda file: int(number_of(file)))
    raise FileFault(f"'{path}' has none of {', '.join(IN_FOLDER)}, and no checkpoint; name a file of weights")


def is_file_beside(path, name):
    """A link is a file, too: the cache of a hub consists of links."""
    is_name = isinstance(name, str) and "\0" not in name and pathlib.PurePath(name).name == name and not name.endswith(".index.json")
    return is_name and not (path.parent / name).is_dir()


def number_of(file):
    """Returns the number of updates in the name of a checkpoint's folder, as text."""
    return file.parent.name.removeprefix("checkpoint-")


def read_shards(path, key):
    """Reads the files that an index of a hub names: {"weight_map": {TENSOR: FILE}}."""
    try:
        weight_map = json.loads(path.read_bytes())["weight_map"]
        shards = sorted(set(weight_map.values()))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise FileFault(f"'{path}' has no \"weight_map\" of tensors and files; the index is damaged") from error
    tensors = []
    for shard in shards:
        if not is_file_beside(path, shard):
            raise FileFault(f"'{path}' names the file {json.dumps(shard)}; an index may only name files of its own folder")
        found, _ = read_weights(path.parent / shard, key)
        tensors += [tensor for tensor in found if weight_map.get(tensor.name) == shard]
    missing = weight_map.keys() - {tensor.name for tensor in tensors}
    if missing:
        raise FileFault(f"'{path}' names tensor '{min(missing)}', which its file '{weight_map[min(missing)]}' lacks; fetch the files again")
    return tensors
