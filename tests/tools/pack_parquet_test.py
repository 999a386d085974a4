#!/usr/bin/env python3
"""Tests tools/pack_parquet: its shards are those of tools/pack for the same table, and what it refuses.

usage: pack_parquet_test.py ROOT [BUILD]
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else ROOT / "build"
HAS_ARROW = all(importlib.util.find_spec(name) for name in ("pyarrow", "numpy"))
ROWS = {"id": ["n1", "n2", "n3", "n4"], "colour": ["red", "dark blue", "red", "10"], "x": [1, 2, 3, 6], "z": [0.5, 1.25, -2.0, 8.0],
        "kind": ["b", "a", "b", "a"]}
WORDS = ("--categories", "colour", "--ignore", "id")


class PackParquet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, **columns):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({**ROWS, **columns}), self.folder / name, row_group_size=3)

    def run_tool(self, *words, status=0, largest_file=None, **variables):
        """`largest_file`: bytes beyond which no file can grow, as on a full disk."""
        limit = [] if largest_file is None else ["prlimit", f"--fsize={largest_file}"]
        done = subprocess.run([*limit, sys.executable, ROOT / "tools/pack_parquet", *words], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | variables)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def pack_csv(self, out, model, keys):
        lines = [",".join(ROWS), *(",".join(map(str, row)) for row in zip(*ROWS.values()))]
        (self.folder / "t.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "t.yaml").write_text(f"model: {model}\ndata: {{format: csv, path: t.csv, {keys}}}\n")
        subprocess.run([BUILD / "tools/pack", "t.yaml", out], cwd=self.folder, check=True, capture_output=True)

    def shards(self, name):
        return {path.name: path.read_bytes() for path in (self.folder / name).glob("*.shard")}

    def records(self, name):
        """Returns the records of an index, and its header without blanks."""
        index = (self.folder / name / "train.index").read_bytes()
        end = 16 + int.from_bytes(index[12:16], "little")
        return index[end:-4], json.loads(index[16:end])

    @unittest.skipUnless(HAS_ARROW, "this Python has no pyarrow")
    def test_shards_are_those_of_the_same_table_as_csv(self):
        self.write("t.parquet")
        self.assertIn("train.index: 4 samples, 1 shards, 80 bytes", self.run_tool("t.parquet", "out", "--label", "kind", *WORDS))
        self.pack_csv("plain", "{}", "label: kind, categories: [colour], ignore: [id]")
        self.assertEqual(self.shards("out"), self.shards("plain"))
        self.assertEqual(self.records("out"), self.records("plain"))
        self.run_tool("t.parquet", "rows", "--targets", "z", "x", "--ignore", "id", "kind", "--categories", "colour")
        self.pack_csv("plain_rows", "{task: regression}", "targets: [z, x], categories: [colour], ignore: [id, kind]")
        self.assertEqual(self.shards("rows"), self.shards("plain_rows"))
        self.assertEqual(self.records("rows"), self.records("plain_rows"))

    @unittest.skipUnless(HAS_ARROW, "this Python has no pyarrow")
    def test_missing_cells_and_validation_rows(self):
        self.write("t.parquet", z=[None, 1.0, 2.0, 3.0])
        words = ("t.parquet", "out", "--label", "kind", *WORDS)
        self.assertIn("'t.parquet' row 1 lacks 'z'; fill it in", self.run_tool(*words, status=2))
        self.assertFalse((self.folder / "out").exists())
        self.write("val.parquet", colour=["red"] * 4)
        said = self.run_tool(*words, "--drop-missing", "--validation", "val.parquet")
        self.assertIn("train.index: 3 samples", said)
        self.assertIn("val.index: 4 samples", said)
        self.assertIn("train.index' is there already", self.run_tool(*words, "--drop-missing", status=2))

    @unittest.skipUnless(HAS_ARROW, "this Python has no pyarrow")
    def test_a_full_disk_leaves_no_index_of_training_rows(self):
        self.write("t.parquet")
        self.write("val.parquet", id=["n1"] * 4)
        words = ("t.parquet", "out", "--label", "kind", *WORDS, "--validation", "val.parquet")
        self.run_tool(*words)
        whole = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertEqual(sorted(whole), ["train-00000.shard", "train.index", "val-00000.shard", "val.index"])
        shutil.rmtree(self.folder / "out")
        for bytes_ in (10, 150):  # the first shard does not fit, or the first index
            self.assertRegex(self.run_tool(*words, status=2, largest_file=bytes_, PYTHONDONTWRITEBYTECODE="1"),
                             r"\Apack_parquet: cannot write 'out/val\S*': File too large; free space or name another place\n\Z")
            self.assertFalse(list((self.folder / "out").glob("*.index")))
        (self.folder / "out/val.index").write_bytes(b"of a run that was killed")
        self.run_tool(*words)
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}, whole)

    @unittest.skipUnless(HAS_ARROW, "this Python has no pyarrow")
    def test_refusals(self):
        self.write("t.parquet", x=[1, 2, 3, 2**53 + 1])
        (self.folder / "text").write_text("x,y\n1,2\n")
        whole = (self.folder / "t.parquet").read_bytes()
        (self.folder / "cut").write_bytes(whole[:-20])
        label = ("--label", "kind")
        for words, sentence in ((("none", "out", *label), "'none' cannot be read"),
                                (("text", "out", *label), "'text' is no Parquet file"),
                                (("cut", "out", *label), "'cut' is no Parquet file"),
                                (("t.parquet", "out", "--label", "species"), "has no column 'species'; the columns are: id, colour"),
                                (("t.parquet", "out", *label), "has the column 'id' of string and no numbers; name it in --categories"),
                                (("t.parquet", "out", "--label", "z", "--ignore", "id"), "has the column"),
                                (("t.parquet", "out", *label, *WORDS), "has numbers in 'x' that float64 rounds"),
                                (("t.parquet", "out", *label, *WORDS, "kind"), "the column 'kind' is named twice"),
                                (("t.parquet", "out", *label, *WORDS, "--shard-mib", "0"), "--shard-mib is 0")):
            self.assertIn(sentence, self.run_tool(*words, status=2))
        self.write("val.parquet", colour=["red", "green", "red", "red"])
        self.write("t.parquet")
        self.assertIn("row 2 has 'green' in 'colour', which the training table has not",
                      self.run_tool("t.parquet", "out", *label, *WORDS, "--validation", "val.parquet", status=2))
        self.assertFalse((self.folder / "out").exists())

    @unittest.skipUnless(HAS_ARROW, "this Python has no pyarrow")
    def test_whole_numbers_are_rounded_as_other_numbers_are(self):
        words = ("t.parquet", "out", "--label", "kind", *WORDS)
        for numbers in ([1, 2, 3, 2**24 + 1], [2**24 + 1] * 4, [2**30, 2**30 + 1, 2**30 + 3, 2**30 + 50_000]):
            self.write("t.parquet", x=numbers)
            self.run_tool(*words)
            shutil.rmtree(self.folder / "out")
        for numbers, precision in (([2**30 + i for i in range(4)], "float32"), ([1, 2, 3, 2**53], "float64"), ([-2**53 - 1, 0, 0, 0], "float64")):
            self.write("t.parquet", x=numbers)
            self.assertIn(f"has numbers in 'x' that {precision} rounds", self.run_tool(*words, status=2))
        for number in (1e-46, 1e39):
            self.write("t.parquet", z=[0.5, 1.25, number, 8.0])
            self.assertIn("row 3 has a number in 'z' that float32 does not hold", self.run_tool(*words, status=2))

    def test_a_python_without_pyarrow_is_told_what_it_lacks(self):
        done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); sys.argv[:] = "
                               f"[{str(ROOT / 'tools/pack_parquet')!r}, 't', 'out', '--label', 'x']; exec(open(sys.argv[0]).read())"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("has no pyarrow and no numpy; --help says how to make one that has", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
