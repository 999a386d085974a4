"""Tests --check-gradients, --find-lr, --overfit and --check, and that a run names the parameters that get no gradient."""

import json
import math
import os
import re
import signal
import struct
import subprocess
import unittest
import unittest.mock
from pathlib import Path

import support
from support import SOURCE, ProgramTest


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
            self.assertEqual(self.run_ranks(ranks, "mlp", *self.iris(setting), "--find-lr", status=2).text.count(says), 1)

    def test_a_few_samples_are_learned_by_heart(self):
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            out = self.run_ranks(ranks, "mlp", *self.iris("output.dir=run", "model.label_smoothing=0.1"), "--overfit", 12).out
            self.assertRegex(out, r"(?m)^the model has learned 12 samples in \d+ steps: the loss went from \S+ to 0\.\d+$")
        self.assertFalse((self.folder / "run").exists())
        self.run_one("mlp", *self.iris("training.schedule={name: step, every_epochs: 0.5}"), "--overfit", 12)
        said = self.run_one("mlp", *self.iris("training.optimizer.learning_rate=1e-9"), "--overfit", 12, status=2).err
        self.assertRegex(said, r"^the model has not learned 12 samples in 1000 steps: the loss went from \S+ to \S+, and has to reach a tenth; look at")
        self.assertIn("data.limit", self.run_one("mlp", *self.iris(), "--overfit", 2, status=2).err)
        sizes = {"fc1.weight": (4, 4), "fc1.bias": (4,), "fc2.weight": (3, 4), "fc2.bias": (3,)}
        self.write_zeros("zeros", sizes)
        said = self.run_one("mlp", *self.iris("model.hidden=[4]"), "--weights", "zeros", "--overfit", 12, status=2).err
        self.assertIn("some parameters are not trained: the gradient of 'fc1.weight' is zero everywhere", said)

    def test_samples_that_differ_from_epoch_to_epoch_are_the_same_in_this_test(self):
        support.draw_images(self.folder / "images")
        net = self.write("net.yaml", """
model: {name: convnet, layers: [{type: conv, channels: 8, kernel: 3}, {type: relu}, {type: flatten}, {type: linear}]}
data: {format: image_folder, path: images, image_size: 16}
training: {batch_size: 6, epochs: 1, optimizer: {name: adam, learning_rate: 0.01}}
""")
        for settings in (["data.min_crop_scale=0.1", "data.horizontal_flip=true"], ["data.augmentation=[{horizontal_flip: 0.5}]"],
                         ["data.mixup_alpha=1", "data.sampling=balanced"]):
            self.run_one("convnet", net, *self.settings(*settings), "--overfit", 6)
        pack = [support.BUILD / "tools/pack", *self.iris()[:1], "rows", *self.iris()[1:]]
        subprocess.run(pack, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        rows = self.write("rows.yaml", """
model: {name: mlp, hidden: [8]}
data: {format: shards, path: rows}
training: {batch_size: 4, epochs: 1, optimizer: {name: adam, learning_rate: 0.05}}
""")
        self.run_one("mlp", rows, "--overfit", 6)

    @unittest.skipUnless(support.HAS_ONEDNN, "the backend 'paced' is for ranks with oneDNN")
    def test_a_signal_ends_a_trial_without_a_verdict(self):
        """Each step takes a third of a second."""
        slow = (*self.iris("training.tuning=off"), "--backend", "paced:times=100000")
        environment = {**support.environment(), "PLEXAURA_PLUGIN_PATH": str(support.BUILD / "tools")}
        for trial in (["--overfit", "12"], ["--find-lr"]):
            with self.subTest(trial=trial):
                run = subprocess.Popen([*self.command("mlp", *slow), *trial], cwd=self.folder, env=environment, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.wait_for(lambda run=run: self.catches(run, signal.SIGTERM))
                run.send_signal(signal.SIGTERM)
                out, err = run.communicate(timeout=60)
                self.assertEqual((run.returncode, out, err), (128 + signal.SIGTERM, "", ""))

    def catches(self, run, number):
        """True once the process handles this signal, as it does while it trains."""
        self.assertIsNone(run.poll(), "the process has ended")
        caught = re.search(r"SigCgt:\s*(\w+)", (Path("/proc") / str(run.pid) / "status").read_text())[1]
        return int(caught, 16) >> (number - 1) & 1

    def write_zeros(self, name, sizes):
        header, end = {}, 0
        for tensor, size in sizes.items():
            header[tensor] = {"dtype": "F32", "shape": size, "data_offsets": [end, end + 4 * math.prod(size)]}
            end += 4 * math.prod(size)
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


class CheckRun(ProgramTest):
    def names(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if "cache" not in path.parts)

    def working(self, out):
        """Returns the parts that work, in the order of their lines."""
        return re.findall(r"^(\w+) +works +[\d.e-]+ m?s  ", out, re.M)

    def fails(self, sentence, working, *arguments, program="mlp", **options):
        """A check fails with this sentence after the parts that work, and leaves nothing."""
        before = self.names()
        result = self.run_one(program, *arguments, "--check", status=2, **options)
        self.assertRegex(result.err, sentence)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertEqual(self.working(result.out), working)
        self.assertEqual(self.names(), before)

    def test_all_parts_work_and_nothing_is_left(self):
        self.write("earlier/log.jsonl", '{"event":"step"}\n')
        before = self.names()
        parts = ["data", "outputs", "model", "validation", "training", "checkpoint"]
        records = ("--report", "made/report", "--tensorboard", "made/events")
        for ranks, settings, options, further in ((1, [], [], []), (1, ["output.dir=a/b/run"], records, ["report"]),
                                                  (2, ["output.dir=a/b/run"], ["--log", "earlier/log.jsonl"], []),
                                                  (2, ["output.dir=run", "training.ema=0.9"], records, ["report"])):
            with self.subTest(ranks=ranks, settings=settings):
                if ranks > 1 and not support.HAS_MPI:
                    continue
                out = self.run_ranks(ranks, "mlp", *self.iris("output.dir=", *settings), *options, "--check").out
                self.assertEqual(self.working(out), [*parts, *further, "resuming"], out)
                self.assertIn("all 120 training samples and all 30 validation samples", out)
                self.assertRegex(out.splitlines()[-1], r"^an epoch is expected to take about .* for 15 steps, .* for the validation.*; all \d+ epochs about")
                self.assertEqual(self.names(), before)
        self.assertEqual((self.folder / "earlier/log.jsonl").read_text(), '{"event":"step"}\n')

    def test_a_run_in_the_same_folder_is_left_as_it_is(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        before = {name: (self.folder / name).read_bytes() for name in self.names() if (self.folder / name).is_file()}
        self.run_one("mlp", *self.iris("output.dir=run"), "--check")
        self.assertEqual({name: (self.folder / name).read_bytes() for name in self.names() if (self.folder / name).is_file()}, before)

    def test_strategies(self):
        for strategy in ("local", "elastic", "scatter-gather", "reduce-broadcast"):
            out = self.run_ranks(2, "mlp", *self.iris("output.dir=run", f"distributed.strategy={strategy}"), "--check").out
            self.assertIn("resuming", self.working(out), strategy)
        for strategy in ("send-recv", "async-server"):
            out = self.run_ranks(2, "mlp", *self.iris("output.dir=run", f"distributed.strategy={strategy}"), "--check", status=2).text
            self.assertIn(f"is '{strategy}', with which a rank serves, and --check is for strategies with which all ranks train", out)
        self.assertEqual(self.names(), [])

    def test_a_damaged_image(self):
        support.draw_images(self.folder / "photos")
        image = sorted((self.folder / "photos/val").rglob("*.*"))[-1]
        image.write_bytes(image.read_bytes()[:100])
        net = ("model: {name: convnet, layers: [{type: flatten}, {type: linear}]}\n"
               "data: {format: image_folder, path: photos, image_size: 32}\noutput: {dir: run}\n"
               "training: {batch_size: 6, epochs: 2, optimizer: {name: sgd, learning_rate: 0.01}}\n")
        self.write("net.yaml", net)
        self.fails(image.name, [], "net.yaml", program="convnet")
        out = self.run_one("convnet", "net.yaml", *self.settings("data.on_error=skip"), "--check").out
        self.assertIn("of which 1 cannot be read and will be skipped (", out)
        self.assertIn(image.name, out)

    def test_outputs_that_cannot_be_written(self):
        self.write("file", "")
        self.fails("^cannot create file/run: Not a directory; name a folder that can be written in output.dir$", ["data"], *self.iris("output.dir=file/run"))
        self.fails("^--report: the folder 'file/report' cannot be made: Not a directory; name another one$", ["data"], *self.iris("output.dir=a/run"), "--report",
                   "file/report")
        self.fails("^--log: the folder of 'no/log' does not exist; make it, or name another file$", ["data"], *self.iris("output.dir=a/run"), "--log", "no/log")
        self.fails("^--log: 'file' exists and contains something other|^--log: .*", ["data"], *self.iris(), "--log", str(SOURCE / "models/iris.yaml"))
        with unittest.mock.patch.dict(os.environ, TMPDIR="/nowhere"):
            self.fails("^the folder of temporary files cannot be used: .*; set TMPDIR to a folder that exists, or give output.dir$", ["data"],
                       *self.iris("output.dir="))
        self.fails("limit on the size of files|File too large|disk is full", ["data", "outputs", "model", "validation"],
                   *self.iris("output.dir=a/run", "model.hidden=[100, 100]"), limit="-f 20")

    def test_a_full_disk(self):
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("a file system of its own needs root")
        (self.folder / "small").mkdir()
        script = 'mount -t tmpfs -o size=64k none small && { "$@"; status=$?; ls -A small; exit $status; }'
        command = self.command("mlp", *self.iris("output.dir=small/run", "model.hidden=[200, 200]"), "--check")
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, "-", *command], cwd=self.folder, env=support.environment(), capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertFalse([line for line in done.stdout.splitlines() if line == "run"], done.stdout)

    def test_options_without_effect(self):
        for options, text in ((["--steps", 3], "--check keeps nothing that it trains; leave out --steps"),
                              (["--resume"], "--check keeps nothing that it trains; leave out --resume"),
                              (["--profile", "x"], "--check keeps nothing that it trains; leave out --profile"),
                              (["--overfit", 12], "--overfit and --check exclude each other"),
                              (["--serve", "x"], "--serve only serves those that train; leave out --check")):
            self.assertIn(text, self.run_one("mlp", *self.iris(), *options, "--check", status=2).err)


if __name__ == "__main__":
    support.main()
