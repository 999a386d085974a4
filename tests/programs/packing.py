"""Tests packed shards and arrays: tools/pack, and training on what it writes.

PLEXAURA_FAULT_SEEDS=20 packing.py BUILD_FOLDER    20 kills of a run, instead of two
"""

import random
import signal
import struct
import subprocess
import time
import unittest

import support
from support import BUILD, SOURCE, ProgramTest

YAML = """
model:
  name: convnet
  layers: [{type: conv, channels: 4, kernel: 3}, {type: relu}, {type: flatten}, {type: linear}]
data: {format: image_folder, path: images, image_size: 16}
training: {batch_size: 4, epochs: 2, seed: 5, optimizer: {name: adam, learning_rate: 0.01}}
output: {dir: run}
"""
ARRAYS = """
model: {name: mlp, hidden: [8]}
data: {format: npy, path: .}
training: {batch_size: 4, epochs: 20, optimizer: {name: adam, learning_rate: 0.05}}
output: {dir: arrays}
"""
CACHE = (BUILD / "CMakeCache.txt").read_text()
HAS_HDF5 = all(line in CACHE for line in ("\nPLEXAURA_HDF5:BOOL=ON\n", "\nHDF5_SERIAL_INCLUDE_DIR:PATH=/", "\nHDF5_SERIAL_LIBRARY:FILEPATH=/"))
PACKED = ("data.format=shards", "data.path=packed")


