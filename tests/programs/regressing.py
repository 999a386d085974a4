"""Tests the training and the use of a model that predicts numbers."""

import re

import support
from support import SOURCE, ProgramTest


class Regression(ProgramTest):
    def throws(self, *settings):
        """Returns arguments: the YAML file of the throws with its data, and overrides."""
        return [SOURCE / "models/throws.yaml", "--set", f"data.path={SOURCE / 'models/throws.csv'}", *self.settings(*settings)]

    def figures(self, text):
        """Returns loss, mae, rmse and r2 of the last validation."""
        number = r"(-?[0-9.]+)"
        found = re.findall(rf"validation loss {number}  validation mae {number}  validation rmse {number}  validation r2 {number}", text)
        self.assertTrue(found, text)
        return [float(value) for value in found[-1]]

    def test_a_trained_model_predicts_in_the_units_of_the_data(self):
        trained = self.run_one("mlp", *self.throws("output.dir=run"), "--log", "log")
        self.assertIn("192 samples of 3 targets, 48 for validation", trained.out)
        self.assertIn("targets: 'distance', 'time', 'peak'", trained.out)
        figures = self.figures(trained.out)
        self.assertGreater(figures[3], 0.97)
        self.assertAlmostEqual(self.log("log")[-1]["val_r2"], figures[3], delta=1e-4)
        evaluated = self.run_one("mlp", *self.throws("output.dir=run"), "--evaluate").out
        self.assertEqual(self.figures(evaluated), figures)
        of_targets = re.findall(r"target (\S+)  mae (\S+)  rmse (\S+)  r2 (\S+)", evaluated)
        self.assertEqual([row[0] for row in of_targets], ["distance", "time", "peak"])
        self.assertAlmostEqual(sum(float(row[1]) for row in of_targets) / 3, figures[1], delta=2e-4)
        self.assertAlmostEqual(sum(float(row[3]) for row in of_targets) / 3, figures[3], delta=2e-4)
        self.write("new.csv", "height,speed,angle\n0,20,45\n0,10,30\n")
        lines = self.run_one("mlp", *self.throws("output.dir=run"), "--predict", "new.csv").out.splitlines()
        for line, expected in zip(lines, ((40.77, 2.883, 10.19), (8.83, 1.019, 1.274)), strict=True):
            name, *values = line.split("\t")
            self.assertRegex(name, r"^new.csv row \d$")
            for value, truth in zip(values, expected, strict=True):
                self.assertAlmostEqual(float(value), truth, delta=0.15 * truth + 0.3)

    def test_a_run_that_was_stopped_ends_like_one_that_was_not(self):
        arguments = self.throws("training.epochs=4")
        self.run_one("mlp", *arguments, *self.settings("output.dir=whole"))
        self.run_one("mlp", *arguments, *self.settings("output.dir=parts"), "--steps", 17)
        self.run_one("mlp", *arguments, *self.settings("output.dir=parts"), "--resume")
        self.assertEqual(self.weight_bytes("whole"), self.weight_bytes("parts"))

    def test_two_ranks_and_any_micro_batches_give_the_same_figures(self):
        arguments = self.throws("training.epochs=3", "training.precision=float64")
        one = self.run_one("mlp", *arguments, *self.settings("output.dir=one"))
        for ranks, name, *settings in ((1, "parts", "training.micro_batches=3"), (2, "two"), (2, "sent", "distributed.strategy=scatter-gather")):
            other = self.run_ranks(ranks, "mlp", *arguments, *self.settings(f"output.dir={name}", *settings))
            self.assertLess(support.difference(self.weights("one"), self.weights(name)), 1e-10, name)
            self.assertEqual(self.figures(other.out), self.figures(one.out), name)

    def test_targets_as_they_are(self):
        """The figures do not depend on the scale in which the model computes."""
        out = self.run_one("mlp", *self.throws("training.epochs=20", "data.standardise_targets=false", "data.targets=[time]", "output.dir=run")).out
        loss, mae, rmse, r2 = self.figures(out)
        self.assertAlmostEqual(loss ** 0.5, rmse, delta=2e-3)
        self.assertLess(mae, rmse)
        self.assertLess(r2, 1)

    def test_weights_of_another_task_or_other_targets(self):
        self.run_one("mlp", *self.throws("training.epochs=1", "output.dir=run"))
        other = self.run_one("mlp", *self.throws("output.dir=run", "data.standardise_targets=false"), "--predict", SOURCE / "models/throws.csv", status=2)
        self.assertIn("was made with data.standardise_targets true and now it is false", other.err)
        other = self.run_one("mlp", *self.throws("output.dir=run", "data.targets=[distance, peak, time]"), "--resume", status=2)
        self.assertIn("was made with other data, classes or split", other.err)
        for reader in ("--evaluate",), ("--predict", SOURCE / "models/throws.csv"):
            other = self.run_one("mlp", *self.throws("output.dir=run", "data.targets=[peak, time, distance]"), *reader, status=2)
            self.assertIn("data.targets is [peak, time, distance], and the weights predict [distance, time, peak]; name the targets of the weights", other.err)
        iris = self.iris("output.dir=run")
        self.assertIn("data.targets is missing, and the weights are of a model that was trained with targets; name weights of a classification", self.run_one("mlp", *iris, "--evaluate", status=2).err)


if __name__ == "__main__":
    support.main()
