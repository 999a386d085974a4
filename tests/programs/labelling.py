"""Tests the training and the use of models that predict labels, and of weighted classes."""

import re

import support
from support import SOURCE, ProgramTest


class Labels(ProgramTest):
    def weather(self, *settings):
        """Returns arguments: the YAML file of the weather with its data, and overrides."""
        return [SOURCE / "models/weather.yaml", "--set", f"data.path={SOURCE / 'models/weather.csv'}", *self.settings(*settings)]

    def figures(self, text):
        """Returns the loss and the metrics of the last validation."""
        names = ("loss", "accuracy", "exact_match", "f1_micro", "f1_macro")
        found = re.findall("  ".join(rf"validation {name} ([0-9.]+)(?: %)?" for name in names), text)
        self.assertTrue(found, text)
        return found[-1]

    def test_a_trained_model_predicts_labels(self):
        trained = self.run_one("mlp", *self.weather("output.dir=run"), "--log", "log")
        self.assertIn("192 samples of 3 targets, 48 for validation", trained.out)
        self.assertGreater(self.log("log")[-1]["val_f1_macro"], 0.9)
        evaluated = self.run_one("mlp", *self.weather("output.dir=run"), "--evaluate").out
        self.assertEqual(self.figures(evaluated), self.figures(trained.out))
        of_labels = re.findall(r"label (\S+)  precision (\S+)  recall (\S+)  f1 (\S+)", evaluated)
        self.assertEqual([row[0] for row in of_labels], ["umbrella", "coat", "sunglasses"])
        self.assertAlmostEqual(sum(float(row[3]) for row in of_labels) / 3, self.log("log")[-1]["val_f1_macro"], delta=2e-4)
        self.write("new.csv", "wind,temperature,humidity,clouds\n40,0,95,95\n5,28,30,5\n5,25,40,60\n")
        lines = self.run_one("mlp", *self.weather("output.dir=run"), "--predict", "new.csv").out.splitlines()
        self.assertEqual([line.split("\t")[1::2] for line in lines], [["umbrella", "coat"], ["sunglasses"], ["no label"]])
        for line in lines[:2]:
            self.assertTrue(all(0.5 < float(probability) <= 1 for probability in line.split("\t")[2::2]), line)

    def test_two_ranks_and_any_micro_batches_give_the_same_figures(self):
        arguments = self.weather("training.epochs=2", "training.precision=float64")
        one = self.run_one("mlp", *arguments, *self.settings("output.dir=one"))
        for ranks, name, *settings in ((1, "parts", "training.micro_batches=3"), (2, "two")):
            other = self.run_ranks(ranks, "mlp", *arguments, *self.settings(f"output.dir={name}", *settings))
            self.assertLess(support.difference(self.weights("one"), self.weights(name)), 1e-10, name)
            self.assertEqual(self.figures(other.out), self.figures(one.out), name)

    def test_a_target_that_is_no_label_is_refused(self):
        self.write("t.csv", "x,y\n1,0\n2,1\n3,2\n")
        refused = self.run_one("mlp", *self.weather("data.path=t.csv", "data.targets=[y]"), status=2)
        self.assertIn("data.targets names the column 'y', which in row 3 has the value 2, and model.task is multi_label", refused.err)
        refused = self.run_one("mlp", *self.weather("data.standardise_targets=true"), status=2)
        self.assertIn("data.standardise_targets has no effect here, because model.task is multi_label", refused.err)


class Weights(ProgramTest):
    """The rows of the iris have 50 samples of each class; these have 40, 10 and 5."""

    def setUp(self):
        super().setUp()
        head, *rows = (SOURCE / "models/iris.csv").read_text().splitlines()
        self.write("t.csv", "\n".join([head, *rows[:40], *rows[50:60], *rows[100:105]]) + "\n")

    def unequal(self, *settings):
        return self.iris("data.path=t.csv", "training.epochs=3", "training.batch_size=8", "training.precision=float64", *settings)

    def test_weights_of_classes_do_not_depend_on_ranks_and_micro_batches(self):
        for weights in ("balanced", "[1, 4, 8.5]"):
            arguments = self.unequal(f"model.class_weights={weights}", "model.label_smoothing=0.1")
            one = self.run_one("mlp", *arguments, *self.settings("output.dir=one"))
            losses = re.findall(r"validation loss ([0-9.]+)", one.out)
            for ranks, *settings in ((1, "training.micro_batches=3"), (2,), (2, "distributed.strategy=scatter-gather")):
                other = self.run_ranks(ranks, "mlp", *arguments, *self.settings("output.dir=other", *settings), "--replace")
                self.assertLess(support.difference(self.weights("one"), self.weights("other")), 1e-10, settings)
                self.assertEqual(re.findall(r"validation loss ([0-9.]+)", other.out), losses, settings)

    def test_balanced_weights_are_kept_with_the_model(self):
        """The loss over other rows has the weights of the training."""
        trained = self.run_one("mlp", *self.unequal("model.class_weights=balanced", "output.dir=run")).out
        loss = re.findall(r"validation loss ([0-9.]+)", trained)[-1]
        evaluated = self.run_one("mlp", *self.unequal("model.class_weights=balanced", "output.dir=run"), "--evaluate").out
        self.assertEqual(re.findall(r"validation loss ([0-9.]+)", evaluated), [loss])
        same = [line.split(",")[-1] for line in (self.folder / "t.csv").read_text().splitlines()[1:]]
        counts = [0.8 * same.count(name) for name in dict.fromkeys(same)]
        weights = ", ".join(str(sum(counts) / 3 / count) for count in counts)
        listed = self.run_one("mlp", *self.unequal(f"model.class_weights=[{weights}]", "output.dir=listed")).out
        self.assertEqual(re.findall(r"validation loss ([0-9.]+)", listed)[-1], loss)
        refused = self.run_one("mlp", *self.unequal("output.dir=run"), "--evaluate", status=2)
        self.assertIn('was made with model.class_weights "balanced" and now it is not given', refused.err)

    def test_a_group_of_clients_refuses_weights(self):
        refused = self.run_ranks(3, "mlp", *self.unequal("model.class_weights=balanced", "distributed.strategy=async-server",
                                                         "distributed.group=2"), status=2)
        self.assertIn("the loss has weights, of model.class_weights or LossOutputs::weight, and the strategy sums gradients", refused.out)


if __name__ == "__main__":
    support.main()
