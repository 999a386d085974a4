"""Tests what the programs learn, and that the result does not depend on the number of ranks."""

import math
import random
import re
import shutil
import subprocess

import support
from support import SOURCE, ProgramTest, difference


def validation_accuracy(log):
    return [line for line in log if line["event"] == "epoch"][-1]["val_accuracy"]


class Iris(ProgramTest):
    def test_five_folds(self):
        accuracies = []
        for fold in range(5):
            self.run_one("mlp", *self.iris("data.folds=5", f"data.fold={fold}", f"output.dir=run{fold}"), "--log", f"log{fold}")
            accuracies.append(validation_accuracy(self.log(f"log{fold}")))
        self.assertGreaterEqual(sum(accuracies) / 5, 0.95, accuracies)

    def test_two_ranks_on_the_shipped_split(self):
        self.mpirun(2, self.command("mlp", *self.iris("output.dir=run"), "--log", "log"))
        self.assertGreaterEqual(validation_accuracy(self.log("log")), 0.96)


class Precision(ProgramTest):
    def test_iris_in_16_bits(self):
        for precision in ("bfloat16", "float16"):
            settings = (f"training.precision={precision}", f"output.dir={precision}")
            ended = self.mpirun(2, self.command("mlp", *self.iris(*settings), "--log", f"{precision}.log"))
            self.assertIn(f"training.precision {precision} needs less memory than float32; on a CPU it is not faster", ended.out)
            self.assertGreaterEqual(validation_accuracy(self.log(f"{precision}.log")), 0.96)
        self.assertRegex(ended.out, r"\n  loss scale +[0-9,]+ at the end; steps skipped: [0-9]+\n")

    def test_strategies_bring_the_weights_that_programs_read(self):
        for strategy in ("allreduce", "scatter-gather"):
            self.mpirun(2, self.command("convnet", *self.cnn("training.precision=bfloat16", f"distributed.strategy={strategy}",
                                                             f"output.dir={strategy}")))
        self.assertEqual(self.weight_bytes("allreduce"), self.weight_bytes("scatter-gather"))


class Ranks(ProgramTest):
    """Any number of ranks gives the same weights, also if some ranks have no sample in the last step."""

    def check(self, program, arguments, precision, limit, counts=(2, 3, 4), steps=50):
        for ranks in (1, *counts):
            self.run_ranks(ranks, program, *arguments, *self.settings(f"training.precision={precision}", f"output.dir=run{ranks}"),
                           "--steps", steps)
        for ranks in counts:
            self.assertLess(difference(self.weights("run1"), self.weights(f"run{ranks}")), limit, f"{ranks} ranks")

    def test_iris_in_double(self):
        self.check("mlp", self.iris("training.batch_size=17", "data.limit=104"), "float64", 1e-10)

    def test_iris_in_float(self):
        self.check("mlp", self.iris(), "float32", 1e-5, counts=(2, 3))

    def test_a_net_with_dropout_in_double(self):
        # The last of the batches of 10 has 7 of the 47 samples, and the last of the batches of 7 has one of
        # the 22.
        self.check("convnet", self.cnn("training.epochs=10"), "float64", 1e-10)

    def test_a_rank_without_samples(self):
        self.check("convnet", self.cnn("training.epochs=13", "training.batch_size=7", "data.limit=22"), "float64", 1e-10)

    def test_a_net_with_dropout_in_float(self):
        self.check("convnet", self.cnn("training.epochs=10", "training.optimizer.name=sgd", "training.optimizer.learning_rate=0.01",
                                       "training.optimizer.momentum=0.9"), "float32", 1e-5, counts=(2,))

    def test_strategies_that_sum_gradients_give_the_same_bytes(self):
        for strategy, ranks in {"allreduce": 2, "reduce-broadcast": 2, "send-recv": 3, "scatter-gather": 2}.items():
            self.mpirun(ranks, self.command("convnet", *self.cnn(f"distributed.strategy={strategy}", f"output.dir={strategy}")))
        for strategy in ("reduce-broadcast", "send-recv", "scatter-gather"):
            self.assertEqual(self.weight_bytes("allreduce"), self.weight_bytes(strategy), strategy)

    def test_rank_0_alone_has_the_data(self):
        self.mpirun(3, self.command("convnet", *self.cnn("output.dir=whole")))
        for more in (["--steps", 7], ["--resume"]):
            with_data = self.command("convnet", *self.cnn("output.dir=sent", "distributed.strategy=scatter-gather"), *more)
            run = self.start_ranks(1, *with_data, ":", "-n", 2, *with_data, "--set", "data.path=nowhere",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            output, _ = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, output)
        self.assertEqual(self.weight_bytes("whole"), self.weight_bytes("sent"))

    def test_rank_0_alone_has_the_data_with_any_loss(self):
        for loss in ("softmax_cross_entropy", "squared_error", "binary_cross_entropy"):
            for strategy in ("allreduce", "scatter-gather"):
                self.mpirun(2, self.command("mlp", *self.iris(f"model.loss={loss}", "training.epochs=2", f"distributed.strategy={strategy}",
                                                              f"output.dir={strategy}")))
            self.assertEqual(self.weight_bytes("allreduce"), self.weight_bytes("scatter-gather"), loss)

    def test_averaged_weights_learn(self):
        settings = ("distributed.strategy=local", "distributed.every=5", "output.dir=run")
        self.mpirun(2, self.command("mlp", *self.iris(*settings), "--log", "log"))
        self.assertGreaterEqual(validation_accuracy(self.log("log")), 0.96)

    def test_clients_of_an_asynchronous_server_learn(self):
        for strategy in ("async-server", "downpour"):
            settings = (f"distributed.strategy={strategy}", "distributed.push_every=4", "output.dir=run")
            ended = self.mpirun(3, self.command("mlp", *self.iris(*settings), "--log", "log"))
            self.assertGreaterEqual(validation_accuracy(self.log("log")), 0.93, strategy)  # 28 flowers of 30
            self.assertRegex(ended.out, r"(?m)^clients of the parameter server\n  rank    steps   pushes   mean staleness   idle$")

    def test_micro_batches_give_the_same_weights(self):
        for count in (1, 3):
            self.run_one("convnet", *self.cnn(f"training.micro_batches={count}", f"output.dir=run{count}", "training.precision=float64"))
        self.assertLess(difference(self.weights("run1"), self.weights("run3")), 1e-10)


