"""Tests --check-gradients, --find-lr and --overfit, and that a run names the parameters that get no gradient."""

import json
import math
import re
import struct

import support
from support import ProgramTest


class CheckGradients(ProgramTest):
    def check(self, program, *arguments, status=0):
        return self.run_one(program, *arguments, "--check-gradients", status=status)

    def rows(self, out):
        return {words[0]: words[1:] for words in map(str.split, out.splitlines()[1:-1])}

    def test_a_perceptron(self):
        out = self.check("mlp", *self.iris("training.batch_size=8", "output.dir=run")).out
        rows = self.rows(out)
        self.assertEqual([(name, row[0]) for name, row in rows.items()],
                         [("fc1.weight", "[30,4]"), ("fc1.bias", "[30]"), ("fc2.weight", "[20,30]"), ("fc2.bias", "[20]"), ("fc3.weight", "[3,20]"),
                          ("fc3.bias", "[3]")])
        for first, second in (row[1:] for row in rows.values()):
            self.assertLess(float(first), 1e-6)
            self.assertLess(float(second), 1e-5)
        self.assertEqual(out.splitlines()[-1], "all 6 gradients agree with differences, and so do their own gradients")
        self.assertFalse((self.folder / "run").exists())

    def test_a_net_with_dropout_batch_norm_and_kinks(self):
        out = self.check("convnet", *self.cnn("training.batch_size=4", "training.precision=bfloat16")).out
        for first, *_ in (row[1:] for row in self.rows(out).values()):
            self.assertLess(float(first), 1e-6)
        self.assertRegex(out.splitlines()[-1], r"all \d+ gradients agree with differences")

    def test_frozen_parameters_are_left_out(self):
        self.assertEqual(list(self.rows(self.check("mlp", *self.iris("training.freeze=['fc1.*', 'fc2.*']")).out)), ["fc3.weight", "fc3.bias"])

    def test_options_without_effect(self):
        for options, text in ((["--steps", 3], "--check-gradients does not train; leave out --steps"),
                              (["--resume"], "--check-gradients does not train; leave out --resume"),
                              (["--log", "x"], "--check-gradients does not train; leave out --log"),
                              (["--evaluate"], "--evaluate and --check-gradients exclude each other"),
                              (["--dry-run"], "--check-gradients and --dry-run exclude each other"),
                              (["--serve", "x"], "--serve only serves those that train; leave out --check-gradients")):
            self.assertIn(text, self.check("mlp", *self.iris(), *options, status=2).err)
        if support.HAS_MPI:
            error = self.run_ranks(2, "mlp", *self.iris(), "--check-gradients", status=2).text
            self.assertIn("--check-gradients is for one rank; start the program without mpirun", error)

    def test_parameters_that_are_not_trained_are_named(self):
        sizes = {"fc1.weight": (4, 4), "fc1.bias": (4,), "fc2.weight": (3, 4), "fc2.bias": (3,)}
        self.write_zeros("zeros", sizes)
        arguments = [*self.iris("model.hidden=[4]", "training.batch_size=8"), "--weights", "zeros"]
        dead = ["fc1.bias", "fc1.weight", "fc2.weight"]
        lines = re.findall("the gradient of '(.*)' is zero everywhere, and the op that makes it so is matmul %", self.check("mlp", *arguments).out)
        self.assertEqual(sorted(lines), dead)
        out = self.run_one("mlp", *arguments, "--steps", 2).out
        (line,) = [line for line in out.splitlines() if "are not trained" in line]
        self.assertEqual(sorted(re.findall("of '(.*?)' is zero everywhere", line)), dead)
        self.assertTrue(line.endswith("; --check-gradients names the ops that make them so"))
        self.assertNotIn("are not trained", self.run_one("mlp", *self.iris(), "--steps", 2).out)

    def test_a_sweep_suggests_a_learning_rate_and_leaves_no_trace(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        before = sorted(path.name for path in self.folder.rglob("*"))
        tables = []
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            out = self.run_ranks(ranks, "mlp", *self.iris("output.dir=run"), "--find-lr").out
            tables.append(re.findall(r"^(\d\S*) +(\d\S*) +\d\S*$", out, re.M))
            (rate,) = re.findall(r"^the loss falls fastest at --set training.optimizer.learning_rate=(\S+)$", out, re.M)
        for table in tables:
            for (rate_of_one, loss_of_one), (same_rate, loss) in zip(tables[0], table, strict=True):
                self.assertEqual(rate_of_one, same_rate)
                self.assertAlmostEqual(float(loss_of_one), float(loss), delta=1e-3 * float(loss))
        self.assertEqual(tables[0][0][0], "1e-07")
        self.assertIn(float(rate), [float(f"{float(row[0]):.3g}") for row in tables[0]])
        self.assertEqual(sorted(path.name for path in self.folder.rglob("*")), before)
        out = self.run_one("mlp", *self.iris(f"training.optimizer.learning_rate={rate}", "training.epochs=30")).out
        self.assertGreater(float(re.findall(r"validation accuracy (\S+) %", out)[-1]), 90)

    def test_a_sweep_that_can_suggest_nothing_is_an_error(self):
        sizes = {"fc1.weight": (4, 4), "fc1.bias": (4,), "fc2.weight": (3, 4), "fc2.bias": (3,)}
        self.write_zeros("zeros", sizes)
        result = self.run_one("mlp", *self.iris("model.hidden=[4]"), "--weights", "zeros", "--find-lr", status=2)
        self.assertIn("the loss falls by less than 5 % at these learning rates, so that none can be suggested; ", result.err)
        refusals = [(1, "training.optimizer.base_batch_size=4", "multiplies the learning rate, and --find-lr finds")]
        if support.HAS_MPI:
            refusals.append((2, "distributed.strategy=local", "needs one loss for each step"))
            for strategy in ("send-recv", "async-server"):
                refusals.append((2, f"distributed.strategy={strategy}", f"is '{strategy}', with which a rank serves, and --find-lr is for"))
        for ranks, setting, says in refusals:
            self.assertIn(says, self.run_ranks(ranks, "mlp", *self.iris(setting), "--find-lr", status=2).text)

    def test_a_few_samples_are_learned_by_heart(self):
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            out = self.run_ranks(ranks, "mlp", *self.iris("output.dir=run", "model.label_smoothing=0.1"), "--overfit", 12).out
            self.assertRegex(out, r"(?m)^the model has learned 12 samples in \d+ steps: the loss went from \S+ to 0\.\d+$")
        self.assertFalse((self.folder / "run").exists())
        said = self.run_one("mlp", *self.iris("training.optimizer.learning_rate=1e-9"), "--overfit", 12, status=2).err
        self.assertRegex(said, r"^the model has not learned 12 samples in 1000 steps: the loss went from \S+ to \S+, and has to reach a tenth; look at")
        self.assertIn("data.limit", self.run_one("mlp", *self.iris(), "--overfit", 2, status=2).err)
        sizes = {"fc1.weight": (4, 4), "fc1.bias": (4,), "fc2.weight": (3, 4), "fc2.bias": (3,)}
        self.write_zeros("zeros", sizes)
        said = self.run_one("mlp", *self.iris("model.hidden=[4]"), "--weights", "zeros", "--overfit", 12, status=2).err
        self.assertIn("some parameters are not trained: the gradient of 'fc1.weight' is zero everywhere", said)

    def write_zeros(self, name, sizes):
        header, end = {}, 0
        for tensor, size in sizes.items():
            header[tensor] = {"dtype": "F32", "shape": size, "data_offsets": [end, end + 4 * math.prod(size)]}
            end += 4 * math.prod(size)
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


if __name__ == "__main__":
    support.main()
