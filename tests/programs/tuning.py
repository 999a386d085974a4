"""Tests the kernels and the exchanges of gradients that programs measure, and the files in which they keep
the results."""

import os
import re
import shutil
import unittest

import support
from support import SOURCE, ProgramTest


class MeasuringTest(ProgramTest):
    def setUp(self):
        super().setUp()
        old = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(old)))
        os.environ.pop("PLEXAURA_TUNING")
        self.times = self.folder / "cache/plexaura/kernel_times"


class Tuning(MeasuringTest):
    """A net in which a value changes its layout, for which there are two kernels."""

    def train(self, *settings, ranks=1):
        return self.run_ranks(ranks, "convnet", *self.cnn("training.epochs=1", *settings)).out

    @unittest.skipUnless(support.HAS_ONEDNN, "one kernel for everything")
    def test_times_are_measured_once_and_kept(self):
        self.assertIn("measured the kernels", self.train())
        first = self.times.read_bytes()
        kept = self.weight_bytes("run")
        self.assertNotIn("measured the kernels", self.train())
        self.assertEqual(self.times.read_bytes(), first)
        self.assertEqual(self.weight_bytes("run"), kept)
        self.assertIn("measured the kernels", self.train("training.tuning=measure"))

    @unittest.skipUnless(support.HAS_ONEDNN, "one kernel for everything")
    def test_what_is_wrong_with_the_file_is_said(self):
        self.train()
        self.times.write_text("nonsense")
        said = self.train()
        self.assertIn(f"the times of kernels in '{self.times}' are damaged", said)
        self.assertIn("measured the kernels", said)
        self.times.unlink()
        self.times.mkdir()
        said = self.train()
        self.assertIn("the times of kernels are measured again: ", said)
        self.assertIn("the times of kernels are not kept: ", said)

    def test_off_measures_nothing(self):
        self.assertNotIn("the kernels of", self.train("training.tuning=off"))
        os.environ["PLEXAURA_TUNING"] = "off"
        self.assertNotIn("the kernels of", self.train())
        self.assertFalse(self.times.exists())

    @unittest.skipUnless(support.HAS_ONEDNN, "one kernel for everything")
    def test_one_line_says_what_was_measured(self):
        said = self.train()
        line = next(line for line in said.splitlines() if "the kernels of" in line)
        self.assertRegex(line, rf"^measured the kernels of \d+ regions in \d+\.\d s; their times are kept in '{self.times}'$")
        self.assertRegex(self.train(), r"chose the kernels of \d+ regions by times that were measured before")

    @unittest.skipUnless(support.HAS_ONEDNN, "one kernel for everything")
    def test_a_dry_run_makes_the_choice_of_the_run(self):
        arguments = self.cnn("training.epochs=1")
        plan = self.run_one("convnet", *arguments, "--dry-run", "--program").out
        self.assertIn("measured the kernels of", plan)
        self.assertNotIn("measured the kernels of", self.train())
        later = self.run_one("convnet", *arguments, "--dry-run", "--program").out
        program = lambda text: text[text.index("program  "):]
        self.assertEqual(program(plan), program(later))

    @unittest.skipUnless(support.HAS_ONEDNN, "one kernel for everything")
    def test_ranks_take_the_times_of_rank_0(self):
        said = self.train("training.tuning=measure", ranks=2)
        self.assertIn("2 ranks", said)
        self.assertIn("measured the kernels", said)
        kept = self.weight_bytes("run")
        self.assertNotIn("measured the kernels", self.train(ranks=2))
        self.assertEqual(self.weight_bytes("run"), kept)

    def check_resumed(self, ranks, *settings):
        """Stops within an epoch, removes the cache, resumes, and compares with an undisturbed run."""
        arguments = self.cnn("training.epochs=3", *settings)
        output = lambda name: self.settings(f"output.dir={name}")
        self.run_ranks(ranks, "convnet", *arguments, *output("whole"))
        self.run_ranks(ranks, "convnet", *arguments, *output("parts"), "--steps", 7)
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        said = self.run_ranks(ranks, "convnet", *arguments, *output("parts"), "--resume").out
        self.assertNotIn("measured the kernels", said)
        self.assertNotIn("took other kernels", said)
        for name in ("weights.safetensors", "state.safetensors"):
            self.assertEqual((self.checkpoint("whole") / name).read_bytes(), (self.checkpoint("parts") / name).read_bytes(), name)

    def test_a_resumed_run_takes_the_kernels_of_its_checkpoint(self):
        self.check_resumed(1)

    def test_and_so_it_does_on_two_ranks(self):
        self.check_resumed(2, "training.micro_batches=2")

    def test_a_resumed_run_that_takes_other_kernels_says_so(self):
        arguments = self.cnn("training.epochs=2")
        self.run_one("convnet", *arguments, "--steps", 3)
        state = self.checkpoint("run") / "state.safetensors"
        data = state.read_bytes()
        other = re.sub(rb'"kernels":"[0-9a-f]{16}"', b'"kernels":"' + b"0" * 16 + b'"', data)
        self.assertNotEqual(other, data)
        state.write_bytes(other)
        self.assertIn("the run that wrote this checkpoint took other kernels", self.run_one("convnet", *arguments, "--resume").out)
        state = self.checkpoint("run") / "state.safetensors"
        state.write_bytes(re.sub(rb'"kernels"(:"[0-9a-f]{16}")', rb'"unknown"\1', state.read_bytes()))
        said = self.run_one("convnet", *arguments, "--resume").out
        self.assertIn("resumed", said)
        self.assertNotIn("took other kernels", said)

    def test_another_size_of_a_bucket_is_named(self):
        for more, changes_bits in ((), False), (("training.optimizer.max_gradient_norm=1",), True):
            arguments = self.cnn("training.epochs=2", *more)
            self.run_one("convnet", *arguments, "--steps", 3)
            said = self.run_one("convnet", *arguments, *self.settings("distributed.bucket_bytes=1"), "--resume").out
            (self.assertIn if changes_bits else self.assertNotIn)("the run that wrote this checkpoint had another distributed.bucket_bytes, which cuts updates into other pieces, or took other kernels", said)
            shutil.rmtree(self.folder / "run")

    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_another_size_of_a_bucket_is_not_named_behind_a_server_that_keeps_the_bits(self):
        arguments = self.cnn("training.epochs=2", "distributed.strategy=send-recv")
        self.run_ranks(3, "convnet", *arguments, "--steps", 3)
        said = self.run_ranks(3, "convnet", *arguments, *self.settings("distributed.bucket_bytes=65536"), "--resume").out
        self.assertIn("resumed", said)
        self.assertNotIn("had another distributed.bucket_bytes", said)

    def test_a_wrong_word(self):
        result = self.run_one("convnet", *self.cnn("training.tuning=always"), status=2)
        self.assertIn("training.tuning", result.err)
        os.environ["PLEXAURA_TUNING"] = "always"
        result = self.run_one("convnet", *self.cnn(), status=2)
        self.assertIn("the variable PLEXAURA_TUNING is 'always'; it must be cached, measure or off", result.err)