class Mnist(ProgramTest):
    """The net of the zoo on small data in MNIST's format and size."""

    def data(self, count):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "mnist", part, count, size=28, classes=10)
        return [SOURCE / "models/mnist_cnn.yaml", *self.settings("data.path=mnist", "output.dir=run")]

    def test_the_number_of_parameters(self):
        self.assertRegex(self.run_one("convnet", *self.data(10), "--dry-run").out, r"(?m)^690,590 parameters")

    def test_a_short_run_learns(self):
        arguments = self.data(50)
        self.run_ranks(2 if support.HAS_MPI else 1, "convnet", *arguments, *self.settings("training.batch_size=10", "training.epochs=20"), "--log", "log", within=200)
        losses = [line["train_loss"] for line in self.log("log") if line["event"] == "epoch"]
        self.assertLess(losses[-1], 0.75 * losses[0], losses)


class Autoencoder(ProgramTest):
    """The autoencoder of the zoo on small data in MNIST's format and size."""

    def arguments(self, *settings):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "mnist", part, 40, size=28, classes=10)
        return [SOURCE / "models/mnist_autoencoder.yaml", *self.settings("data.path=mnist", "training.batch_size=10", *settings)]

    def test_ranks_and_micro_batches_learn_the_same(self):
        figures = []
        for ranks, *settings in ((1,), (1, "training.micro_batches=2"), (2 if support.HAS_MPI else 1,)):
            arguments = self.arguments("training.epochs=3", "training.precision=float64", "output.dir=run", *settings)
            ran = self.run_ranks(ranks, "mlp", *arguments, "--replace", "--log", "log")
            losses = [line["train_loss"] for line in self.log("log") if line["event"] == "epoch"][-3:]
            self.assertLess(losses[-1], 0.95 * losses[0], losses)
            figures.append((self.weights("run"), re.findall(r"validation (?:loss|rmse) +[0-9.]+", ran.out)))
        for weights, printed in figures[1:]:
            self.assertLess(difference(figures[0][0], weights), 1e-10)
            self.assertEqual(printed, figures[0][1])

    def test_the_reconstruction_of_each_image_is_a_row(self):
        """The rows have the error that the validation reports."""
        for loss in ("mse", "binary_cross_entropy"):
            arguments = self.arguments(f"model.loss={loss}", "training.epochs=3", "output.dir=run")
            trained = self.run_one("mlp", *arguments, "--replace").out
            file = self.folder / "mnist/t10k-images-idx3-ubyte"
            pixels = [value / 255 for value in file.read_bytes()[16:]]
            lines = self.run_one("mlp", *arguments, "--predict", file).out.splitlines()
            self.assertEqual([line.split("\t")[0] for line in lines], [f"{file} image {i + 1}" for i in range(40)])
            found = [float(value) for line in lines for value in line.split("\t")[1:]]
            self.assertEqual(len(found), len(pixels))
            rmse = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, pixels)) / len(pixels))
            self.assertAlmostEqual(rmse, float(re.findall(r"validation rmse +([0-9.]+)", trained)[-1]), delta=1e-4)

    def test_what_cannot_be_reconstructed(self):
        refused = self.run_one("mlp", *self.iris("model.task=reconstruction", "model.loss=mse"), status=2)
        self.assertIn("data.format is csv, and model.task is reconstruction, which is for images", refused.err)
        self.run_one("mlp", *self.arguments("training.epochs=1", "output.dir=run"))
        support.write_idx(self.folder / "small", "t10k", 4, size=10)
        refused = self.run_one("mlp", *self.arguments("output.dir=run"), "--predict", "small/t10k-images-idx3-ubyte", status=2)
        self.assertIn("has images [1,10,10] and the model takes [1,28,28]", refused.err)