class Packing(ProgramTest):
    def setUp(self):
        super().setUp()
        support.draw_images(self.folder / "images")
        self.write("net.yaml", YAML)

    def pack(self, *arguments, status=0):
        done = subprocess.run([BUILD / "tools/pack", "net.yaml", *arguments], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def train(self, output, *settings, ranks=1, words=()):
        return self.run_ranks(ranks, "convnet", "net.yaml", *self.settings(f"output.dir={output}", *settings), "--log", f"{output}.log", *words)

    def losses(self, output):
        return [(line.get("loss"), line.get("val_loss")) for line in self.log(f"{output}.log")]

    def test_shards_train_like_the_folder(self):
        self.pack("packed", "--shard-mib", "1")
        self.train("folder")
        self.train("shards", *PACKED, "data.workers=3")
        self.assertEqual(self.losses("shards"), self.losses("folder"))
        self.assertEqual(self.weights("shards"), self.weights("folder"))
        self.train("none", *PACKED, "data.workers=0")
        self.assertEqual(self.losses("none"), self.losses("folder"))

    def test_a_run_goes_on_within_an_epoch_with_other_workers_and_ranks(self):
        self.pack("packed")
        exact = ("training.precision=float64",)
        self.train("whole", *PACKED, *exact)
        self.train("parts", *PACKED, *exact, "data.workers=0", words=("--steps", 3))
        self.train("parts", *PACKED, *exact, "data.workers=2", words=("--resume",))
        self.assertEqual(self.weight_bytes("parts"), self.weight_bytes("whole"))
        self.train("two", *PACKED, *exact, words=("--steps", 3))
        self.train("two", *PACKED, *exact, ranks=2, words=("--resume",))
        self.assertLess(support.difference(self.weights("whole"), self.weights("two")), 1e-10)
        self.train("two_folder", *exact, ranks=2)
        self.train("two_shards", *PACKED, *exact, ranks=2)
        self.assertEqual(self.weights("two_shards"), self.weights("two_folder"))

    def test_images_of_shards_are_mixed_like_those_of_the_folder(self):
        self.pack("packed")
        mix = ("data.mixup_alpha=0.4", "data.cutmix_alpha=0.6", "training.precision=float64")
        self.train("folder", *mix)
        self.train("shards", *PACKED, *mix, "data.workers=3")
        self.assertEqual(self.weights("shards"), self.weights("folder"))
        self.train("two_folder", *mix, ranks=2)
        self.train("two_shards", *PACKED, *mix, ranks=2)
        self.assertEqual(self.weights("two_shards"), self.weights("two_folder"))
        self.assertLess(support.difference(self.weights("two_shards"), self.weights("shards")), 1e-10)

    def test_a_run_that_is_killed_again_and_again_has_the_same_bits(self):
        """Kills a run at random moments, and resumes it with another number of workers each time."""
        self.pack("packed", "--shard-mib", "1")
        endless = ("training.epochs=1000000", "output.every=3")
        for kill in range(support.FAULT_SEEDS):
            with self.case("a kill", f"of a run on shards, {kill}"):
                before = self.steps("killed")
                run = subprocess.Popen(self.command("convnet", "net.yaml", *self.settings("output.dir=killed", *PACKED, *endless, f"data.workers={kill % 4}"),
                                                    *(["--resume"] if before else [])), cwd=self.folder, env=support.environment(),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    self.wait_for(lambda: self.steps("killed") > before or run.poll() is not None)
                    time.sleep(random.Random(kill).uniform(0, 0.1))
                finally:
                    run.kill()
                self.assertEqual(run.wait(), -signal.SIGKILL)
        steps = self.steps("killed") + 4
        self.train("killed", *PACKED, *endless, words=("--resume", "--steps", steps))
        self.train("whole", *PACKED, *endless, words=("--steps", steps))
        self.assertEqual(self.weight_bytes("killed"), self.weight_bytes("whole"))

    def steps(self, output):
        """Returns the number of steps of the newest checkpoint, 0 if there is none."""
        return max((int(path.name.split("-")[1]) for path in (self.folder / output).glob("checkpoint-*")), default=0)

    def test_damaged_shards_end_the_run_with_a_sentence(self):
        self.pack("packed")
        shard = self.folder / "packed/train-00000.shard"
        whole = shard.read_bytes()
        run = ("convnet", "net.yaml", *self.settings(*PACKED))
        for change, sentence in ((whole[:-5], "train-00000.shard: has "),
                                 (whole[:100] + b"x" + whole[101:], "its bytes do not have its checksum"),
                                 (None, "train-00000.shard")):
            shard.unlink(missing_ok=True)
            if change is not None:
                shard.write_bytes(change)
            self.assertIn(sentence, self.run_one(*run, status=2).text)
        self.assertIn("train.index: is there already", self.pack("packed", status=2))
        self.write("file", "")
        self.assertIn("file", self.pack("file/packed", status=2))
        self.assertIn("nowhere", self.pack("none", "--set", "data.path=nowhere", status=2))
        self.assertFalse((self.folder / "none").exists())

    def test_damaged_samples_are_skipped_if_the_file_says_so(self):
        self.pack("packed")
        shard = self.folder / "packed/train-00000.shard"
        whole = shard.read_bytes()
        shard.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        self.assertIn("record 0 (offset 0)", self.train("skipped", *PACKED, "data.on_error=skip").text)

    def test_a_table_trains_as_it_does_unpacked(self):
        self.write("iris.yaml", (SOURCE / "models/iris.yaml").read_text())
        done = subprocess.run([BUILD / "tools/pack", "iris.yaml", "iris", "--set", f"data.path={SOURCE / 'models/iris.csv'}"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.run_one("mlp", *self.iris("output.dir=plain"))
        self.write("shards.yaml", "".join(line for line in (self.folder / "iris.yaml").read_text().splitlines(True) if "label:" not in line))
        self.run_one("mlp", "shards.yaml", *self.settings("data.format=shards", "data.path=iris", "output.dir=packed_run"))
        self.assertEqual(self.weights("packed_run"), self.weights("plain"))

    def test_a_table_with_words_trains_packed_and_on_two_ranks_and_predicts(self):
        rows = [f"n{i},{('red', 'blue', 'dark grey')[i % 3]},{i % 7},{'ab'[i % 3 == 0]}" for i in range(60)]
        self.write("t.csv", "\n".join(["name,colour,x,kind", *rows, ""]))
        keys = "categories: [colour], ignore: [name]"
        text = ("model: {name: mlp, hidden: [4]}\ndata: %s\noutput: {dir: table}\n"
                "training: {batch_size: 8, epochs: 10, precision: float64, optimizer: {name: adam, learning_rate: 0.05}}\n")
        self.write("net.yaml", text % f"{{format: csv, path: t.csv, {keys}}}")
        self.write("shards.yaml", text % "{format: shards, path: words}")
        self.pack("words")
        self.run_one("mlp", "net.yaml")
        self.run_one("mlp", "shards.yaml", *self.settings("output.dir=shards"))
        self.assertEqual(self.weights("shards"), self.weights("table"))
        self.run_one("mlp", "net.yaml", "--evaluate", *self.settings("data.missing=error", "data.validation_share=1"))
        self.run_ranks(2, "mlp", "shards.yaml", *self.settings("output.dir=two"))
        self.assertLess(support.difference(self.weights("two"), self.weights("table")), 1e-10)
        self.run_one("mlp", "net.yaml", "--evaluate", *self.settings("output.dir=shards", "data.validation_share=1"))
        self.write("new.csv", "x,colour\n3,red\n3,\"dark grey\"\n")
        predicted = self.run_one("mlp", "net.yaml", "--predict", "new.csv", *self.settings("output.dir=shards")).text
        self.assertIn("new.csv row 2", predicted)
        self.write("new.csv", "x,colour\n3,green\n")
        self.assertIn("new.csv:2:3: 'green' in colour is none of the words",
                      self.run_one("mlp", "net.yaml", "--predict", "new.csv", *self.settings("output.dir=shards"), status=2).text)

    def test_weights_of_arrays_are_used_on_shards(self):
        self.write_arrays()
        self.write("net.yaml", ARRAYS)
        self.pack("packed")
        self.run_one("mlp", "net.yaml")
        self.run_one("mlp", "net.yaml", "--evaluate", *self.settings(*PACKED, "data.validation_share=1"))

    def write_arrays(self):
        rows = [(i % 7, i % 5) for i in range(60)]
        for name, descr, shape, data in (("x_train", "<i2", "(60, 2)", struct.pack("<120h", *(number for row in rows for number in row))),
                                         ("y_train", "|u1", "(60,)", bytes(a > b for a, b in rows))):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            (self.folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data)

    def test_arrays_train(self):
        self.write_arrays()
        self.write("arrays.yaml", ARRAYS)
        self.assertIn("validation accuracy", self.run_one("mlp", "arrays.yaml").text)
        self.assertIn("--predict reads tables (csv)", self.run_one("mlp", "arrays.yaml", "--predict", "x_train.npy", status=2).text)

    @unittest.skipUnless(HAS_HDF5, "built without HDF5")
    def test_hdf5_trains_like_npy(self):
        self.write_arrays()
        self.write("arrays.yaml", ARRAYS)
        self.run_one("mlp", "arrays.yaml")
        # The file has the arrays of write_arrays(): x in compressed chunks, y at one place.
        self.run_one("mlp", "arrays.yaml", *self.settings("data.format=hdf5", f"data.path={SOURCE / 'tests/programs/arrays.h5'}", "data.samples=train/x",
                                                          "data.labels=train/y", "output.dir=hdf5"))
        self.assertEqual(self.weights("hdf5"), self.weights("arrays"))


if __name__ == "__main__":
    support.main()
