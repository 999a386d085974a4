"""Tests the use of a trained model: evaluation, prediction, and training for another task."""

import array
import json
import re
import struct
import subprocess

import support
from support import SOURCE, ProgramTest, read_safetensors


class Evaluate(ProgramTest):
    def test_figures_are_those_of_the_last_epoch(self):
        arguments = self.cnn("training.epochs=2")
        figures = re.compile(r"validation loss \S+  validation accuracy \S+ %")
        trained = figures.findall(self.run_one("convnet", *arguments).out)[-1]
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            for weights in ([], ["--weights", self.checkpoint("run") / "weights.safetensors"]):
                self.assertEqual(figures.findall(self.run_ranks(ranks, "convnet", *arguments, "--evaluate", *weights).out), [trained])

    def test_averages_of_weights(self):
        arguments = self.iris("training.epochs=5", "training.ema=0.9", "output.dir=run")
        figures = re.compile(r"validation loss \S+  validation accuracy \S+ %")
        says = "holds averages of the weights (training.ema 0.9)"
        last_lines = []
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            result = self.run_ranks(ranks, "mlp", *arguments, "--replace")
            self.assertIn("files of weights have averages of the weights (training.ema 0.9)", result.out)
            last_lines.append(figures.findall(result.out)[-1])
            used = self.run_ranks(ranks, "mlp", *arguments, "--evaluate")
            self.assertEqual(figures.findall(used.out), last_lines[-1:])
            self.assertIn(says, used.text)
        self.assertEqual(last_lines, last_lines[:1] * len(last_lines))
        self.assertIn(says, self.run_one("mlp", *arguments, "--predict", SOURCE / "models/iris.csv").err)
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run"), "--replace")
        self.assertEqual(self.run_one("mlp", *self.iris("output.dir=run"), "--evaluate").err, "")

    def test_averages_of_the_last_epochs(self):
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run", "output.keep=3"))
        checkpoints = sorted((self.folder / "run").glob("checkpoint-*"))
        self.assertEqual(len(checkpoints), 3)
        subprocess.run([SOURCE / "tools/weights", "average", *checkpoints, "averaged.safetensors"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        for name, values in read_safetensors(self.folder / "averaged.safetensors").items():
            several = [read_safetensors(checkpoint / "weights.safetensors")[name] for checkpoint in checkpoints]
            for value, *parts in zip(values, *several):
                self.assertAlmostEqual(value, sum(parts) / 3, delta=1e-6 * max(map(abs, parts)))
        self.run_one("mlp", *self.iris(), "--evaluate", "--weights", "averaged.safetensors")

    def test_confusions_are_counted_over_all_ranks(self):
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run"))
        tables = []
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            out = self.run_ranks(ranks, "mlp", *self.iris("output.dir=run"), "--evaluate").out
            head, *rows = out.splitlines()[-4:]
            self.assertEqual(head.split(), ["true", "\\", "predicted", "setosa", "versicolor", "virginica"])
            counts = [[int(cell) for cell in row.split()[1:]] for row in rows]
            self.assertEqual([sum(row) for row in counts], [10, 10, 10])
            accuracy = float(re.search(r"validation accuracy (\S+) %", out)[1])
            self.assertAlmostEqual(100 * sum(row[i] for i, row in enumerate(counts)) / 30, accuracy, delta=0.01)
            tables.append(counts)
        self.assertEqual(tables, tables[:1] * len(tables))

    def test_weights_that_were_renamed_and_back(self):
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run"))
        for source, target, renaming in (("run", "other.safetensors", "fc*=layers.*"), ("other.safetensors", "back.safetensors", "layers.*=fc*")):
            subprocess.run([SOURCE / "tools/weights", "convert", source, target, "--rename", renaming], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        figures = re.compile("validation loss .*")
        expected = figures.findall(self.run_one("mlp", *self.iris("output.dir=run"), "--evaluate").out)
        self.assertEqual(figures.findall(self.run_one("mlp", *self.iris(), "--evaluate", "--weights", "back.safetensors").out), expected)
        self.run_one("mlp", *self.iris(), "--evaluate", "--weights", "other.safetensors", status=2)

    def test_without_weights_or_samples(self):
        result = self.run_one("mlp", *self.iris(), "--evaluate", status=2)
        self.assertIn("there are no weights to use; name a file with --weights", result.err)
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        result = self.run_one("mlp", *self.iris("output.dir=run", "data.validation_limit=0"), "--evaluate", status=2)
        self.assertIn("there are no samples for validation", result.err)

    def test_a_folder_instead_of_its_weights(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        folder = self.checkpoint("run")
        for options in ([], ["--evaluate"], ["--predict", SOURCE / "models/iris.csv"]):
            result = self.run_one("mlp", *self.iris(), "--weights", folder, *options, status=2)
            self.assertEqual(result.err, f"'{folder}' is a folder; name its file of weights, '{folder}/weights.safetensors'\n")

    def test_weights_of_other_settings_or_classes(self):
        """A checkpoint and a copy of its weights say with which settings they were made."""
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        weights = self.checkpoint("run") / "weights.safetensors"
        copy = self.folder / "copy.safetensors"
        copy.write_bytes(weights.read_bytes())
        self.write("other.csv", (SOURCE / "models/iris.csv").read_text().replace("virginica", "pallida"))
        for setting, says in (("model.activation=relu", 'model.activation "tanh" and now it is "relu"'),
                              ("data.standardise=false", "data.standardise true and now it is false")):
            for options in (["--evaluate"], ["--predict", SOURCE / "models/iris.csv"], ["--evaluate", "--weights", copy]):
                result = self.run_one("mlp", *self.iris("output.dir=run", setting), *options, status=2)
                named = copy if copy in options else "run/" + str(weights.relative_to(self.folder / "run"))
                self.assertEqual(result.err, f"{named} was made with {says}; give the same\n")
        result = self.run_one("mlp", *self.iris("output.dir=run", "data.path=other.csv"), "--evaluate", status=2)
        self.assertEqual(result.err, "other.csv:102:17: 'pallida' is none of the classes setosa, versicolor, virginica; correct the label or add the class\n")
        self.without_table(copy)
        result = self.run_one("mlp", *self.iris("data.path=other.csv"), "--evaluate", "--weights", copy, status=2)
        self.assertEqual(result.err, f"{copy} was made with class 0 'setosa' and now it is 'pallida'; give the same\n")

    def without_table(self, weights):
        """Removes what older versions did not write."""
        return self.without(weights, ("data.column", "data.class"))

    def without(self, weights, keys):
        data = weights.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        header["__metadata__"] = {key: value for key, value in header["__metadata__"].items() if not key.startswith(keys)}
        text = json.dumps(header).encode()
        weights.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
        return weights

    def test_weights_of_another_table_or_split(self):
        """The table and the split determine how a row is scaled, and which rows the model has not seen."""
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        table = SOURCE / "models/iris.csv"
        lines = table.read_text().splitlines()
        self.write("mm.csv", "\n".join([lines[0]] + [re.sub(r"[0-9.]+", lambda cell: str(10 * float(cell[0])), line) for line in lines[1:]]) + "\n")
        says = {"--evaluate": "samples that are held out now may be samples on which it was trained",
                "--predict": "the mean and deviation by which rows are scaled may not be those of its training"}
        weights = self.checkpoint("run") / "weights.safetensors"
        old = self.folder / "old.safetensors"
        old.write_bytes(weights.read_bytes())
        self.without_table(old)
        untold = self.folder / "untold.safetensors"
        untold.write_bytes(weights.read_bytes())
        self.without(untold, "data.column")
        for option in (["--evaluate"], ["--predict", table]):
            result = self.run_one("mlp", *self.iris(), *option, "--weights", untold, status=2)
            self.assertIn("data.format is csv, and the weights are of a model that was not trained on a table", result.err)
        told = self.run_one("mlp", *self.iris("output.dir=run"), "--predict", table).out
        for settings in (["data.path=mm.csv"], ["data.validation_share=0.95"], ["data.split_seed=2"], ["data.folds=5"]):
            self.assertEqual(self.run_one("mlp", *self.iris("output.dir=run", *settings), "--predict", table).out, told)
            for option in (["--evaluate", "--weights", weights], ["--evaluate", "--weights", old], ["--predict", table, "--weights", old]):
                result = self.run_one("mlp", *self.iris(*settings), *option, status=2)
                self.assertRegex(result.err, rf"\A\S+.safetensors was made with another table, text or split than the section data describes now, so that {says[option[0]]}; give the same .*\n\Z")
        bare = support.write_safetensors(self.folder / "bare", self.weights("run"), {"fc1.weight": [30, 4], "fc2.weight": [20, 30], "fc3.weight": [3, 20]})
        for option in (["--evaluate"], ["--predict", table]):
            result = self.run_one("mlp", *self.iris(), *option, "--weights", bare)
            self.assertEqual(result.err, f"{bare} does not say with what table and split it was made: {says[option[0]]}\n")

    def test_all_rows_of_another_table(self):
        """Rows are scaled as in training, whatever else the table contains, and its columns are found by
        name."""
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run"), "--steps", 50)
        self.run_one("mlp", *self.iris("training.epochs=5", "output.dir=run"), "--resume")
        rows = [line.split(",") for line in (SOURCE / "models/iris.csv").read_text().split()[1:]]
        def figures(name, part):
            self.write(name, "species,petal_width,note,petal_length,sepal_width,sepal_length\n" +
                       "".join(f"{row[4]},{row[3]},x,{row[2]},{row[1]},{row[0]}\n" for row in part))
            out = self.run_one("mlp", *self.iris("output.dir=run", f"data.path={name}", "data.validation_share=1"), "--evaluate").out
            self.assertIn(f"0 samples of 3 classes, {len(part)} for validation", out)
            return [float(number) for number in re.search(r"validation loss (\S+)  validation accuracy (\S+) %", out).groups()]
        first, rest, whole = figures("first.csv", rows[:60]), figures("rest.csv", rows[60:]), figures("whole.csv", rows)
        for i, rounding in enumerate((1e-3, 0.1)):
            self.assertAlmostEqual((60 * first[i] + 90 * rest[i]) / 150, whole[i], delta=rounding)
        self.assertGreater(whole[1], 60)
        training = self.run_one("mlp", *self.iris("data.validation_share=1"), status=2)
        self.assertIn("data.validation_share is '1'; it must be a number >= 0 and < 1", training.err)
        old = self.folder / "old.safetensors"
        old.write_bytes((self.checkpoint("run") / "weights.safetensors").read_bytes())
        result = self.run_one("mlp", *self.iris("data.validation_share=1"), "--evaluate", "--weights", self.without_table(old), status=2)
        self.assertIn("data.validation_share is '1'; it must be a number >= 0 and < 1", result.err)
        self.write("narrow.csv", "species,petal_width\nsetosa,1\nvirginica,2\n")
        narrow = self.iris("output.dir=run", "data.path=narrow.csv", "data.validation_share=1")
        self.assertIn("narrow.csv: no column is called 'sepal_length'", self.run_one("mlp", *narrow, "--evaluate", status=2).err)
        self.write("bare.csv", "1,2,3,4,5,setosa\n1,2,3,4,6,virginica\n")
        bare = self.write("bare.yaml", (SOURCE / "models/iris.yaml").read_text().replace("label: species", "label: -1"))
        result = self.run_one("mlp", bare, *self.settings("output.dir=run", "data.path=bare.csv", "data.header=false"), "--evaluate", status=2)
        self.assertIn("data.path 'bare.csv' has 5 columns of features and the weights are of a model that takes 4; name a table", result.err)

    def test_a_split_does_not_matter_where_nothing_is_measured(self):
        plain = ["data.standardise=false", "output.dir=run"]
        self.run_one("mlp", *self.iris("training.epochs=1", *plain))
        other = self.iris("data.split_seed=2", *plain)
        self.assertEqual(self.run_one("mlp", *other, "--predict", SOURCE / "models/iris.csv").err, "")
        self.assertIn("samples that are held out now", self.run_one("mlp", *other, "--evaluate", status=2).err)

    def test_outputs_beyond_what_numbers_can_hold(self):
        """The weights fit into float32, but their sums do not."""
        self.run_one("mlp", *self.iris("output.dir=run", "training.epochs=1", "model.hidden=[2]"))
        weights = self.weights("run")
        for name in weights:
            weights[name] = array.array("f", [3e38] * len(weights[name]))
        huge = support.write_safetensors(self.folder / "huge", weights, {"fc1.weight": [2, 4], "fc2.weight": [3, 2]})
        used = [*self.iris("model.hidden=[2]"), "--weights", huge]
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            said = support.without_mpirun(self.run_ranks(ranks, "mlp", *used, "--evaluate", status=2).text)
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], "^the validation loss is (nan|infinite): the weights, or a sample, lead beyond what numbers can hold; set training.watch=true")
        table = SOURCE / "models/iris.csv"
        result = self.run_one("mlp", *used, "--predict", table, status=2)
        self.assertRegex(result.err, rf"^{table} row \d+: the model's output is -?(nan|inf); the sample contains numbers far beyond")

    def test_tensors_that_the_model_lacks(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        weights = self.checkpoint("run") / "weights.safetensors"
        evaluate = lambda *skip, status=0: self.run_one("mlp", *self.iris(), "--evaluate", "--weights", weights, *skip, status=status)
        self.assertIn("--skip leaves out 'fc3.bias', and a model that is used needs all of its parameters",
                      evaluate("--skip", "fc3.b*", status=2).err)
        shallow = self.iris("model.hidden=[30]", "output.dir=shallow", "training.epochs=1")
        self.assertIn("skip it with the pattern 'fc2.*'", self.run_one("mlp", *shallow, "--evaluate", "--weights", weights, status=2).err)

    def test_what_excludes_each_other(self):
        for options, text in ((["--evaluate", "--predict", "x"], "--evaluate and --predict exclude each other"),
                              (["--evaluate", "--resume"], "--evaluate does not train; leave out --resume"),
                              (["--predict", "x", "--steps", "3"], "--predict does not train; leave out --steps"),
                              (["--evaluate", "--log", "x"], "--evaluate does not train; leave out --log"),
                              (["--predict", "x", "--profile", "x"], "--predict does not train; leave out --profile"),
                              (["--dry-run", "--log", "x"], "--dry-run does not train; leave out --log"),
                              (["--dry-run", "--profile", "x"], "--dry-run does not train; leave out --profile"),
                              (["--dry-run", "--steps", "3"], "--dry-run does not train; leave out --steps"),
                              (["--dry-run", "--resume"], "--dry-run does not train; leave out --resume"),
                              (["--skip", "x"], "--skip needs --weights")):
            self.assertIn(text, self.run_one("mlp", *self.iris(), *options, status=2).err)


class Predict(ProgramTest):
    def predictions(self, program, *arguments):
        """[[name, class, probability]]"""
        return [line.split("\t") for line in self.run_one(program, *arguments).out.splitlines()]

    def test_rows_of_a_table(self):
        self.run_one("mlp", *self.iris("training.epochs=20", "output.dir=run"))
        table = SOURCE / "models/iris.csv"
        rows = [line.split(",") for line in table.read_text().split()[1:]]
        found = self.predictions("mlp", *self.iris("output.dir=run"), "--predict", table)
        self.assertEqual([name for name, _, _ in found], [f"{table} row {i + 1}" for i in range(150)])
        self.assertGreater(sum(name == row[4] for (_, name, _), row in zip(found, rows)), 140)
        self.assertTrue(all(1 / 3 <= float(probability) <= 1 for _, _, probability in found))
        # The weights include the columns and the classes, so the training table is not needed.
        elsewhere = self.iris("output.dir=run", "data.path=gone.csv", "training.micro_batches=2")
        self.assertEqual(self.predictions("mlp", *elsewhere, "--predict", table), found)
        misspelt = self.run_one("mlp", *self.iris("output.dir=run", "data.limt=3"), "--predict", table, status=2)
        self.assertIn("data.limt", misspelt.err)
        # Has other columns, another order, and no label.
        text = "petal_width,note,petal_length,sepal_width,sepal_length\n" + "".join(
            f"{row[3]},x,{row[2]},{row[1]},{row[0]}\n" for row in rows)
        self.write("new.csv", text)
        again = self.predictions("mlp", *self.iris("output.dir=run"), "--predict", "new.csv", "new.csv")
        self.assertEqual([line[1:] for line in again], [line[1:] for line in found] * 2)
        self.write("short.csv", "petal_width\n1\n")
        result = self.run_one("mlp", *self.iris("output.dir=run"), "--predict", "short.csv", status=2)
        self.assertIn("short.csv: no column is called 'sepal_length'", result.err)

    def test_outputs_that_are_no_probabilities(self):
        squared = self.iris("training.epochs=1", "output.dir=run", "model.loss=squared_error")
        self.run_one("mlp", *squared)
        for _, _, output in self.predictions("mlp", *squared, "--predict", SOURCE / "models/iris.csv"):
            self.assertRegex(output, r"^output -?\d+\.\d{4}$")
        binary = self.iris("training.epochs=1", "output.dir=other", "model.loss=binary_cross_entropy")
        self.run_one("mlp", *binary)
        for _, _, output in self.predictions("mlp", *binary, "--predict", SOURCE / "models/iris.csv"):
            self.assertTrue(0 < float(output) < 1, output)

    def test_rows_without_a_header(self):
        rows = (SOURCE / "models/iris.csv").read_text().split()[1:]
        self.write("rows.csv", "\n".join(rows))
        settings = self.settings("data.path=rows.csv", "data.header=false", "output.dir=run", "training.epochs=1")
        yaml = self.write("rows.yaml", (SOURCE / "models/iris.yaml").read_text().replace("label: species", "label: -1"))
        self.run_one("mlp", yaml, *settings)
        self.write("new.csv", "5.1,3.5,1.4,0.2\n")
        self.assertEqual(len(self.predictions("mlp", yaml, *settings, "--predict", "new.csv")), 1)
        self.write("more.csv", "5.1,3.5,1.4,0.2,7\n")
        result = self.run_one("mlp", yaml, *settings, "--predict", "more.csv", status=2)
        self.assertIn("more.csv: a row has 5 columns and the model takes 4; leave out the label's column", result.err)

    def test_images(self):
        support.draw_images(self.folder / "images")
        arguments = [SOURCE / "models/resnet18.yaml", *self.settings("data.path=images", "data.image_size=32", "training.batch_size=6",
                                                                     "training.schedule.warmup_epochs=1", "output.dir=run")]
        self.run_one("resnet", *arguments, "--steps", 1)
        images = sorted((self.folder / "images/val").glob("*/*"))[:2]
        found = self.predictions("resnet", *arguments, "--predict", *images)
        self.assertEqual([name for name, _, _ in found], list(map(str, images)))
        self.assertEqual(found, [self.predictions("resnet", *arguments, "--predict", image)[0] for image in images])
        classes = {path.name for path in (self.folder / "images/train").iterdir()}
        self.assertTrue(all(name in classes and 1 / 3 <= float(probability) <= 1 for _, name, probability in found))
        (self.folder / "images").rename(self.folder / "moved")
        moved = [self.folder / "moved" / image.relative_to(self.folder / "images") for image in images]
        again = self.predictions("resnet", *arguments, "--predict", *moved)
        self.assertEqual([line[1:] for line in again], [line[1:] for line in found])
        self.write("no.png", "not an image")
        for options in ([], self.settings("data.on_error=skip")):
            self.assertIn("no.png", self.run_one("resnet", *arguments, *options, "--predict", "no.png", status=2).err)
        skipping = self.run_one("resnet", *arguments, *self.settings("data.on_error=skip"), "--predict", "no.png", moved[0], "gone.png")
        self.assertEqual([line.split("\t")[1:] for line in skipping.out.splitlines()], [found[0][1:]])
        self.assertRegex(skipping.err, r"\Aunreadable files that were left out: 2; the first: no.png: is neither JPEG nor PNG [^\n]*\n\Z")

    def test_what_cannot_be_predicted(self):
        self.run_one("convnet", *self.cnn("training.epochs=1"))
        result = self.run_one("convnet", *self.cnn(), "--predict", "digits/t10k-labels-idx1-ubyte", status=2)
        self.assertIn("t10k-labels-idx1-ubyte: begins with 2049, but images begin with 2051", result.err)
        result = self.run_one("mlp", *self.iris("data.path=gone.csv"), "--weights", "gone.safetensors", "--predict", "x.csv", status=2)
        self.assertIn("gone.safetensors", result.err)
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"), "--replace")
        if support.HAS_MPI:
            result = self.run_ranks(2, "mlp", *self.iris("output.dir=run"), "--predict", "x.csv", status=2)
            self.assertIn("--predict is for one rank; start the program without mpirun", result.text)


class FineTune(ProgramTest):
    def test_skipped_parameters_keep_their_start(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        weights = self.checkpoint("run") / "weights.safetensors"
        still = ["training.optimizer.learning_rate=1e-30", "training.optimizer.weight_decay=0", "training.epochs=1"]
        self.run_one("mlp", *self.iris(*still, "output.dir=start"))
        self.run_one("mlp", *self.iris(*still, "output.dir=tuned"), "--weights", weights, "--skip", "fc3.*", "--skip", "fc2.bias")
        old, start, tuned = self.weights("run"), self.weights("start"), self.weights("tuned")
        for name in old:
            kept = start if name.startswith("fc3.") or name == "fc2.bias" else old
            self.assertLess(max(abs(a - b) for a, b in zip(tuned[name], kept[name])), 1e-20, name)
            self.assertGreater(max(abs(a - b) for a, b in zip(old[name], start[name])), 1e-6, name)
        result = self.run_one("mlp", *self.iris(), "--weights", weights, "--skip", "fc4.*", status=2)
        self.assertIn("no parameter is named like 'fc4.*', so that nothing would be skipped", result.err)

    def test_frozen_parameters_keep_their_values(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        weights = self.checkpoint("run") / "weights.safetensors"
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            self.run_ranks(ranks, "mlp", *self.iris("training.freeze=['fc1.*', fc2.bias]", "output.dir=tuned"), "--weights", weights, "--steps", 3)
            old, tuned = self.weights("run"), self.weights("tuned")
            for name in old:
                self.assertEqual(old[name] == tuned[name], name.startswith("fc1.") or name == "fc2.bias", name)
        for setting, says in (("training.freeze=['fc4.*']", "no parameter is named like 'fc4.*', so that nothing would be frozen"),
                              ("training.freeze=['*']", "all parameters are frozen, so that nothing would be trained"),
                              ("training.freeze=fc1", "training.freeze is 'fc1'; it must be a list of texts")):
            self.assertIn(says, self.run_one("mlp", *self.iris(setting), status=2).err)


if __name__ == "__main__":
    support.main()
