"""Kernels that programs measure, and the times that they keep."""

import os
import unittest

import support
from support import ProgramTest


class Tuning(ProgramTest):
    """A net in which a value is brought into another layout: there are two kernels for that."""

    def setUp(self):
        super().setUp()
        old = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(old)))
        os.environ["PLEXAURA_TUNING"] = "cached"
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.times = self.folder / "cache/plexaura/kernel_times"

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
        self.assertIn("the times of kernels are measured anew: ", said)
        self.assertIn("the times of kernels are not kept: ", said)

    def test_off_measures_nothing(self):
        self.assertNotIn("measured the kernels", self.train("training.tuning=off"))
        os.environ.pop("PLEXAURA_TUNING")
        self.assertNotIn("measured the kernels", self.train())
        self.assertFalse(self.times.exists())

    def test_ranks_take_the_times_of_rank_0(self):
        self.assertIn("2 ranks", self.train("training.tuning=measure", ranks=2))

    def test_a_wrong_word(self):
        result = self.run_one("convnet", *self.cnn("training.tuning=always"), status=2)
        self.assertIn("training.tuning", result.err)
        os.environ["PLEXAURA_TUNING"] = "always"
        result = self.run_one("convnet", *self.cnn(), status=2)
        self.assertIn("the variable PLEXAURA_TUNING is 'always'; it must be cached, measure or off", result.err)


if __name__ == "__main__":
    support.main()