class UNet(ProgramTest):
    """The U-Net of the zoo, which removes noise, on small data in MNIST's format and size."""

    def arguments(self, *settings):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "mnist", part, 20, size=28, classes=10)
        return [SOURCE / "models/mnist_unet.yaml", *self.settings("data.path=mnist", "training.batch_size=10", "training.epochs=3", "model.width=4",
                                                                  "training.precision=float64", "model.synchronised_batch_norm=true", *settings)]

    def test_ranks_workers_and_a_stop_change_nothing(self):
        """The noise of a sample depends on the seed, the epoch and the sample alone."""
        whole = self.run_one("unet", *self.arguments("output.dir=whole"), "--log", "log").out
        losses = [line["train_loss"] for line in self.log("log") if line["event"] == "epoch"]
        self.assertLess(losses[-1], 0.97 * losses[0], losses)
        self.run_ranks(2 if support.HAS_MPI else 1, "unet", *self.arguments("output.dir=ranks", "data.workers=2"))
        self.run_one("unet", *self.arguments("output.dir=stopped"), "--steps", 3)
        resumed = self.run_one("unet", *self.arguments("output.dir=stopped"), "--resume").out
        for other in ("ranks", "stopped"):
            self.assertLess(difference(self.weights("whole"), self.weights(other)), 1e-10)
        self.run_one("unet", *self.arguments("output.dir=other", "training.seed=2"))
        self.assertGreater(difference(self.weights("whole"), self.weights("other")), 1e-3)
        figures = re.findall(r"validation (loss|rmse|psnr) +([0-9.]+)", whole)
        self.assertEqual(re.findall(r"validation (loss|rmse|psnr) +([0-9.]+)", resumed)[-3:], figures[-3:])
        evaluated = self.run_one("unet", *self.arguments("output.dir=whole"), "--evaluate").out
        self.assertEqual(re.findall(r"validation (loss|rmse|psnr) +([0-9.]+)", evaluated), figures[-3:])

    def test_another_noise_is_refused(self):
        """Figures with another noise cannot be compared with those of the checkpoint."""
        arguments = self.arguments("output.dir=run", "data.noise=0.3")
        self.run_one("unet", *arguments, "--steps", 3)
        other = [*self.arguments("output.dir=run"), *self.settings("data.noise=0.1")]
        for words in (["--resume"], ["--evaluate"]):
            self.assertIn("was made with data.noise 0.3 and now it is 0.1; ", self.run_one("unet", *other, *words, status=2).err)

    def test_a_file_to_predict_gets_no_noise(self):
        self.run_one("unet", *self.arguments("output.dir=run"))
        file = self.folder / "mnist/t10k-images-idx3-ubyte"
        lines = [self.run_one("unet", *self.arguments("output.dir=run", f"data.noise={noise}"), "--predict", file).out for noise in (0, 0.3)]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual([len(line.split("\t")) for line in lines[0].splitlines()], [1 + 28 * 28] * 20)

    def test_predicted_images_are_written_as_files(self):
        self.run_one("unet", *self.arguments("output.dir=run"))
        file = self.folder / "mnist/t10k-images-idx3-ubyte"
        lines = self.run_one("unet", *self.arguments("output.dir=run"), "--images", "out", "--predict", file).out.splitlines()
        paths = [f"out/{file.name} image {i + 1}.png" for i in range(20)]
        self.assertEqual(lines, [f"{file} image {i + 1}\t{path}" for i, path in enumerate(paths)])
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()}, {path.split("/")[1] for path in paths})
        self.assertTrue(all((self.folder / path).read_bytes().startswith(b"\x89PNG") for path in paths))
        refused = self.run_one("mlp", *self.iris("output.dir=iris"), "--images", "out", status=2).err
        self.assertIn("--images requires --predict", refused)
        self.run_one("mlp", *self.iris("output.dir=iris", "training.epochs=1"))
        (self.folder / "rows.csv").write_text("sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n")
        refused = self.run_one("mlp", *self.iris("output.dir=iris", "training.epochs=1"), "--images", "out", "--predict", "rows.csv", status=2).err
        self.assertIn("--images writes the images of a reconstruction or segmentation, and model.task is classification; leave it out", refused)


