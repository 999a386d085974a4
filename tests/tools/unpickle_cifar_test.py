#!/usr/bin/env python3
"""Tests tools/unpickle_cifar: what it writes, and what it refuses.

usage: unpickle_cifar_test.py ROOT
"""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
PIXELS = 3072


def stand_in(module, name):
    """Returns a function that a pickle finds under this name of numpy, which need not be installed."""
    sys.modules.setdefault(module, types.ModuleType(module))

    def function(*_arguments):
        raise AssertionError("only its name is used")

    function.__module__, function.__name__, function.__qualname__ = module, name, name
    setattr(sys.modules[module], name, function)
    return function


RECONSTRUCT, NDARRAY, DTYPE = (stand_in(*place) for place in (("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")))


class Dtype:
    def __reduce__(self):
        return DTYPE, ("u1", False, True), (3, "|", None, None, None, -1, -1, 0)


class Images:
    """Pickles as an array of numpy."""

    def __init__(self, rows, is_fortran=False, columns=PIXELS):
        self.state = (1, (len(rows), columns), Dtype(), is_fortran, bytes(column for row in rows for column in row))
        if is_fortran:
            self.state = (*self.state[:4], bytes(row[i] for i in range(columns) for row in rows))

    def __reduce__(self):
        return RECONSTRUCT, (NDARRAY, (0,), b"b"), self.state


class Caller:
    def __reduce__(self):
        return os.system, ("touch called",)


def image(value):
    return bytes((value + i) % 256 for i in range(PIXELS))


class UnpickleCifar(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, table):
        (self.folder / name).write_bytes(pickle.dumps(table, protocol=2))

    def run_tool(self, status=0):
        done = subprocess.run([ROOT / "tools/unpickle_cifar", ".", "out"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def read(self, name):
        return (self.folder / "out" / name).read_bytes()

    def write_ten(self):
        self.write("batches.meta", {"label_names": ["plane", "car"], "num_vis": PIXELS})
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            self.write(name, {b"labels": [1, 0], b"data": Images([image(3), image(7)], is_fortran=name == "test_batch")})

    def test_cifar_10(self):
        self.write_ten()
        self.run_tool()
        self.assertEqual(self.read("batches.meta.txt"), b"plane\ncar\n")
        for name in ("data_batch_5.bin", "test_batch.bin"):
            self.assertEqual(self.read(name), b"\1" + image(3) + b"\0" + image(7))

    def test_cifar_100(self):
        self.write("meta", {"fine_label_names": ["rose"], "coarse_label_names": ["flowers"]})
        for name in ("train", "test"):
            self.write(name, {"fine_labels": [9], "coarse_labels": [4], "data": Images([image(1)])})
        self.run_tool()
        self.assertEqual(self.read("train.bin"), b"\4\11" + image(1))
        self.assertEqual(self.read("coarse_label_names.txt"), b"flowers\n")

    def test_a_file_that_does_not_fit(self):
        """No file can grow beyond the limit, as on a full disk. What was begun is removed."""
        self.write_ten()
        done = subprocess.run(["prlimit", "--fsize=4000", ROOT / "tools/unpickle_cifar", ".", "out"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "unpickle_cifar: cannot write 'out/data_batch_1.bin': File too large; free space or name another place\n"))
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["batches.meta.txt"])

    def test_refusals(self):
        sentence = "has neither a file data_batch_1 (CIFAR-10) nor a file train (CIFAR-100)"
        self.assertIn(sentence, self.run_tool(2))
        (self.folder / "train").mkdir()
        self.assertIn(sentence, self.run_tool(2))
        (self.folder / "train").rmdir()
        self.write_ten()
        for table, sentence in ((Caller(), "it contains an object of posix.system, which CIFAR does not"),
                                ([1], "has no dictionary"),
                                ({"labels": [1]}, "has no 'data'"),
                                ({"labels": [300], "data": Images([image(1)])}, "no list of numbers from 0 to 255"),
                                ({"labels": [1, 2], "data": Images([image(1)])}, "another number of labels"),
                                ({"labels": [1], "data": Images([b"ab"], columns=2)}, "has no images of CIFAR"),
                                ({"labels": [1], "data": "text"}, "has no images of CIFAR")):
            self.write("data_batch_3", table)
            self.assertIn(sentence, self.run_tool(2))
        self.assertFalse((self.folder / "called").exists())
        (self.folder / "data_batch_3").write_bytes(b"\x80\x02}")
        self.assertIn("'data_batch_3' is no file of CIFAR", self.run_tool(2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
