"""Tests that a user's program with its own model can do everything that the programs of the library can:
examples/own_program.cpp."""

import re
import signal
import subprocess

import support
from support import SOURCE, ProgramTest

PROGRAM = support.BUILD / "examples/own_program"


class OwnProgram(ProgramTest):
    def gated(self, *settings):
        return [SOURCE / "examples/own_program.yaml", "--set", f"data.path={SOURCE / 'models/iris.csv'}", *self.settings(*settings)]

    def accuracy(self, text):
        return float(re.findall(r"validation accuracy +([\d.]+) %", text)[-1])

    def test_it_learns_is_evaluated_and_predicts(self):
        trained = self.run_one(PROGRAM, *self.gated("output.dir=run")).out
        self.assertGreater(self.accuracy(trained), 85)
        evaluated = self.run_one(PROGRAM, *self.gated("output.dir=run"), "--evaluate").out
        self.assertEqual(self.accuracy(evaluated), self.accuracy(trained))
        predicted = self.run_one(PROGRAM, *self.gated("output.dir=run"), "--predict", SOURCE / "models/iris.csv").out
        self.assertEqual(len(re.findall(r"setosa|versicolor|virginica", predicted)), 150, predicted)
        self.assertEqual(set(self.weights("run")), {f"{layer}.{part}" for layer in ("value", "gate", "out", "straight") for part in ("weight", "bias")})

    def test_it_learns_a_regression(self):
        throws = f"data={{format: csv, path: {SOURCE / 'models/throws.csv'}, targets: [distance, time, peak]}}"
        trained = self.run_one(PROGRAM, *self.gated("model.task=regression", throws)).out
        self.assertGreater(float(re.search(r"validation r2 +([\d.]+)", trained).group(1)), 0.9)

    def test_two_ranks_learn_what_one_learns(self):
        for ranks in (1, 2):
            self.run_ranks(ranks, PROGRAM, *self.gated("training.epochs=3", f"output.dir=run{ranks}"))
        self.assertLess(support.difference(self.weights("run1"), self.weights("run2")), 1e-5)

    def test_killed_and_resumed_on_two_ranks(self):
        endless = self.gated("training.epochs=4000", "output.dir=run", "output.every=1")
        ranks = self.start_ranks(2, PROGRAM, *endless, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: list((self.folder / "run").glob("checkpoint-*")))
        ranks.send_signal(signal.SIGKILL)
        ranks.wait()
        self.wait_for(lambda: not self.processes())
        step = int(self.checkpoint("run").name.split("-")[1])
        epochs = step // 15 + 2
        self.run_ranks(2, PROGRAM, *self.gated(f"training.epochs={epochs}", "output.dir=run"), "--resume")
        self.run_ranks(2, PROGRAM, *self.gated(f"training.epochs={epochs}", "output.dir=whole"))
        self.assertEqual(self.weights("run"), self.weights("whole"))

    def test_its_keys_are_described_and_checked(self):
        described = self.run_one(PROGRAM, "--describe", "model.hidden").out
        self.assertIn("number of hidden values", described)
        self.assertIn("gated", self.run_one(PROGRAM, "--describe", "model.name").out)
        self.assertNotIn("gated", self.run_one("mlp", "--describe", "model.name").out)
        for setting, says in (("model.hidden=0", "model.hidden"), ("model.gate=gelo", "model.gate"), ("model.heads=2", "unknown key 'heads' in model"),
                              ("model.activation=relu", "unknown key 'activation' in model")):
            self.assertIn(says, self.run_one(PROGRAM, *self.gated(setting), status=2).err)

    def test_its_gradients_are_checked(self):
        out = self.run_one(PROGRAM, *self.gated("training.batch_size=8"), "--check-gradients").out
        self.assertIn("all 8 gradients agree with differences, and so do their own gradients", out)

    def test_models_of_other_programs(self):
        self.assertIn("is 'mlp', but this program trains only gated; run mlp", self.run_one(PROGRAM, *self.iris(), status=2).err)
        self.assertIn("gated", self.run_one("mlp", *self.gated(), status=2).err)


if __name__ == "__main__":
    support.main()
