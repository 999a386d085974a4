#!/usr/bin/env python3
"""Tests tools/weights: what it reads, what it writes, and what it refuses.

usage: weights_test.py ROOT
"""

import collections
import importlib.util
import io
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

ROOT = pathlib.Path(sys.argv[1]).resolve()


def safetensors(tensors, metadata=None):
    """Returns the bytes of a file. `tensors`: name, dtype, shape, values as bytes."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, dtype, shape, values in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def read_back(path):
    """Returns {name: (dtype, shape, values as bytes)}, and the metadata."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    return {name: (entry["dtype"], entry["shape"], content[8 + length:][slice(*entry["data_offsets"])]) for name, entry in header.items()}, metadata


def global_named(module, name):
    """Returns something that pickle describes as module.name."""
    holder = sys.modules.setdefault(module, types.ModuleType(module))
    thing = type(name, (), {"__module__": module})
    setattr(holder, name, thing)
    return thing


class WrittenTensor:
    """Is pickled as PyTorch pickles a tensor."""

    def __init__(self, key, offset, shape, strides, storage="FloatStorage"):
        self.key, self.arguments, self.storage = key, (offset, shape, strides, False, collections.OrderedDict()), storage

    def __reduce__(self):
        return REBUILD, (WrittenStorage(self.key, self.storage), *self.arguments)


class WrittenStorage:
    def __init__(self, key, storage):
        self.pid = ("storage", global_named("torch", storage), key, "cpu", 0)


class TorchPickler(pickle.Pickler):
    def persistent_id(self, thing):
        return thing.pid if isinstance(thing, WrittenStorage) else None


def REBUILD():
    pass


REBUILD.__module__, REBUILD.__qualname__, REBUILD.__name__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
sys.modules.setdefault("torch._utils", types.ModuleType("torch._utils"))._rebuild_tensor_v2 = REBUILD


def torch_file(path, thing, storages, compression=zipfile.ZIP_STORED):
    text = io.BytesIO()
    TorchPickler(text, protocol=2).dump(thing)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", text.getvalue())
        for key, values in storages.items():
            archive.writestr(f"archive/data/{key}", values)


class WeightsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, *arguments):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(safetensors(*arguments))

    def ask(self, *words, status=0):
        done = subprocess.run([ROOT / "tools/weights", *words], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def refuse(self, says, *words):
        done = subprocess.run([ROOT / "tools/weights", *words], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\Aweights: [^\n]*{says}[^\n]*\n\Z")

    def test_list(self):
        self.write("a.safetensors", [("fc.weight", "F32", [2, 1], floats(1, 2)), ("fc.count", "I64", [], bytes(8))], {"made by": "hand\x1b"})
        self.assertEqual(self.ask("list", "a.safetensors"),
                         "fc.weight  F32[2,1]\nfc.count   I64[]\n# made by: hand\\x1b\n2 tensors, 3 elements, 16 bytes\n")

    def test_diff(self):
        self.write("a.safetensors", [("x", "F32", [2], floats(1, 2)), ("y", "F32", [1], floats(0)), ("n", "F32", [2], floats(float("nan"), 1))])
        self.write("b.safetensors", [("x", "F32", [2], floats(1, 2.5)), ("z", "F32", [1], floats(0)), ("n", "F32", [2], floats(1, 1))])
        self.write("half.safetensors", [("x", "BF16", [2], b"\x80\x3f\x00\x40"), ("y", "F16", [1], bytes(2)), ("n", "F32", [1, 2], floats(1, 1))])
        self.assertEqual(self.ask("diff", "a.safetensors", "a.safetensors"), "3 and 3 tensors, no differences\n")
        self.assertEqual(self.ask("diff", "a.safetensors", "b.safetensors", status=1),
                         "only in a.safetensors: y\nonly in b.safetensors: z\nx: largest difference 0.5\nn: largest difference inf\n"
                         "3 and 3 tensors, 4 differences\n")
        self.assertEqual(self.ask("diff", "a.safetensors", "half.safetensors", status=1),
                         "x: largest difference 0, F32 and BF16\ny: largest difference 0, F32 and F16\nn: F32[2] and F32[1,2]\n3 and 3 tensors, 3 differences\n")

    def test_equal_infinities_and_nan_do_not_differ(self):
        values = (float("inf"), float("nan"), 1.0)
        self.write("a.safetensors", [("x", "F32", [3], floats(*values))])
        self.write("b.safetensors", [("x", "F64", [3], struct.pack("<3d", *values))])
        self.assertIn("x: largest difference 0, F32 and F64", self.ask("diff", "a.safetensors", "b.safetensors", status=1))

    def test_convert_renames_drops_and_keeps_the_metadata(self):
        self.write("a.safetensors", [("flag", "BOOL", [1], b"\1"), ("encoder.fc.weight", "F32", [2], floats(1, 2)), ("head.bias", "F32", [1], floats(3))],
                   {"data.class 0": "cat"})
        self.ask("convert", "a.safetensors", "b.safetensors", "--rename", "encoder.*=trunk.*", "--rename", "tr?nk.fc.*=fc.*", "--drop", "head.*")
        tensors, metadata = read_back(self.folder / "b.safetensors")
        self.assertEqual(tensors, {"flag": ("BOOL", [1], b"\1"), "fc.weight": ("F32", [2], floats(1, 2))})
        self.assertEqual(metadata, {"data.class 0": "cat"})
        self.refuse("'b.safetensors' exists; name another file, or give --replace", "convert", "a.safetensors", "b.safetensors")
        self.ask("convert", "a.safetensors", "b.safetensors", "--replace")
        self.assertEqual(self.ask("diff", "a.safetensors", "b.safetensors"), "3 and 3 tensors, no differences\n")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.safetensors", "b.safetensors"])

    def test_average(self):
        # 1 + 2**-7 is the number of bfloat16 after 1; the mean with 1 is a tie, which goes to the even one of both.
        for name, x, half, counter in (("a", (1, 2), b"\x80\x3f\x81\x3f", 5), ("b", (2, 4), b"\x81\x3f\x82\x3f", 7)):
            self.write(f"{name}.safetensors", [("x", "F32", [2], floats(*x)), ("y", "BF16", [2], half), ("z", "F16", [1], struct.pack("<e", x[0])),
                                               ("w", "F64", [1], struct.pack("<d", x[1])), ("n", "I64", [], struct.pack("<q", counter))], {"setting.a": "1"})
        self.write("c.safetensors", [("x", "F32", [2], floats(0, 0.5)), ("y", "BF16", [2], bytes(4)), ("z", "F16", [1], bytes(2)),
                                     ("w", "F64", [1], bytes(8)), ("n", "I64", [], bytes(8))], {"setting.a": "1"})
        self.assertEqual(self.ask("average", "a.safetensors", "b.safetensors", "out.safetensors"), "out.safetensors: 5 tensors, 30 bytes\n")
        tensors, metadata = read_back(self.folder / "out.safetensors")
        self.assertEqual(tensors, {"x": ("F32", [2], floats(1.5, 3)), "y": ("BF16", [2], b"\x80\x3f\x82\x3f"), "z": ("F16", [1], struct.pack("<e", 1.5)),
                                   "w": ("F64", [1], struct.pack("<d", 3)), "n": ("I64", [], struct.pack("<q", 7))})
        self.assertEqual(metadata, {"setting.a": "1"})
        self.refuse("'out.safetensors' exists; name another file, or give --replace", "average", "a.safetensors", "b.safetensors", "out.safetensors")
        self.ask("average", "a.safetensors", "b.safetensors", "c.safetensors", "out.safetensors", "--replace")
        self.assertEqual(read_back(self.folder / "out.safetensors")[0]["x"], ("F32", [2], floats(1, 6.5 / 3)))

    def test_files_that_have_no_average(self):
        self.write("a.safetensors", [("x", "F32", [2], floats(1, 2))], {"data.origin": "1"})
        for says, tensors, metadata in (("differ in their metadata 'data.origin', so that they were made with other settings or data", [("x", "F32", [2], floats(1, 2))], None),
                                        ("only 'b.safetensors' has the tensor 'y', and not 'a.safetensors'", [("x", "F32", [2], floats(1, 2)), ("y", "F32", [], floats(1))], {"data.origin": "1"}),
                                        ("only 'a.safetensors' has the tensor 'x', and not 'b.safetensors'", [], {"data.origin": "1"}),
                                        ("'x' is F32.2. in 'a.safetensors' and F64.1. in 'b.safetensors'; average weights of one model", [("x", "F64", [1], bytes(8))], {"data.origin": "1"}),
                                        ("'x' has a value that is not finite, in one of", [("x", "F32", [2], floats(1, float("inf")))], {"data.origin": "1"})):
            self.write("b.safetensors", tensors, metadata)
            self.refuse(says, "average", "a.safetensors", "b.safetensors", "out.safetensors")
        self.refuse("an average needs two files or more, and only 'a.safetensors' is named", "average", "a.safetensors", "out.safetensors")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.safetensors", "b.safetensors"])

    def test_names_that_do_not_fit(self):
        self.write("a.safetensors", [("x.w", "F32", [1], floats(1)), ("y.w", "F32", [1], floats(2)), ("short", "I16", [1], b"\1\0")])
        for says, *words in (("'x.w' and 'y.w' would both be called 'w'", "--rename", "x.*=*", "--rename", "y.*=*", "--drop", "short"),
                             ("--rename 'z.*=w' fits no tensor", "--rename", "z.*=w", "--drop", "short"),
                             ("--drop 'z' fits no tensor", "--drop", "z"),
                             ("is not OLD=NEW", "--rename", "x"),
                             ("has more '\\*' on the right", "--rename", "x=*"),
                             ("'short' is I16\\[1\\], and a model loads F64, ")):
            self.refuse(says, "convert", "a.safetensors", "b.safetensors", *words)
        self.refuse("does not end in .safetensors", "convert", "a.safetensors", "b.pt")
        self.refuse("No such file or directory", "convert", "a.safetensors", "none/b.safetensors", "--drop", "short")
        self.assertEqual(os.listdir(self.folder), ["a.safetensors"])

    def test_folders(self):
        one = [("x", "F32", [1], floats(1))]
        self.write("run/checkpoint-000002/weights.safetensors", [("x", "F32", [1], floats(2))])
        self.write("run/checkpoint-999999/weights.safetensors", [("x", "F32", [1], floats(3))])
        self.write("run/checkpoint-1000000/weights.safetensors", one)
        self.write("hub/part-1.safetensors", [*one, ("of no shard", "F32", [1], floats(5))])
        self.write("hub/part-2.safetensors", [("y", "F32", [1], floats(1))])
        index = {"metadata": {}, "weight_map": {"x": "part-1.safetensors", "y": "part-2.safetensors"}}
        (self.folder / "hub/model.safetensors.index.json").write_text(json.dumps(index))
        self.write("one.safetensors", one)
        for folder in ("run", "run/checkpoint-1000000"):
            self.assertIn("no differences", self.ask("diff", folder, "one.safetensors"))
        self.assertEqual(self.ask("list", "hub"), "x  F32[1]\ny  F32[1]\n2 tensors, 2 elements, 8 bytes\n")
        for file, says in (("../one.safetensors", "an index may only name files of its own folder"), ("part-2.safetensors", "names tensor 'x', which its file")):
            index["weight_map"]["x"] = file
            (self.folder / "hub/model.safetensors.index.json").write_text(json.dumps(index))
            self.refuse(says, "list", "hub")
        for file in ("..", "sub", "a\0b", 3):
            (self.folder / "hub/sub").mkdir(exist_ok=True)
            index["weight_map"]["x"] = file
            (self.folder / "hub/model.safetensors.index.json").write_text(json.dumps(index))
            self.refuse("an index may only name files of its own folder|no \"weight_map\"", "list", "hub")
        (self.folder / "empty").mkdir()
        self.refuse("'empty' has none of weights.safetensors, ", "list", "empty")
        self.refuse("'none' cannot be read: No such file", "list", "none")

    def test_damaged_files(self):
        good = safetensors([("x", "F32", [2], floats(1, 2))])
        header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        for content in (b"", good[:5], good[:20], good[:-1], struct.pack("<Q", 1 << 62) + good[8:], struct.pack("<Q", 2) + b"[]",
                        good.replace(b"[2]", b"[3]"), good.replace(b"[2]", b"[-2]"), good.replace(b"[2]", b"2.0"), good.replace(b'"shape"', b'"shap"'),
                        good + b"\0", safetensors([("x", "F32", [1], floats(1))])[:-4] + floats(1, 2),
                        good.replace(b'"x"', b'"\\ud800"').replace(struct.pack("<Q", len(header)), struct.pack("<Q", len(header) + 5)),
                        struct.pack("<Q", 2 * len(header)) + header[:-1] + b"," + header[1:] + b" " + bytes(8), struct.pack("<Q", 4000) + b"[" * 4000):
            (self.folder / "bad.safetensors").write_bytes(content)
            self.refuse("'bad.safetensors'.*the file is damaged or not a safetensors file", "list", "bad.safetensors")
        (self.folder / "bad.safetensors").write_bytes(good.replace(b"F32", b"C64"))
        self.refuse('dtype "C64", which is not one of F64, ', "list", "bad.safetensors")
        (self.folder / "bad.safetensors").write_bytes(good.replace(b'"F32"', b"[   ]"))
        self.refuse(r"dtype \[\], which is not one of F64, ", "list", "bad.safetensors")

    def test_a_file_of_pytorch(self):
        tied = WrittenTensor("0", 0, (2, 2), (2, 1))
        table = collections.OrderedDict(w=tied, tied=tied, transposed=WrittenTensor("0", 0, (2, 2), (1, 2)), row=WrittenTensor("0", 2, (2,), (1,)),
                                        n=WrittenTensor("1", 0, (), (), "LongStorage"))
        torch_file(self.folder / "a.pt", table, {"0": floats(1, 2, 3, 4), "1": struct.pack("<q", 7)})
        self.ask("convert", "a.pt", "b.safetensors")
        self.assertEqual(read_back(self.folder / "b.safetensors")[0],
                         {"n": ("I64", [], struct.pack("<q", 7)), "w": ("F32", [2, 2], floats(1, 2, 3, 4)), "tied": ("F32", [2, 2], floats(1, 2, 3, 4)),
                          "transposed": ("F32", [2, 2], floats(1, 3, 2, 4)), "row": ("F32", [2], floats(3, 4))})

    def test_names_that_a_file_cannot_have(self):
        self.write("a.safetensors", [("w", "F32", [1], floats(1))])
        self.refuse('a tensor may not be called "__metadata__"', "convert", "a.safetensors", "b.safetensors", "--rename", "w=__metadata__")
        (self.folder / "link.safetensors").symlink_to("a.safetensors")
        self.refuse("'link.safetensors' is a link; name the file itself", "convert", "a.safetensors", "link.safetensors", "--replace")

    def test_a_table_below_a_key(self):
        torch_file(self.folder / "a.pt", {"epoch": 3, "model": {"w": WrittenTensor("0", 0, (1,), (1,))}}, {"0": floats(1)})
        self.refuse(r"holds other things than tensors \('epoch', 'model'\); name the table of the weights with --key, such as --key model", "list", "a.pt")
        self.assertIn("w  F32[1]", self.ask("list", "a.pt", "--key", "model"))
        self.refuse("has no 'net'; it has 'epoch', 'model'", "list", "a.pt", "--key", "net")
        self.write("a.safetensors", [])
        self.refuse("--key has no effect on 'a.safetensors'", "list", "a.safetensors", "--key", "model")

    def test_no_code_of_a_file_is_run(self):
        class Bomb:
            def __reduce__(self):
                return os.mkdir, (str(bomb),)

        bomb = self.folder / "burst"
        torch_file(self.folder / "a.pt", {"w": Bomb()}, {})
        self.refuse("'a.pt' contains an object of posix.mkdir, which would have to run code of that module", "list", "a.pt")
        self.assertFalse(bomb.exists())

    def test_damaged_files_of_pytorch(self):
        good = {"w": WrittenTensor("0", 0, (2,), (1,))}
        for thing, storages, says in ((good, {}, "is damaged"), (good, {"0": floats(1)}, "more elements than its storage"),
                                      ({"w": WrittenTensor("0", 1, (2,), (1,))}, {"0": floats(1, 2)}, "reaches beyond the end of its storage"),
                                      ({"w": WrittenTensor("0", 0, (1 << 40,), (0,))}, {"0": floats(1)}, "more elements than its storage"),
                                      ({"w": WrittenTensor("0", -1, (1,), (1,))}, {"0": floats(1)}, "is damaged"), (3, {}, "holds no table of tensors")):
            torch_file(self.folder / "a.pt", thing, storages)
            self.refuse(says, "diff", "a.pt", "a.pt") if storages else self.refuse(says, "list", "a.pt")
        torch_file(self.folder / "a.pt", {"w": WrittenTensor("0", 0, (1 << 40, 0), (0, 1))}, {"0": b""})
        self.ask("convert", "a.pt", "empty.safetensors")
        torch_file(self.folder / "a.pt", good, {"0": floats(1, 2)})
        content = bytearray((self.folder / "a.pt").read_bytes())
        content[content.index(floats(1, 2))] ^= 1
        (self.folder / "a.pt").write_bytes(content)
        self.refuse("'a.pt' is damaged: Bad CRC-32", "diff", "a.pt", "a.pt")
        torch_file(self.folder / "a.pt", {"w": WrittenTensor("0", 0, (1,), (1,), "ComplexFloatStorage")}, {"0": bytes(8)})
        self.refuse("has a tensor of a kind that is not read", "list", "a.pt")
        torch_file(self.folder / "a.pt", {3: WrittenTensor("0", 0, (1,), (1,))}, {"0": floats(1)})
        self.refuse("has a table whose names are not texts", "list", "a.pt")
        torch_file(self.folder / "a.pt", good, {"0": floats(1, 2)}, zipfile.ZIP_DEFLATED)
        self.refuse("its values are compressed", "list", "a.pt")
        (self.folder / "a.pt").write_bytes(pickle.dumps({}))
        self.refuse("is no file of torch.save\\(\\) in the format of PyTorch 1.6", "list", "a.pt")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no PyTorch")
    def test_what_pytorch_writes(self):
        program = """import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).to(torch.bfloat16)
torch.save(model.state_dict(), 'a.pt')
open('values', 'wb').write(model[0].weight.detach().view(torch.int16).numpy().tobytes())"""
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, check=True)
        self.assertIn("1.num_batches_tracked  I64[]", self.ask("list", "a.pt"))
        self.ask("convert", "a.pt", "b.safetensors")
        self.assertEqual(read_back(self.folder / "b.safetensors")[0]["0.weight"], ("BF16", [4, 3, 3, 3], (self.folder / "values").read_bytes()))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