class Targets(ProgramTest):
    """Images with targets of their own: bright squares on noise, and their masks, in which some pixels have no class."""

    SIZE = 16

    def write_pairs(self):
        draws = random.Random(1)
        for name in [f"train/{i}" for i in range(8)] + [f"val/{i}" for i in range(4)]:
            left, top, unknown = draws.randrange(8), draws.randrange(8), draws.randrange(3)
            places = [(x, y) for y in range(self.SIZE) for x in range(self.SIZE)]
            classes = [255 if y < unknown else int(left <= x < left + 8 and top <= y < top + 8) for x, y in places]
            pixels = [value for one in classes for value in [draws.randrange(60) + (150 if one == 1 else 0)] * 3]
            support.write_png(self.folder / f"images/{name}.png", self.SIZE, 3, pixels)
            support.write_png(self.folder / f"masks/{name}.png", self.SIZE, 1, classes)
            support.write_png(self.folder / f"sharp/{name}.png", self.SIZE, 3, [200 * (one == 1) for one in classes for _ in range(3)])

    def arguments(self, task, *settings):
        self.write_pairs()
        keys, targets = {"segmentation": (", ignored_class: 255, class_weights: [1, 2]", "masks, classes: 2"), "reconstruction": ("", "sharp")}[task]
        yaml = self.write("pairs.yaml", f"""
model: {{name: unet, task: {task}, depth: 2, width: 4, synchronised_batch_norm: true{keys}}}
data: {{format: image_folder, path: images, targets: {targets}, image_size: 16, resize_size: 16}}
training: {{batch_size: 4, epochs: 4, precision: float64, optimizer: {{name: adam, learning_rate: 0.02}}}}
""")
        return [yaml, *self.settings(*settings)]

    def figures(self, text):
        return re.findall(r"validation (loss|rmse|psnr|pixel_accuracy|mean_iou) +([0-9.]+)", text)

    def test_ranks_learn_the_same(self):
        """Ranks have other numbers of pixels with a class."""
        for task, names in (("segmentation", ["loss", "pixel_accuracy", "mean_iou"]), ("reconstruction", ["loss", "rmse", "psnr"])):
            whole = self.run_one("unet", *self.arguments(task, f"output.dir={task}"), "--log", f"{task}.log").out
            self.run_ranks(2 if support.HAS_MPI else 1, "unet", *self.arguments(task, f"output.dir={task}2", "data.workers=2"))
            self.assertLess(difference(self.weights(task), self.weights(f"{task}2")), 1e-10)
            self.assertEqual([name for name, _ in self.figures(whole)[-3:]], names)
            losses = [line["train_loss"] for line in self.log(f"{task}.log") if line["event"] == "epoch"]
            self.assertLess(losses[-1], 0.8 * losses[0], losses)
            evaluated = self.run_one("unet", *self.arguments(task, f"output.dir={task}"), "--evaluate").out
            self.assertEqual(self.figures(evaluated), self.figures(whole)[-3:])
            if task == "segmentation":
                self.assertEqual(len(re.findall(r"class [01]  iou 0\.[0-9]{4}", evaluated)), 2, evaluated)

    def test_predicted_masks_are_files(self):
        arguments = self.arguments("segmentation", "output.dir=run", "training.epochs=1")
        self.run_one("unet", *arguments)
        shutil.rmtree(self.folder / "masks")
        pixels = self.run_one("unet", *arguments, "--predict", "images/val/0.png").out.split("\t")
        self.assertEqual(len(pixels), 1 + self.SIZE**2)
        self.assertLessEqual(set(pixels[1:]), {"0", "1", "0\n", "1\n"})
        self.assertEqual(self.run_one("unet", *arguments, "--predict", "--images", "out", "images/val/0.png").out, "images/val/0.png\tout/0.png\n")
        self.assertEqual((self.folder / "out/0.png").read_bytes()[24:26], b"\x08\x00")  # 8 bits, grey

    def test_an_ignored_class_has_no_iou(self):
        arguments = self.arguments("segmentation", "output.dir=run", "training.epochs=1", "model.ignored_class=0")
        for mask in self.folder.glob("masks/*/*.png"):
            support.write_png(mask, self.SIZE, 1, [0, 1] * (self.SIZE**2 // 2))
        self.run_one("unet", *arguments)
        evaluated = self.run_one("unet", *arguments, "--evaluate").out
        self.assertRegex(evaluated, r"class 0  is ignored\nclass 1  iou [01]\.[0-9]{4}\n")
        figures = [float(re.search(pattern, evaluated)[1]) for pattern in (r"mean_iou +([0-9.]+)", r"class 1  iou ([0-9.]+)")]
        self.assertAlmostEqual(*figures, delta=1e-3)

    def test_a_mask_with_another_number_ends_the_run(self):
        arguments = self.arguments("segmentation", "output.dir=run")
        support.write_png(self.folder / "masks/train/3.png", self.SIZE, 1, [7] * self.SIZE**2)
        refused = self.run_one("unet", *arguments, status=2).err
        self.assertIn("masks/train/3.png: pixel 0 of row 0 has the number 7 and there are 2 classes, from 0 to 1, or 255 to be ignored; ", refused)

    def test_masks_of_the_validation_are_tried_before_the_first_step(self):
        arguments = self.arguments("segmentation", "output.dir=run")
        for mask in self.folder.glob("masks/val/*.png"):
            support.write_png(mask, self.SIZE, 1, [7] * self.SIZE**2)
        ended = self.run_one("unet", *arguments, status=2)
        self.assertIn("masks/val/0.png: pixel 0 of row 0 has the number 7", ended.err)
        self.assertNotIn("step 1", ended.out)

    def test_masks_that_are_ignored_everywhere_end_the_run(self):
        arguments = self.arguments("segmentation", "output.dir=run")
        for mask in self.folder.glob("masks/*/*.png"):
            support.write_png(mask, self.SIZE, 1, [255] * self.SIZE**2)
        refused = self.run_one("unet", *arguments, status=2).err
        self.assertIn("epoch 1 has trained nothing: all of its labels are ignored", refused)
        self.assertFalse((self.folder / "run/latest.safetensors").exists())

    def test_float16_trains_masks_from_the_first_step(self):
        ended = self.run_one("unet", *self.arguments("segmentation", "output.dir=run", "training.precision=float16"), "--log", "log")
        self.assertIn("loss scale", ended.out)
        epochs = [line for line in self.log("log") if line["event"] == "epoch"]
        self.assertEqual([(epoch["loss_scale"], epoch["skipped_steps"]) for epoch in epochs], [(65536 / 256 / 8, 0)] * 4)


class ResNet(ProgramTest):
    def test_one_batch_is_learnt_by_heart(self):
        """The loss falls from the first step on, because the last scale of each block begins at zero.
        Otherwise it would first rise to 7."""
        support.draw_images(self.folder / "images", classes=5, train=4, val=1, size=64)
        self.run_ranks(2 if support.HAS_MPI else 1, "resnet", SOURCE / "models/resnet50.yaml", *self.settings(
            "data.path=images", "data.image_size=64", "data.limit=16", "data.augment=false", "data.shuffle=false", "data.validation_limit=0",
            "training.batch_size=16", "training.schedule={name: constant}", "training.optimizer.weight_decay=0", 'output.dir=""'),
            "--steps", "20", "--log", "log", within=600)
        losses = [line["loss"] for line in self.log("log") if line["event"] == "step"]
        self.assertEqual(len(losses), 20)
        self.assertEqual(max(losses), losses[0], losses)
        self.assertLess(losses[-1], 0.3, losses)

    def test_a_short_run_on_images(self):
        support.draw_images(self.folder / "images")
        yaml = SOURCE / "models/resnet18.yaml"
        self.run_ranks(2 if support.HAS_MPI else 1, "resnet", yaml, *self.settings("data.path=images", "data.image_size=32", "training.batch_size=6",
                       "training.epochs=1", "training.schedule.warmup_epochs=0", "output.dir=run"), "--log", "log", within=200)
        self.assertEqual([line["event"] for line in self.log("log")], ["step", "step", "step", "epoch"])


if __name__ == "__main__":
    support.main()