@unittest.skipUnless(support.HAS_MPI, "built without MPI")
class Exchange(MeasuringTest):
    """The net of models/mnist_cnn.yaml, which has 2.8 MB of gradients, on images of its size."""

    def setUp(self):
        super().setUp()
        self.kept = self.folder / "cache/plexaura/exchanges"
        support.write_idx(self.folder / "digits", "train", 64, size=28)
        support.write_idx(self.folder / "digits", "t10k", 8, size=28)

    def train(self, *settings, more=()):
        settings = self.settings("data.path=digits", "data.classes=3", "training.batch_size=8", "training.epochs=1", *settings)
        return self.run_ranks(2, "convnet", SOURCE / "models/mnist_cnn.yaml", *settings, *more).out

    def take(self, way):
        """Changes the file as if this way had been measured to be the fastest."""
        title, line = self.kept.read_text().splitlines()
        self.kept.write_text(f"{title}\n{line.split()[0]} {way}\n")

    def test_buckets_are_measured_once_and_kept(self):
        """The choice does not change any bits, neither of a whole run nor of one that is resumed with another
        choice."""
        said = self.train("output.dir=run", "distributed.overlap=on", more=("--log", "log"))
        self.assertRegex(said, rf"(?m)^gradients cross in buckets of [0-9.]+ .B by (window|tree), as measured in [0-9.]+ s; this is kept in '{self.kept}'$")
        line = self.log("log")[0]
        self.assertEqual((line["event"], line["measured"]), ("exchange", True))
        self.take("131072 tree")
        said = self.train("output.dir=small", "distributed.overlap=on", more=("--log", "small.log"))
        self.assertIn("gradients cross in buckets of 131.1 kB by tree, as measured before\n", said)
        self.assertEqual(self.log("small.log")[0], {"event": "exchange", "algorithm": "tree", "bucket_bytes": 131072, "measured": False})
        self.assertEqual(self.weight_bytes("small"), self.weight_bytes("run"))
        self.train("output.dir=parts", "distributed.overlap=on", more=("--steps", 3))
        self.take("524288 auto")
        said = self.train("output.dir=parts", "distributed.overlap=on", more=("--resume",))
        self.assertIn("gradients cross in buckets of 524.3 kB by window, as measured before\n", said)
        self.assertEqual(self.weight_bytes("parts"), self.weight_bytes("run"))

    def test_a_damaged_file_is_no_error(self):
        self.train("output.dir=")
        self.kept.write_text("nonsense")
        self.assertIn("as measured in", self.train("output.dir="))
        self.kept.unlink()
        self.kept.mkdir()
        self.assertRegex(self.train("output.dir="), "as measured in .* s; it is not kept: ")

    def test_nothing_is_measured_where_nobody_asks(self):
        for settings in (["training.tuning=off"], ["distributed.bucket_bytes=1000000", "distributed.algorithm=window"], ["distributed.algorithm=window", "distributed.overlap=off"]):
            self.assertNotIn("gradients cross", self.train("output.dir=", *settings))
        self.assertNotIn("gradients cross", self.run_ranks(2, "mlp", *self.iris("training.epochs=1")).out)
        self.assertFalse(self.kept.exists())


