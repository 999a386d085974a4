"""Mistakes of a user: one rank prints one sentence, the status is 2, and nothing hangs."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest.mock

import support
from support import SOURCE, ProgramTest

# With a sanitizer only one rank makes the mistake, as another one would read the same input in the same way.
SEVERAL_RANKS = support.HAS_MPI and "PLEXAURA_SANITIZED" not in os.environ


class MistakeTest(ProgramTest):
    def check(self, pattern, program, *arguments, ranks=(1,), status=2):
        for count in ranks if SEVERAL_RANKS else [1]:
            result = self.run_ranks(count, program, *arguments, status=status, within=30)
            self.check_sentence(pattern, result)

    def check_ranks(self, pattern, program, *arguments):
        """Runs with a single rank, and with two, of which one reports."""
        self.check(pattern, program, *arguments, ranks=(1, 2))

    def check_sentence(self, pattern, result):
        progress = re.compile("epoch \\d|[\\d,]+ parameters, |classes: ")
        lines = [line for line in support.without_mpirun(result.text) if not progress.match(line)]
        self.assertEqual(len(lines), 1, result.text)
        self.assertRegex(lines[0], pattern)

    def yaml(self, *changes):
        """Writes the YAML file of Iris with pieces of its text replaced."""
        text = (SOURCE / "models/iris.yaml").read_text().replace("models/iris.csv", str(SOURCE / "models/iris.csv"))
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write("wrong.yaml", text)


class WrongInput(MistakeTest):
    def test_the_command_line(self):
        iris = self.iris("output.dir=run")
        self.check_ranks("--bogus.*; see mlp --help$", "mlp", *iris, "--bogus")
        for program, example in (("mlp", "iris"), ("convnet", "mnist_cnn"), ("resnet", "resnet18"), ("vgg", "vgg16"),
                                 ("mobilenet_v2", "mobilenet_v2"), ("convnext", "convnext_tiny"), ("unet", "mnist_unet")):
            self.check(f"^{program}: no YAML file was named; for example: {program} models/{example}.yaml$", program)
        self.check("--epochs.*; a key of the file is set as --set training.epochs=3; see mlp --help$", "mlp", *iris, "--epochs", "3")
        self.check("--steps: '0' must be a whole number above 0", "mlp", *iris, "--steps", "0")
        self.check("--steps: 'many' must be a whole number above 0", "mlp", *iris, "--steps", "many")
        self.check("--steps.*; see mlp --help$", "mlp", *iris, "--steps")
        self.check("--program needs --dry-run", "mlp", *iris, "--program")
        self.check("--device needs --dry-run, .*; to choose a GPU of this machine, write --backend cuda:device=0$", "mlp", *iris, "--backend", "cuda",
                   "--device", "h200")
        self.check("the backend 'cpu' cannot describe a device that is not there; 'cuda' can", "mlp", *iris, "--dry-run", "--device", "h200")
        if support.DESCRIBES_GPUS:
            self.check("no description of a GPU 'h300'; name one of those that it has: a100, h100, h200, b200$", "mlp", *iris, "--dry-run", "--backend", "cuda",
                       "--device", "h300")
            self.check("the backend 'cuda' has no option 'tf23'; it has: branches, device, fuse, tf32$", "mlp", *iris, "--dry-run", "--backend", "cuda:tf23=1",
                       "--device", "h200")
        if SEVERAL_RANKS:
            self.check("--device plans for one rank, and there are 2; start the program without mpirun$", "mlp", *iris, "--dry-run", "--backend", "cuda",
                       "--device", "h200", ranks=(2,))
        self.check_ranks("^mlp: --resume and --weights exclude each other: .*; give one of them$", "mlp", *iris, "--resume", "--weights", "some.safetensors")

    def test_overrides(self):
        def override(pattern, text):
            self.check(pattern, "mlp", *self.iris(), "--set", text)
        override("unknown key 'batchsize' in training; did you mean 'batch_size'\\?", "training.batchsize=8")
        override("unknown key 'trainig' at the top; did you mean 'training'\\?", "trainig.epochs=8")
        override("training.epochs is '2.5'; it must be a whole number >= 1 and <= 1000000000$", "training.epochs=2.5")
        override("training.epochs=", "training.epochs=")
        self.check_ranks("training.goal.metric is 'acuracy', which the validation of this model does not report; give loss or accuracy; did you mean 'accuracy'\\?$",
                         "mlp", *self.iris("training.goal.metric=acuracy", "training.goal.mode=max"))
        override("training.optimizer.learning_rate is a section of keys; it must be one learning rate for all parameters, a number > 0$",
                 "training.optimizer.learning_rate={fc1: 0.1}")
        override("data.label is a list; it must be the name of one column, or its number if there is no header$", "data.label=[6,7,8]")
        override("'name:sgd' has no space after the colon; write 'name: sgd'$", "training.optimizer={name:sgd,learning_rate:0.1}")
        override("data.delimiter must be one character", "data.delimiter=||")
        override("no_equals_sign", "no_equals_sign")
        override("distributed.strategy is 'all-reduce'; it must be one of .*did you mean 'allreduce'", "distributed.strategy=all-reduce")
        override("distributed.algorithm is 'rings'; it must be one of .*did you mean 'ring'", "distributed.algorithm=rings")

    def test_algorithms(self):
        self.check_ranks("distributed.algorithm has no effect here, because distributed.strategy is reduce-broadcast, whose ranks make no sums together; remove it, or choose allreduce, local or elastic$", "mlp",
                         *self.iris("distributed.strategy=reduce-broadcast", "distributed.algorithm=auto"))
        for key in ("algorithm=auto", "verify_every=5", "rebroadcast_every=5", "every=2"):
            self.check_ranks(f"distributed.{key.split('=')[0]} has no effect here, because distributed.strategy is scatter-gather(, whose ranks make no sums together)?; remove it, or choose .*$",
                             "mlp", *self.iris("distributed.strategy=scatter-gather", f"distributed.{key}"))
        if SEVERAL_RANKS:
            self.check("^distributed.algorithm is 'window', but the ranks do not share memory: 'window' adds in memory that all ranks share; take", "mlp",
                       *self.iris("distributed.algorithm=window", "distributed.shared_memory=false"), ranks=(2,))

    def test_keys(self):
        self.check("^wrong.yaml:20:3: unknown key 'epoch' in training; did you mean 'epochs'\\?|is missing; is 'epoch'",
                   "mlp", self.yaml(("epochs:", "epoch:")).name)
        self.check("^wrong.yaml:\\d+:\\d+: training.batch_size is 'eight'; it must be a whole number >= 1 and <= 2147483648$", "mlp",
                   self.yaml(("batch_size: 8", "batch_size: eight")).name)
        self.check_ranks("training.optimizer.momentum has no effect here, because training.optimizer.name is adam; remove it, or choose sgd, lars or rmsprop$", "mlp", self.yaml(("name: sgd", "name: adam")).name)
        self.check("batch_size and batch_per_rank are both given; give one of them$", "mlp", self.yaml(("batch_size: 8", "batch_size: 8\n  batch_per_rank: 4")).name)
        self.check("data.horizontal_flip has no effect here, because data.format is csv; remove it, or choose image_folder or shards$", "mlp", self.yaml(("split_seed: 1", "horizontal_flip: true")).name)
        self.check("model.name is 'resnet', but this program trains only mlp; run resnet$", "mlp",
                   self.yaml(("name: mlp", "name: resnet")).name)
        self.check("model.name is 'perceptron'; it must be one of convnet, convnext, mlp, mobilenet_v2, resnet, unet, vgg$", "mlp", self.yaml(("name: mlp", "name: perceptron")).name)
        self.check("warmup_epochs is '61'; it must be a number >= 0 and <= 60", "mlp", self.yaml(("warmup_epochs: 0", "warmup_epochs: 61")).name)
        self.check("data.fold is '5'; it must be a whole number >= 0 and <= 4$", "mlp",
                   self.yaml(("split_seed: 1", "folds: 5\n  fold: 5")).name)
        self.check("^wrong.yaml:\\d+:\\d+: ", "mlp", self.yaml(("[30, 20]", "[30, 20")).name)

    def test_files(self):
        self.check("missing.yaml.*No such file", "mlp", "missing.yaml")
        self.check_ranks("data.path: ?.*'nowhere' does not exist|data.path 'nowhere' does not exist", "mlp", *self.iris("data.path=nowhere"))
        self.check_ranks("no.safetensors.*No such file", "mlp", *self.iris(), "--weights", "no.safetensors")
        self.check_ranks("'no/such/log'.*No such file", "mlp", *self.iris(), "--log", "no/such/log")
        self.check_ranks("^cannot create 'no/such/trace': No such file or directory; name a file in a folder that exists and can be written$", "mlp",
                         *self.iris("output.dir=run"), "--profile", "no/such/trace")
        self.assertFalse(self.checkpoints("run"), "trained before the profile was tried")
        self.check("--resume needs output.dir", "mlp", self.yaml(("output:\n  dir: runs/iris", "")).name, "--resume")

    def test_pipes_and_devices(self):
        """No process writes into the pipe or reads from it, so a program that opened it would wait forever.
        """
        os.mkfifo(self.folder / "pipe")
        for name in ("pipe", "/dev/zero"):
            self.check(f"^cannot read '{name}': it is not a regular file; name another$", "mlp", *self.iris(f"data.path={name}"))
            self.check(f"^cannot read '{name}': it is not a regular file; name another$", "mlp", *self.iris(), "--weights", name)
        for option in ("--log", "--profile"):
            self.check(f"^{option}: 'pipe' is a pipe; name a regular file$", "mlp", *self.iris(), option, "pipe")
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        self.check("^cannot read 'pipe': it is not a regular file; name another$", "mlp", *self.iris("output.dir=run"), "--predict", "pipe")

    def test_outputs_that_would_destroy_something(self):
        iris = self.iris()
        table = self.write("table.csv", (SOURCE / "models/iris.csv").read_text())
        before = table.read_text()
        for option in ("--log", "--profile"):
            self.check_ranks(f"^{option}: 'table.csv' exists and contains something other than what {option} writes; name another file, so that it stays as it is$",
                             "mlp", *self.iris("data.path=table.csv"), option, "table.csv")
            self.assertEqual(table.read_text(), before)
        self.check("^--log and --profile name one file, 'one'; name two$", "mlp", *iris, "--log", "one", "--profile", "./one")
        self.assertFalse((self.folder / "one").exists())
        for _ in range(2):  # they may continue and replace their own files
            self.run_one("mlp", *iris, "--steps", 1, "--log", "log", "--profile", "trace")
        self.assertEqual(len(self.log("log")), 2)
        self.check("^--log: 'trace' exists and contains", "mlp", *iris, "--log", "trace")
        for option in ("--log", "--profile"):
            for name in ("checkpoint-000015", "checkpoint-7/log", "checkpoint.unfinished", ".lock"):
                self.check(f"^{option}: 'run/{name}' is at a place that output.dir keeps for checkpoints; name another file$", "mlp",
                           *self.iris("output.dir=./run"), option, f"run/{name}")
        foreign = self.write("run/checkpoint-500/model.safetensors", "of another program")
        self.check_ranks("^run/checkpoint-500/model.safetensors is not of a checkpoint of Plexaura and would be removed with 'checkpoint-500'; move it "
                         "away, or name another folder in output.dir$", "mlp", *self.iris("output.dir=run"))
        self.assertEqual(foreign.read_text(), "of another program")

    def test_options_without_text(self):
        self.check("^mlp: --predict names no file; write mlp FILE.yaml --predict FILE ...$", "mlp", *self.iris(), "--predict", "")
        for option in ("--log", "--weights", "--profile", "--backend"):
            self.check(f"^mlp: {option}: the text is empty; give it one, or leave out the option; see mlp --help$", "mlp", *self.iris(), option, "")

    def test_paths_that_lead_nowhere(self):
        (self.folder / "loop").symlink_to("loop")
        for name, reason in (("loop", "Too many levels of symbolic links"), ("x" * 300, "File name too long")):
            self.check_ranks(f"data.path '{name}' cannot be opened: {reason}; check the path and its permissions$", "mlp", *self.iris(f"data.path={name}"))
            self.check(f"^cannot read '{name}': {reason}; check the path and its permissions$", "mlp", name)
            self.check(f"^cannot create {name}: {reason}; name a folder that can be written in output.dir$", "mlp", *self.iris(f"output.dir={name}"))
            self.check(f"^cannot read '{name}': {reason}; ", "mlp", *self.iris(), "--weights", name)
            self.check(f"^cannot create '{name}': {reason}; ", "mlp", *self.iris(), "--log", name)
        self.cnn()
        images = self.folder / "digits/train-images-idx3-ubyte"
        images.unlink()
        images.symlink_to(images.name)
        (self.folder / "digits/train-images-idx3-ubyte.gz").symlink_to(images.name)
        self.check("^cannot read 'digits/train-images-idx3-ubyte': Too many levels of symbolic links; ", "convnet", *self.cnn())

    def test_folders_that_may_not_be_read(self):
        """Runs as a user other than root, because root may read everything."""
        cnn = self.cnn()
        self.folder.chmod(0o755)
        (self.folder / "run").mkdir()
        for name, mode in (("digits", 0), ("run", 0o333)):
            (self.folder / name).chmod(mode)
            self.addCleanup((self.folder / name).chmod, 0o777)
        nobody = 65534 if os.geteuid() == 0 else None
        def refusal(pattern, program, *arguments):
            self.check_sentence(pattern, self.run_one(program, *arguments, status=2, user=nobody))
        refusal("data.path 'digits/table.csv' cannot be opened: Permission denied; check the path and its permissions$", "mlp", *self.iris("data.path=digits/table.csv"))
        refusal("^cannot read 'digits/train-images-idx3-ubyte': Permission denied; ", "convnet", *cnn, *self.settings('output.dir=""'))
        refusal("^cannot read run: Permission denied; name a folder that can be written in output.dir$", "mlp", *self.iris("output.dir=run"), "--resume")

    def test_a_home_folder_that_no_shell_has_put_in(self):
        (self.folder / "home").mkdir()
        with unittest.mock.patch.dict(os.environ, HOME=str(self.folder / "home")):
            self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=~/run"))
            self.assertTrue(self.checkpoints("home/run"))
            self.assertFalse((self.folder / "~").exists())
            self.check_ranks("output.dir is '\\$HOME/run', but variables are not replaced in a configuration; write the value of the variable$", "mlp",
                             *self.iris("output.dir=$HOME/run"))
            self.assertFalse((self.folder / "$HOME").exists())
            self.check(f"data.path '{self.folder}/home/table.csv' does not exist", "mlp", *self.iris("data.path=~/table.csv"))

    def test_a_path_that_was_meant_from_elsewhere(self):
        """The YAML file names its table relative to the root of the project."""
        self.check(f"data.path 'models/iris.csv' does not exist in {self.folder}, but {SOURCE}/models/iris.csv does; name the data's place, "
                   "for example with --set data.path=...$", "mlp", SOURCE / "models/iris.yaml")

    def test_two_ways_to_hold_out(self):
        self.check("data.validation_share and folds are both given; give one of them$", "mlp", *self.iris("data.folds=5", "data.validation_share=0.1"))
        self.check("data.fold has no effect here, because data.folds is not given; remove it, or give data.folds$", "mlp", *self.iris("data.fold=1"))

    def test_backends(self):
        if (support.BUILD / "core/plexaura_cuda.so").exists():
            cuda = "^the backend 'cuda' (needs NVIDIA's driver|was built with CUDA|finds no GPU).* use the backend 'cpu'$"
        else:
            cuda = "^the backend 'cuda' needs the plugin plexaura_cuda.so, which is missing in .*; build Plexaura with -D PLEXAURA_CUDA=ON \\(see docs/guide/gpus.md\\), or use one of the backends that are there: cpu, portable.*$"
        if not pathlib.Path("/dev/nvidia0").exists():
            self.check_ranks(cuda, "mlp", *self.iris(), "--backend", "cuda")
        self.check("^there is no backend 'gpu'; there are: cpu", "mlp", *self.iris(), "--backend", "gpu")

    def test_images(self):
        support.draw_images(self.folder / "images")
        broken = SOURCE / "models/resnet18.yaml"
        settings = self.settings("data.path=images", "data.image_size=32", "training.batch_size=6", "output.dir=run")
        self.check("data.image_size is '0'; it must be a whole number >= 1", "resnet", broken, *settings, *self.settings("data.image_size=0"))
        image = sorted((self.folder / "images/train").glob("*/*.jpg"))[3]
        image.write_bytes(image.read_bytes()[:400])
        self.check_ranks(str(image.relative_to(self.folder)), "resnet", broken, *settings)
        empty = self.folder / "images/train/nothing"
        empty.mkdir()
        self.check_ranks("images/train/nothing", "resnet", broken, *settings)
        empty.rmdir()
        shutil.rmtree(self.folder / "images/val")
        self.check("images/val", "resnet", broken, *settings)
        image.unlink()
        said = self.run_one("resnet", broken, *settings, *self.settings("data.validation_limit=0"), "--dry-run").out
        self.assertIn("17 samples of 3 classes, 0 for validation", said)

    def test_truncated_images_can_be_skipped(self):
        """The count includes images of all ranks, also those that rank 0 never reads: there is no reading
        ahead, and it validates the first half."""
        support.draw_images(self.folder / "images")
        broken = sorted((self.folder / "images/train").glob("*/*.jpg"))[3:11:2]
        broken.append(sorted((self.folder / "images/val").glob("*/*.jpg"))[-1])
        for image in broken:
            image.write_bytes(image.read_bytes()[:400])
        result = self.run_ranks(2 if support.HAS_MPI else 1, "resnet", SOURCE / "models/resnet18.yaml", *self.settings(
            "data.path=images", "data.image_size=32", "training.batch_size=6", "data.on_error=skip", "data.workers=0", "training.epochs=5"), "--steps", 3)
        name = lambda image: re.escape(str(image.relative_to(self.folder)))
        self.assertRegex(result.out, f"unreadable samples +4 of training, replaced by others; the first: {name(broken[0])}: ")
        self.assertRegex(result.out, f"unreadable samples +1 of validation, left out of its figures; the first: {name(broken[4])}: ")

    def test_labels_out_of_range(self):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "digits", part, 20, labels=[0, 1, 2, 3])
        self.check_ranks("^digits/train-labels-idx1-ubyte: record 3 has label 3; with 3 classes labels go from 0 to 2: correct the file or the number of classes$",
                         "convnet", *self.cnn())

    def test_shapes_that_do_not_fit(self):
        def layers(pattern, old, new):
            text = support.CNN
            self.assertIn(old, text)
            self.cnn()
            self.write("wrong.yaml", text.replace(old, new))
            self.check(pattern, "convnet", "wrong.yaml")
        layers("^wrong.yaml:5:7 \\(conv1\\): conv2d.* along H the window reaches over 11 elements and the padded input has 10", "kernel: 3", "kernel: 11")
        layers("^wrong.yaml:11:7 \\(fc2\\): .*\\[1,4,4,3\\] and the data has 3 classes", "    - {type: flatten}\n", "")
        layers("^wrong.yaml:12:7 \\(fc2\\): .* the data has 3 classes", "{type: linear}", "{type: linear, units: 5}")
        layers("layers\\[0\\].type is 'convolution'; it must be one of", "type: conv,", "type: convolution,")
        layers("layers\\[4\\].p is '1.5'; it must be a number >= 0 and < 1", "p: 0.3", "p: 1.5")

    def test_steps_too_small_for_batch_norm(self):
        """A last step of an epoch that is too small is an error, too, which is reported before the first step."""
        self.cnn()
        self.write("wrong.yaml", support.CNN.replace("units: 16}", "units: 16}\n    - {type: batch_norm}"))
        says = "^wrong.yaml:11:7 \\(bn1\\): batch_norm\\(float32\\[1,16\\]\\) has one element per channel.*; "
        for mode in ([], ["--dry-run"]):
            self.check(says + "a step of an epoch has 1 of the 47 samples: give another training.batch_size",
                       "convnet", "wrong.yaml", *self.settings("training.batch_size=1"), *mode)
            self.check_ranks(says + "the last step of an epoch has 1 of the 47 samples( for 2 ranks)?: give another training.batch_size",
                             "convnet", "wrong.yaml", *self.settings("training.batch_size=23"), *mode)
        self.run_one("convnet", "wrong.yaml", *self.settings("training.batch_size=15", "training.epochs=1"))

    def test_images_too_small_for_the_net(self):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "tiny", part, 20, size=8, classes=10)
        yaml = (SOURCE / "models/mnist_cnn.yaml").read_text()
        self.write("mnist.yaml", yaml)
        self.check("^mnist.yaml:16:7 \\(max_pool2\\): .* along H the window reaches over 2 elements and the padded input has 1", "convnet", "mnist.yaml", "--set", "data.path=tiny")

    def test_sizes_that_cannot_be_held(self):
        def setting(pattern, text):
            self.check_ranks(pattern, "mlp", *self.iris("output.dir=run", text))
        setting("^\\S*iris.yaml:\\d+:\\d+: the model needs 8000.1 GB of memory for its parameters and there are .*; make the model smaller$",
                "model.hidden=[1000000,1000000]")
        setting("training.micro_batches is '9223372036854775807'; it must be a whole number >= 1 and <= 8$", "training.micro_batches=9223372036854775807")
        setting("training.batch_size is '9223372036854775807'; it must be a whole number >= 1 and <= 2147483648$",
                "training.batch_size=9223372036854775807")
        setting("training.epochs is '9223372036854775807'; it must be a whole number >= 1 and <= 1000000000$", "training.epochs=9223372036854775807")
        self.check_ranks("data.classes is '9999999999'; it must be a whole number >= 2 and <= 1000000$", "convnet", *self.cnn("data.classes=9999999999"))

    def test_a_place_without_room_or_folder(self):
        for option in ("--log", "--profile"):
            arguments = [*self.iris("output.dir=run"), "--steps", 1, option]
            self.assertEqual(self.run_one("mlp", *arguments, "/dev/full", status=2).err,
                             "cannot write '/dev/full': No space left on device; free space or name another place\n")
            self.assertEqual(self.run_one("mlp", *arguments, "no/such/file", status=2).err,
                             "cannot create 'no/such/file': No such file or directory; name a file in a folder that exists and can be written\n")

    def test_a_log_on_a_full_disk(self):
        self.check_ranks("cannot write '/dev/full': No space left on device; free space or name another place$",
                         "mlp", *self.iris("output.dir=run"), "--log", "/dev/full")

    def test_numbers_that_run_away(self):
        diverging = self.iris("training.optimizer.learning_rate=1e30", "training.watch=true")
        self.check_ranks(" produced (NaN|Inf) at element .*; lower the learning rate, or mend the data or the model", "mlp", *diverging)

    def test_a_mistake_in_the_middle_of_training_ends_soon(self):
        """mpirun would sleep twice for a minute."""
        with unittest.mock.patch.dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="60"):
            self.mpirun(2, self.command("mlp", *self.iris(), "--log", "/dev/full"), status=2, within=50)

    def test_numbers_of_threads_that_cannot_be_had(self):
        for text in ("100000", "20000", "0", "many"):
            done = subprocess.run(self.command("mlp", *self.iris()), cwd=self.folder, env=dict(os.environ, OMP_NUM_THREADS=text),
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"(?m)^OMP_NUM_THREADS is '{text}'; it must be a whole number from 1 to \d+ on a machine of \d+ cores, or unset\n\Z")

    def test_a_checkpoint_with_a_changed_byte(self):
        arguments = self.iris("output.dir=run")
        self.run_one("mlp", *arguments, "--steps", 2)
        for name in ("weights", "state"):
            file = self.checkpoint("run") / f"{name}.safetensors"
            whole = file.read_bytes()
            file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
            self.check_ranks(f"{name}.safetensors': its tensors do not give the checksum in its metadata; the file is damaged: take another copy",
                             "mlp", *arguments, "--resume")
            file.write_bytes(whole)

    def test_files_beside_images_are_ignored(self):
        support.draw_images(self.folder / "images")
        settings = self.settings("data.path=images", "data.image_size=32", "training.batch_size=6", "output.dir=run")
        folder = sorted((self.folder / "images/train").iterdir())[0]
        (folder / "Thumbs.db").write_text("not an image")
        result = self.run_one("resnet", SOURCE / "models/resnet18.yaml", *settings, "--steps", 3)
        self.assertIn("(ignored: 1 file that is not an image)", result.out)


class DifferentRanks(MistakeTest):
    """One rank is started differently."""

    def check_apart(self, pattern, first, second):
        result = self.mpirun(1, [*first, ":", "-n", "1", *second], status=2, within=30)
        self.check_sentence(pattern, result)

    def test_another_file(self):
        self.write("other.yaml", self.yaml(("[30, 20]", "[30, 21]")).read_text())
        self.check_apart("^the ranks differ in 'model.hidden': rank 1 has '\\[30, 21\\]', but rank 0 has '\\[30, 20\\]': start all ranks with the same$",
                         self.command("mlp", *self.iris()), self.command("mlp", "other.yaml"))

    def test_another_table(self):
        table = (SOURCE / "models/iris.csv").read_text().splitlines(keepends=True)
        self.write("other.csv", "".join(table[:1] + table[2:] + table[1:2]))
        self.check_apart("^the ranks differ in 'the samples or their split'", self.command("mlp", *self.iris()), self.command("mlp", *self.iris("data.path=other.csv")))

    def test_other_readers_of_a_client_of_several_ranks(self):
        """The ranks of a client draw parts together, as many ahead as the readers take."""
        settings = ("distributed.strategy=downpour", "distributed.group=2")
        first, second = (self.command("mlp", *self.iris(*settings, f"data.workers={workers}")) for workers in (1, 0))
        result = self.mpirun(2, [*first, ":", "-n", "1", *second], status=2, within=30)
        self.check_sentence("^the ranks differ in 'data.workers': rank 2 has '0', but ranks 0 and 1 have '1'", result)

    def test_other_readers_in_a_client_of_several_ranks(self):
        """The ranks of a client draw parts together, as many ahead as their readers take. So all need the same number of readers."""
        settings = ("distributed.strategy=downpour", "distributed.group=2")
        first, second = (self.command("mlp", *self.iris(*settings, f"data.workers={workers}")) for workers in (1, 0))
        result = self.mpirun(2, [*first, ":", "-n", "1", *second], status=2, within=30)
        self.check_sentence("^the ranks differ in 'data.workers': rank 2 has '0', but ranks 0 and 1 have '1'", result)

    def test_another_seed(self):
        self.check_apart("^the ranks differ in 'training.seed': rank 1 has '2', but rank 0 has '1'", self.command("mlp", *self.iris()),
                         self.command("mlp", *self.iris("training.seed=2")))

    def test_another_way_to_talk(self):
        for settings in (("distributed.shared_memory=false",), ("distributed.shared_memory=false", "distributed.deadline_seconds=20")):
            for first, second in ((settings, ()), ((), settings)):
                self.check_apart("^the ranks differ in 'distributed.(shared_memory|deadline_seconds)'",
                                 self.command("mlp", *self.iris(*first)), self.command("mlp", *self.iris(*second)))

    def test_other_weights(self):
        for seed in (1, 2):
            self.run_one("mlp", *self.iris(f"output.dir={seed}", f"training.seed={seed}"), "--steps", 1)
        weights = lambda seed: self.command("mlp", *self.iris(), "--weights", self.checkpoint(str(seed)) / "weights.safetensors")
        self.check_apart("^the ranks differ in 'initial weights'", weights(1), weights(2))
        self.check_apart("^the ranks differ in 'initial weights'", [*weights(1), "--evaluate"], [*weights(2), "--evaluate"])

    def test_other_checkpoints(self):
        """Hosts with separate folders, where ranks may find different checkpoints."""
        for steps, name in ((5, "first"), (6, "second")):
            self.run_one("mlp", *self.iris(f"output.dir={name}"), "--steps", steps)
        self.check_apart("^the ranks differ in '(the first step|initial weights)'", self.command("mlp", *self.iris("output.dir=first"), "--resume"),
                         self.command("mlp", *self.iris("output.dir=second"), "--resume"))

    def test_a_checkpoint_on_one_rank(self):
        self.run_one("mlp", *self.iris("output.dir=first"), "--steps", 5)
        self.check_apart("rank 0 found a checkpoint in output.dir and rank 1 did not: all ranks must be able to read the same files",
                         self.command("mlp", *self.iris("output.dir=first"), "--resume"), self.command("mlp", *self.iris("output.dir=second"), "--resume"))

    def test_another_option(self):
        iris = self.command("mlp", *self.iris())
        self.check_apart("^the ranks differ in '--steps'", [*iris, "--steps", 3], iris)
        self.check_apart("^the ranks differ in '--dry-run'", [*iris, "--dry-run"], iris)
        for option in ("--profile", "--log"):
            self.check_apart(f"^the ranks differ in '{option}'", iris, [*iris, option, "file.json"])
        self.check_apart("^the ranks differ in 'output.dir'", self.command("mlp", *self.iris("output.dir=")), self.command("mlp", *self.iris("output.dir=run")))
        self.check_apart("^the ranks differ in '--weights'", iris, [*iris, "--weights", "any.safetensors"])
        for option in ("--help", "--version"):
            self.check_apart("^the ranks differ in '--help, --version or --describe': rank 1 has 'given', but rank 0 has 'not given'", iris, [*iris, option])
            self.check_apart("^the ranks differ in '--help, --version or --describe'", [*iris, option], iris)
        self.check_apart("--bogus", iris, [*iris, "--bogus"])

    def test_another_processor(self):
        """No mistake: the run continues, and reports it once. oneDNN is told to behave as on another
        processor."""
        iris = self.command("mlp", *self.iris("distributed.rebroadcast_every=7"), "--steps", 3)
        if "no oneDNN" in self.run_one("mlp", "--version").out:
            self.skipTest("built without oneDNN")
        said = "the ranks differ in 'the kind of processor'"
        older = ["env", "ONEDNN_MAX_CPU_ISA=SSE41", "DNNL_MAX_CPU_ISA=SSE41", *iris]
        result = self.mpirun(1, [*iris, ":", "-n", "1", *older])
        self.assertEqual(result.text.count(said), 1, result.text)
        self.assertIn("so that rounding may differ: all take the weights of rank 0 every 7 steps", result.text)
        self.assertNotIn(said, self.run_ranks(2, "mlp", *self.iris(), "--steps", 3).text)

    def test_an_order_of_its_own(self):
        """No mistake: the run continues, and reports it once."""
        said = lambda name: self.run_ranks(2, "mlp", *self.iris(f"distributed.algorithm={name}"), "--steps", 3).text.count("in an order of its own")
        self.assertEqual([said(name) for name in ("ring", "mpi", "tree", "auto")], [1, 1, 0, 0])

    def test_a_file_that_only_one_rank_lacks(self):
        self.check_apart("missing.yaml", self.command("mlp", *self.iris()), self.command("mlp", "missing.yaml"))


if __name__ == "__main__":
    support.main()
