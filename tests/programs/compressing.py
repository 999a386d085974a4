"""Tests distributed.compression: auto. It chooses by measurements and reports the choice, and a resumed run
keeps it."""

import json
import re
import struct
import subprocess
import unittest

import support
from support import SOURCE, ProgramTest

FAKE_HOSTS = SOURCE / "tests/support/fake_hosts.sh"
METHODS = ("none", "fp16", "bf16", "top-k", "powersgd")
TAKES = re.compile(r"distributed.compression is auto and takes (\S+); expected of each step: (.*), with (.*) between hosts")
AUTO = "distributed.compression=auto"


def write_choice(checkpoint, compression):
    """Changes a checkpoint as if its run had chosen this compression."""
    path = checkpoint / "state.safetensors"
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header["__metadata__"]["compression"] = compression
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])


@unittest.skipUnless(support.HAS_MPI, "built without MPI")
class Compressing(ProgramTest):
    def metadata(self, output):
        data = (self.checkpoint(output) / "state.safetensors").read_bytes()
        return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]

    def mnist(self, *settings):
        """The net of models/mnist_cnn.yaml, on images of its size."""
        if not (self.folder / "digits").exists():
            support.write_idx(self.folder / "digits", "train", 64, size=28)
            support.write_idx(self.folder / "digits", "t10k", 8, size=28)
        return [SOURCE / "models/mnist_cnn.yaml", *self.settings("data.path=digits", "data.classes=3", "training.batch_size=8", "training.epochs=1", AUTO, *settings)]

    def over_link(self, rate, program, *arguments):
        """Runs two ranks, each on its own host, over a link with this rate."""
        command = [FAKE_HOSTS, "--rate", rate, "-n", 2, "--within", 120, "--", *self.command(program, *arguments)]
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, timeout=180)
        if done.returncode == 77:
            self.skipTest("no network namespaces here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def choice(self, out):
        """Returns the choice, and the seconds that each method is expected to take."""
        said = [TAKES.fullmatch(line) for line in out.splitlines() if "distributed.compression" in line]
        self.assertEqual(len(said), 1, out)
        self.assertTrue(said[0], out)
        taken, expected, _ = said[0].groups()
        seconds = {}
        for each in expected.split(", "):
            name, number, unit = each.split()
            seconds[name] = float(number) * {"ms": 1e-3, "s": 1}[unit]
        return taken, seconds

    def test_one_host_needs_none(self):
        """A single rank needs no choice, either."""
        result = self.run_ranks(2, "convnet", *self.cnn(AUTO), "--log", "log", "--steps", 2)
        self.assertIn("distributed.compression is auto and takes none; all ranks run on one host\n", result.out)
        self.assertEqual(self.log("log")[0], {"event": "compression", "compression": "none"})
        self.assertEqual(self.metadata("run")["compression"], "none")
        alone = self.run_one("convnet", *self.cnn(AUTO, "output.dir=alone"), "--steps", 2)
        self.assertNotIn("distributed.compression", alone.out)
        self.assertNotIn("compression", self.metadata("alone"))

    def check_told(self, name, taken, seconds):
        """Checks that the choice is reported on the screen, in the checkpoint and in the log."""
        self.assertEqual(self.metadata(name)["compression"], taken)
        line = self.log(f"{name}.log")[0]
        self.assertEqual((line["event"], line["compression"]), ("compression", taken))
        for method, expected in seconds.items():
            self.assertAlmostEqual(line[f"{method}_seconds_most"], expected, delta=0.01 * expected)
            # The backward pass cannot hide the last bucket, and this model has only one.
            self.assertEqual(line[f"{method}_seconds_most"], line[f"{method}_seconds_least"])

    def test_a_slow_link_is_compressed_more(self):
        """2.8 MB a step take more than two seconds."""
        out = self.over_link("10mbit", "convnet", *self.mnist("output.dir=slow"), "--steps", 2, "--log", "slow.log")
        taken, seconds = self.choice(out)
        self.assertIn(taken, ("top-k", "powersgd"))
        self.assertEqual(tuple(seconds), METHODS)
        self.assertTrue(1.5 < seconds["none"] < 4, seconds)
        self.assertLess(seconds[taken], 0.25 * seconds["none"])
        self.check_told("slow", taken, seconds)
        useless = ("distributed.compression_ratio=1", "distributed.compression_rank=1024")
        half, seconds = self.choice(self.over_link("10mbit", "convnet", *self.mnist("output.dir=", *useless), "--steps", 2))
        self.assertEqual(half, "fp16")
        self.assertNotIn("powersgd", seconds)
        self.check_it_is_kept("slow", taken)

    def test_a_fast_link_is_left_alone(self):
        """5 kB a step take less time than a message."""
        out = self.over_link("1gbit", "convnet", *self.cnn(AUTO, "output.dir=fast"), "--steps", 2, "--log", "fast.log")
        taken, seconds = self.choice(out)
        self.assertEqual(taken, "none")
        self.check_told("fast", taken, seconds)

    def check_it_is_kept(self, name, taken):
        """Resumes on one host. The run must have the bits of one with this compression in its settings."""
        result = self.run_ranks(2, "convnet", *self.mnist(f"output.dir={name}"), "--resume")
        self.assertIn(f"distributed.compression is auto and continues with {taken}, as in the checkpoint, although by present measurements a "
                      "new run would take none; all ranks run on one host\n", result.out)
        self.run_ranks(2, "convnet", *self.mnist("output.dir=told", f"distributed.compression={taken}"))
        self.assertEqual(self.weight_bytes(name), self.weight_bytes("told"))
        self.assertEqual(self.metadata(name)["compression"], taken)
        self.assertNotIn("compression", self.metadata("told"))

    def test_a_run_that_goes_on_keeps_the_choice(self):
        """The choice is kept on any hosts, here on one."""
        short = self.cnn(AUTO, "training.epochs=2", "output.dir=run")
        self.run_ranks(2, "convnet", *short, "--steps", 3)
        self.assertIn("distributed.compression is auto and continues with none, as in the checkpoint; all ranks run on one host\n",
                      self.run_ranks(2, "convnet", *short, "--steps", 4, "--resume").out)
        write_choice(self.checkpoint("run"), "fp16")
        result = self.run_ranks(2, "convnet", *short, "--resume", "--log", "log")
        self.assertIn("continues with fp16, as in the checkpoint, although ", result.out)
        self.assertEqual(self.log("log")[0]["compression"], "fp16")
        told = self.cnn("distributed.compression=none", "training.epochs=2", "output.dir=told")
        self.run_ranks(2, "convnet", *told, "--steps", 4)
        self.run_ranks(2, "convnet", *told, "--resume", *self.settings("distributed.compression=fp16"))
        self.assertEqual(self.weight_bytes("run"), self.weight_bytes("told"))
        self.assertEqual(self.metadata("run")["compression"], "fp16")

    def test_one_rank_keeps_the_choice_for_others(self):
        short = self.cnn(AUTO, "training.epochs=2", "output.dir=run")
        self.run_ranks(2, "convnet", *short, "--steps", 3)
        write_choice(self.checkpoint("run"), "bf16")
        self.assertNotIn("distributed.compression", self.run_one("convnet", *short, "--steps", 4, "--resume").out)
        self.assertIn("continues with bf16", self.run_ranks(2, "convnet", *short, "--resume").out)

    def test_a_choice_that_nobody_knows(self):
        short = self.cnn(AUTO, "output.dir=run")
        self.run_ranks(2, "convnet", *short, "--steps", 3)
        write_choice(self.checkpoint("run"), "huffman")
        said = self.run_ranks(2, "convnet", *short, "--resume", status=2).text
        self.assertIn("the checkpoint in run was made with the compression 'huffman', which this version does not know; set "
                      "distributed.compression to another one", said)


if __name__ == "__main__":
    support.main()