class Precision(ProgramTest):
    """training.precision: auto. Which precision is faster depends on the processor."""

    AUTO = "training.precision=auto"

    def test_it_trains_as_with_the_precision_that_it_names(self):
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            said = self.run_ranks(ranks, "convnet", *self.cnn(self.AUTO, "output.dir=auto"), "--log", "log").out
            taken = re.search(r"^training.precision is auto and takes (float32|bfloat16); (\d+) samples take \S+ \S+ in float32 and \S+ \S+ in bfloat16$",
                              said, re.MULTILINE)
            self.assertTrue(taken, said)
            self.assertEqual(int(taken[2]), 10 // ranks)
            event = next(line for line in self.log("log") if line.get("event") == "precision")
            self.assertEqual(event["precision"], "bfloat16" if event["bfloat16_seconds"] <= 0.95 * event["float32_seconds"] else "float32")
            self.assertEqual(event["precision"], taken[1])
            self.run_ranks(ranks, "convnet", *self.cnn(f"training.precision={taken[1]}", "output.dir=named"))
            self.assertEqual(self.weight_bytes("auto"), self.weight_bytes("named"))
            shutil.rmtree(self.folder / "auto")
            shutil.rmtree(self.folder / "named")

    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_a_rank_that_did_not_measure_reports(self):
        """Rank 0 serves, and rank 1 reports."""
        said = self.run_ranks(3, "convnet", *self.cnn(self.AUTO, "output.dir=", "distributed.strategy=async-server"), "--log", "log").out
        self.assertRegex(said, "(?m)^training.precision is auto and takes (float32|bfloat16); 4 samples take ")
        event = next(line for line in self.log("log") if line.get("event") == "precision")
        self.assertGreater(min(event["float32_seconds"], event["bfloat16_seconds"]), 0)

    def test_a_resumed_run_keeps_it(self):
        for taken in ("float32", "bfloat16"):
            named = self.cnn(f"training.precision={taken}", f"output.dir={taken}")
            self.run_ranks(1, "convnet", *named, "--steps", 3)
            said = self.run_ranks(1, "convnet", *self.cnn(self.AUTO, f"output.dir={taken}"), "--resume", "--log", f"{taken}.log").out
            self.assertIn(f"training.precision is auto and continues with {taken}, as in the checkpoint\n", said)
            self.assertIn({"event": "precision", "precision": taken}, self.log(f"{taken}.log"))
            self.run_ranks(1, "convnet", *self.cnn(f"training.precision={taken}", "output.dir=whole"), "--replace")
            self.assertEqual(self.weight_bytes(taken), self.weight_bytes("whole"))

    def least_memory(self, precision):
        """Returns the bytes that a step needs at least, from the error of a run that may have one byte."""
        refused = self.run_one("convnet", *self.cnn(precision, "output.dir=", "training.memory=1"), status=2)
        return int(re.search(r"training.memory is 1 bytes, and a step .* needs at least (\d+) bytes", refused.err)[1])

    def test_a_limit_of_memory_that_one_precision_meets(self):
        """Where none fits, the error is that of the run."""
        self.assertGreater(self.least_memory(self.AUTO), 1)
        least = {precision: self.least_memory(f"training.precision={precision}") for precision in ("float32", "bfloat16")}
        fits = min(least, key=least.get)
        exceeds = max(least, key=least.get)
        self.assertNotEqual(fits, exceeds)
        said = self.run_one("convnet", *self.cnn(self.AUTO, "output.dir=", f"training.memory={least[exceeds] - 1}"), "--log", "log").out
        self.assertRegex(said, rf"(?m)^training.precision is auto and takes {fits}; 10 samples need more than training.memory in {exceeds}$")
        event = next(line for line in self.log("log") if line.get("event") == "precision")
        self.assertIsNone(event[f"{exceeds}_seconds"])
        self.assertGreater(event[f"{fits}_seconds"], 0)

    def test_a_checkpoint_in_float64(self):
        self.run_ranks(1, "convnet", *self.cnn("training.precision=float64", "output.dir=wide"), "--steps", 2)
        refused = self.run_one("convnet", *self.cnn(self.AUTO, "output.dir=wide"), "--resume", status=2)
        self.assertIn("was trained in float64, which training.precision: auto does not choose; set training.precision to float64", refused.err)

    def test_what_measures_nothing(self):
        self.assertIn("training.precision is auto; --dry-run measures nothing and shows float32\n",
                      self.run_ranks(1, "convnet", *self.cnn(self.AUTO), "--dry-run").out)
        refused = self.run_one("mlp", *self.iris(self.AUTO, "distributed.strategy=async-server"), "--serve", "127.0.0.1:0", status=2)
        self.assertIn("training.precision is 'auto', and with --serve the server and its clients must have the same one; give float32 or bfloat16",
                      refused.err)


if __name__ == "__main__":
    support.main()
