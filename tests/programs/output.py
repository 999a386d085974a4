"""Tests the output of the programs: logs, tables and traces, on terminals and in files."""

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import unittest

import support
from support import BUILD, SOURCE, ProgramTest

STEP_KEYS = ["event", "step", "epoch", "loss", "accuracy", "images_per_second", "learning_rate"]
EPOCH_KEYS = ["event", "epoch", "train_loss", "val_loss", "val_accuracy", "rising", "seconds"]
EXCHANGE_KEYS = ["exchange_bytes", "exchange_bytes_sent", "exchange_seconds", "exchange_seconds_waited", "exchange_overlap", "exchange_gb_per_second",
                 "waited_share"]


def lasting(epoch):
    """Returns the keys without those of a rank that was late by chance."""
    return [key for key in epoch if not key.startswith("straggler")]


def event_steps(path):
    """Returns the steps of the events of an event file: protocol buffers, whose second field is the step, as a varint."""
    data, at, steps = path.read_bytes(), 0, []
    while at < len(data):
        event = data[at + 12:at + 12 + int.from_bytes(data[at:at + 8], "little")]
        at += 16 + len(event)
        step, shift, place = 0, 0, 10  # after the first field, 9 bytes, and the key of the second
        while True:
            step |= (event[place] & 0x7f) << shift
            if event[place] < 0x80:
                break
            shift, place = shift + 7, place + 1
        steps.append(step)
    return steps


class TensorBoard(ProgramTest):
    def test_steps_of_a_run_and_of_its_continuation(self):
        arguments = [*self.iris("training.epochs=2", "output.dir=run"), "--tensorboard", "curves/one"]
        self.run_one("mlp", *arguments, "--steps", 20)
        self.run_one("mlp", *arguments, "--resume")
        first, second = sorted((self.folder / "curves/one").iterdir(), key=lambda path: event_steps(path)[-1])
        # The version of the format, the first step, and the figures of each step and epoch.
        self.assertEqual(event_steps(first), [0, 1, *range(1, 16), 15, *range(16, 21)])
        self.assertEqual(event_steps(second), [0, 21, *range(21, 31), 30])

    def test_two_ranks_write_one_file(self):
        self.run_ranks(2, "mlp", *self.iris("training.epochs=1"), "--tensorboard", "curves")
        (file,) = (self.folder / "curves").iterdir()
        self.assertEqual(len(event_steps(file)), 18)

    def test_places_that_do_not_fit(self):
        self.write("file", "")
        for place in ("file", "file/below"):
            error = self.run_one("mlp", *self.iris(), "--tensorboard", place, status=2).err
            self.assertIn(f"cannot create '{place}': Not a directory; name a folder, not a file, at a place that can be written", error)
        error = self.run_one("mlp", *self.iris("output.dir=run"), "--tensorboard", "run/checkpoint-1", status=2).err
        self.assertIn("is at a place that output.dir keeps for checkpoints", error)
        self.assertIn("leave out --tensorboard", self.run_one("mlp", *self.iris(), "--evaluate", "--tensorboard", "curves", status=2).err)


class Log(ProgramTest):
    def test_keys_and_numbers(self):
        self.run_one("mlp", *self.iris("training.epochs=2"), "--log", "log")
        log = self.log("log")
        self.assertEqual([line["event"] for line in log], (["step"] * 15 + ["epoch"]) * 2)
        for line in log:
            self.assertEqual(list(line), STEP_KEYS if line["event"] == "step" else EPOCH_KEYS)
        steps = [line for line in log if line["event"] == "step"]
        self.assertEqual([line["step"] for line in steps], list(range(1, 31)))
        self.assertEqual([line["epoch"] for line in steps], [0] * 15 + [1] * 15)
        for line in steps:
            self.assertTrue(0 <= line["accuracy"] <= 1 and line["images_per_second"] > 0 and line["learning_rate"] > 0, line)
        epoch = [line for line in log if line["event"] == "epoch"][0]
        self.assertAlmostEqual(epoch["train_loss"], sum(line["loss"] for line in steps[:15]) / 15, places=6)

    def test_figures_are_over_all_ranks(self):
        """Figures count all ranks, also if the last batch is shorter and its size is no multiple of the
        ranks: 47 samples in batches of 10, 13 for validation."""
        for ranks in (1, 2, 3):
            self.run_ranks(ranks, "convnet", *self.cnn("training.precision=float64"), "--log", f"log{ranks}")
        alone = self.log("log1")
        for ranks in (2, 3):
            for one, more in zip(alone, self.log(f"log{ranks}"), strict=True):
                for key in one.keys() - {"seconds", "images_per_second"}:
                    self.assertAlmostEqual(one[key], more[key], places=9) if key != "event" else self.assertEqual(one[key], more[key])

    def test_what_ranks_exchange(self):
        """833 gradients of 4 bytes in each of 15 steps. Nothing is sent in shared memory, and a single rank
        exchanges nothing."""
        self.assertNotIn("exchanged", self.run_one("mlp", *self.iris("training.epochs=1")).out)
        if not support.HAS_MPI:
            return
        seconds, rate = r"[\d.]+ m?s", r"[\d.]+ [kMG]B/s"
        begin = rf"(?m)^epoch 1/1  exchanged 50\.0 kB in {seconds} \({rate}\)  sent "
        for name, setting, end in (("shared", "distributed.overlap=off", "nothing  overlap off$"),
                                   ("apart", "distributed.overlap=on", rf"\d\d\.\d kB  waited {seconds}  overlap \d+ %$"),
                                   ("both", "distributed.overlap=both", rf"\d\d\.\d kB  waited {seconds}  overlap \d+ %$")):
            memory = f"distributed.shared_memory={'true' if name == 'shared' else 'false'}"
            result = self.mpirun(2, self.command("mlp", *self.iris("training.epochs=1", setting, memory), "--log", name))
            self.assertRegex(result.out, begin + end)
            epoch = self.log(name)[-1]
            self.assertEqual(lasting(epoch), EPOCH_KEYS + EXCHANGE_KEYS)
            self.assertTrue(0 < epoch["waited_share"] < 1)
            self.assertEqual(epoch["exchange_bytes"], 833 * 4 * 15)
            if name == "shared":
                self.assertEqual((epoch["exchange_bytes_sent"], epoch["exchange_overlap"]), (0, None))
            else:
                # includes padding and the tail
                self.assertGreater(epoch["exchange_bytes_sent"], epoch["exchange_bytes"])
                self.assertTrue(0 <= epoch["exchange_overlap"] <= 1, epoch)

    def test_why_no_exchange_overlaps_with_the_forward_pass(self):
        cases = (("distributed.verify_every=0", None), ("training.optimizer.max_gradient_norm=1", "training.optimizer.max_gradient_norm limits the norm"))
        for setting, why in cases if support.HAS_MPI else ():
            said = self.mpirun(2, self.command("mlp", *self.iris("training.epochs=1", "distributed.overlap=both", setting))).out
            found = re.findall(r"(?m)^distributed\.overlap is both, but no exchange overlaps with the forward pass, because (.*) of all gradients$", said)
            self.assertEqual(found, [why] if why else [], said)

    @unittest.skipUnless(support.HAS_ONEDNN, "the backend 'paced' is for ranks with oneDNN")
    def test_the_rank_for_which_others_wait(self):
        """The rank is named as mpirun counts it, also if rank 0 serves."""
        for strategy in ("allreduce", "send-recv"):
            words = self.command("convnet", *self.cnn("training.epochs=1", "training.tuning=off", f"distributed.strategy={strategy}"),
                                 "--backend", "paced:times=3000,slow=4,slow_rank=2", "--log", strategy)
            said = self.mpirun(3, ["env", f"PLEXAURA_PLUGIN_PATH={BUILD / 'tools'}", *words]).out
            self.assertRegex(said, r"(?m)^epoch 1/1  the others waited [\d.]+ m?s for rank 2$")
            epoch = self.log(strategy)[-1]
            self.assertEqual(epoch["straggler"], 2)
            self.assertTrue(0.05 * epoch["seconds"] <= epoch["straggler_seconds"] <= epoch["seconds"], epoch)

    def test_an_epochs_loss_counts_every_sample_once(self):
        self.run_one("convnet", *self.cnn("training.precision=float64", "training.optimizer.learning_rate=1e-30"), "--log", "log")
        steps = [line for line in self.log("log") if line["event"] == "step" and line["epoch"] == 0]
        sizes = [10, 10, 10, 10, 7]
        expected = sum(size * line["loss"] for size, line in zip(sizes, steps, strict=True)) / 47
        self.assertAlmostEqual(self.log("log")[5]["train_loss"], expected, places=9)
        for size, line in zip(sizes, steps):
            self.assertAlmostEqual(line["accuracy"] * size, round(line["accuracy"] * size), places=6)

    def test_top_five_of_ten_classes(self):
        for part in ("train", "t10k"):
            support.write_idx(self.folder / "digits", part, 40, size=10, classes=10)
        result = self.run_one("convnet", *self.cnn("data.classes=10", "training.epochs=1"), "--log", "log")
        epoch = self.log("log")[-1]
        self.assertEqual(list(epoch), [*EPOCH_KEYS[:-2], "val_accuracy_top5", "rising", "seconds"])
        self.assertEqual(list(self.log("log")[0]), [*STEP_KEYS[:5], "accuracy_top5", *STEP_KEYS[5:]])
        self.assertTrue(epoch["val_accuracy"] <= epoch["val_accuracy_top5"] <= 1)
        self.assertRegex(result.out, r"validation accuracy [\d.]+ %  validation accuracy_top5 [\d.]+ %")

    def run_with_inodes(self, inodes, *settings):
        """Runs in the file system `small` with this number of inodes. Returns what the program and tools/why
        say about the failure."""
        script = f'mount -t tmpfs -o size=16m,nr_inodes={inodes} none small && {{ "$@"; status=$?; {SOURCE}/tools/why small; exit $status; }}'
        command = ["unshare", "--mount", "bash", "-c", script, "-", *self.command("mlp", *self.iris("training.epochs=1"), *settings)]
        done = subprocess.run(command, cwd=self.folder, env=support.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stdout)
        return done.stdout

    def test_a_file_system_without_inodes(self):
        """There is no inode for a log or a checkpoint, depending on what was made before."""
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("a file system of its own needs root")
        (self.folder / "small").mkdir()
        self.assertIn("cannot create 'small/log': no inodes left; remove files there or name another place\n", self.run_with_inodes(1, "--log", "small/log"))
        says = "no inodes left; remove files there or name another"
        self.assertIn(f"cannot create small/run: {says} folder in output.dir\n", self.run_with_inodes(1, *self.settings("output.dir=small/run")))
        for inodes in range(1, 7):
            said = self.run_with_inodes(inodes, *self.settings("output.dir=small"))
            self.assertRegex(said, rf"(?m)^cannot create \S+: {says} (place|folder in output.dir)$")
            # tools/why needs the events, for which there must be inodes
            self.assertEqual("disk full: " in said, inodes > 2, said)

    def test_nothing_to_validate_on(self):
        for ranks, setting in (((1, "data.validation_share=0"), (2, "data.validation_limit=0")) if support.HAS_MPI else ((1, "data.validation_share=0"),)):
            result = self.run_ranks(ranks, "mlp", *self.iris(setting, "training.epochs=1"), "--log", f"log{ranks}")
            self.assertRegex(result.out, "1[25]0 samples of 3 classes, 0 for validation")
            self.assertIn("no validation", result.out)
            epoch = self.log(f"log{ranks}")[-1]
            self.assertEqual((epoch["val_loss"], epoch["val_accuracy"]), (None, None))
            self.assertEqual(lasting(epoch), EPOCH_KEYS + (EXCHANGE_KEYS if ranks > 1 else []))

    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_ranks_that_share_a_core(self):
        """Ranks have their usual numbers, also if rank 0 serves and does not train."""
        core = min(os.sched_getaffinity(0))
        program = ["taskset", "-c", str(core), *self.command("mlp", *self.iris("distributed.strategy=async-server"), "--steps", 2)]
        self.assertIn("ranks 1 and 2 have 2 threads on one core of ", self.mpirun(3, program).out)


class Validation(ProgramTest):
    """Validation runs a separate program in inference mode, and does not change training."""

    NET = """
model:
  name: convnet
  layers:
    - {type: conv, channels: 4, kernel: 3}
    - {type: batch_norm, momentum: 0}
    - {type: relu}
    - {type: dropout, p: 0.5}
    - {type: flatten}
    - {type: linear}
data: {format: idx, path: digits, classes: 3}
training:
  batch_size: 16
  epochs: 3
  precision: float64
  optimizer: {name: sgd, learning_rate: 0.01, momentum: 0.9}
"""

    def run_net(self, name, *settings):
        self.cnn()
        arguments = [self.write("net.yaml", self.NET), *self.settings(f"output.dir={name}", *settings)]
        self.run_one("convnet", *arguments, "--log", f"{name}.log")
        return self.log(f"{name}.log")

    def test_the_figures_do_not_depend_on_how_the_validation_set_is_cut(self):
        """Batch statistics and dropout are off, and no batch is filled up: 13 samples in batches of 16, 13, 5
        and 1."""
        figures = []
        for size in (16, 13, 5, 1):
            epoch = self.run_net(f"batch{size}", f"training.batch_size={size}", "training.epochs=1", "training.optimizer.learning_rate=1e-300",
                                 "training.optimizer.momentum=0")[-1]
            figures.append((round(epoch["val_loss"], 9), round(epoch["val_accuracy"] * 13, 9)))
        self.assertEqual(len(set(figures)), 1, figures)
        self.assertEqual(figures[0][1], round(figures[0][1]))

    def test_the_figure_is_not_that_of_the_last_training_batch(self):
        for line in self.run_net("run"):
            if line["event"] == "epoch":
                self.assertNotIn(line["val_loss"], (before["loss"], line["train_loss"]))
            before = line

    def test_training_is_the_same_whatever_is_validated_on(self):
        """Batch norm and dropout continue in training mode, with the same random numbers as without
        validation."""
        first = self.run_net("first")
        support.write_idx(self.folder / "digits", "t10k", 5, labels=[2])
        second = self.run_net("second")
        losses = lambda log: [line["loss"] for line in log if line["event"] == "step"]
        self.assertEqual(losses(first), losses(second))
        self.assertEqual(self.weight_bytes("first"), self.weight_bytes("second"))
        self.assertNotEqual(first[-1]["val_loss"], second[-1]["val_loss"])

    def test_dropout_acts_after_the_first_validation(self):
        """If weights do not change, the losses of a sample differ between epochs only because of dropout."""
        settings = ["training.batch_size=47", "training.optimizer.learning_rate=1e-300", "training.optimizer.momentum=0", "data.shuffle=false"]
        losses = [line["loss"] for line in self.run_net("run", *settings) if line["event"] == "step"]
        self.assertEqual(len(set(losses)), 3, losses)


class Words(ProgramTest):
    def test_help(self):
        text = self.run_one("mlp", "--help").out
        for word in ("--set", "--steps", "--resume", "--replace", "--backend", "--log", "--weights", "--profile", "--dry-run", "--version", "mpirun -n"):
            self.assertIn(word, text)
        self.assertTrue(text.startswith("Trains the mlp of a YAML file, in one process or on several ranks:\n"), text)
        self.assertIn(f"\n  mpirun -n 4 {support.BUILD}/models/mlp FILE.yaml\n", text)
        self.assertLess(max(len(line) for line in text.splitlines() if str(support.BUILD) not in line), 121)
        self.assertNotIn("cuda", text)
        self.assertRegex(text, r"\S\n\Z")

    def test_version(self):
        text = self.run_one("mlp", "--version").out
        self.assertRegex(text, r"\APlexaura \d+\.\d+\.\d+ \(")
        self.assertRegex(text, r"oneDNN")
        self.assertRegex(text, r"(?m)MPI")
        processor = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        self.assertIn(processor[1] if processor else "unknown processor", text)

    def test_one_rank_of_two_speaks(self):
        if support.HAS_MPI:
            self.assertEqual(self.mpirun(2, self.command("mlp", "--version")).text.count("Plexaura"), 1)

    def test_dry_run(self):
        text = self.run_one("convnet", *self.cnn(), "--dry-run").out
        for pattern in (r"(?m)^conv1 +conv2d.*\[4,8,8\] +40$", r"(?m)^fc2 .* 51$", r"\d+ parameters", r"data +47 samples of 3 classes, 13 for validation",
                        r"(?m)^classes +'0' \(16\), '1' \(16\), '2' \(15\)$",
                        r"memory .*activations", r"program +\d+ instructions"):
            self.assertRegex(text, pattern)
        self.assertNotIn("instruction 0", text)
        self.assertFalse((self.folder / "run").exists())
        self.assertIn("conv2d", self.run_one("convnet", *self.cnn(), "--dry-run", "--program").out)
        self.assertRegex(text, r"(?m)^dropout1 +dropout +\[64\]")

    def test_dry_run_for_a_gpu_that_is_not_there(self):
        if not support.DESCRIBES_GPUS:
            self.skipTest("a build with sanitizers describes no GPUs")
        on_gpu = ["--dry-run", "--backend", "cuda", "--device", "h200"]
        text = self.run_one("convnet", *self.cnn(), *on_gpu).out
        for pattern in (r"(?m)^device +NVIDIA H200, as it is described, .*: 790 TFLOP/s in 16 bits and 4.3 TB/s, as measured$", r"(?m)^in use +\S+ \S+ of its 15\d.\d+ GB$",
                        r"(?m)^step +1 graph launch with \d+ calls, 2 calls beside$", r"(?m)^ +1 .* library  conv2d$", r"(?m)^ +1 .* copy     copy from the host$",
                        r"(?m)^roofline +[\d.e-]+ ms a step of 10 samples, \d+ samples/s at most$"):
            self.assertRegex(text, pattern)
        self.assertNotIn("conv2d_weight_grad %", text)
        self.assertIn("conv2d_weight_grad %", self.run_one("convnet", *self.cnn(), *on_gpu, "--program").out)
        rates = [int(re.search(r"(\d+) samples/s", self.run_one("convnet", *self.cnn(), *on_gpu[:-1], gpu).out).group(1)) for gpu in ("a100", "h100", "h200", "b200")]
        self.assertEqual(rates, sorted(rates))

    def test_the_table_at_the_end(self):
        text = self.run_one("mlp", *self.iris("training.epochs=2", "output.dir=run"), "--log", "log").out
        self.assertEqual(text.splitlines()[1], "classes: 'setosa' (40), 'versicolor' (40), 'virginica' (40)")
        for pattern in (r"steps +30", r"training loss +\d", r"validation loss +\d", r"validation accuracy +[\d.]+ %", r"samples/s +[\d,]+ \(median",
                        r"parameters +833", r"checkpoint +run", r"log +log"):
            self.assertRegex(text, pattern)

    def test_the_end_of_an_epoch_is_shown(self):
        """The end of the first epoch is shown, although its first step was shown just before."""
        self.assertRegex(self.run_one("mlp", *self.iris("training.epochs=2")).out, r"(?m)^epoch 1/2  step 15/15  loss")

    def test_an_empty_text(self):
        said = self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=")).out
        self.assertIn("none (output.dir is not set)", said)

    def test_a_terminal_gets_a_progress_line(self):
        iris = self.command("mlp", *self.iris("training.epochs=40"))
        self.check_progress(iris)
        if support.HAS_MPI:
            self.check_progress(["bash", "-c", f'. {SOURCE}/tools/mpi_environment && exec mpirun -n 2 "$@"', "-", *iris])

    def test_no_progress_line_in_a_file(self):
        iris = self.iris("training.epochs=2")
        self.assertNotIn("\x1b", self.run_ranks(2 if support.HAS_MPI else 1, "mlp", *iris).text)

    def check_progress(self, command):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
        process = subprocess.Popen(command, cwd=self.folder, env=support.mpi_environment(), stdout=slave)
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(master)
        self.assertEqual(process.wait(60), 0)
        self.assertRegex(text.decode(), r"\r\x1b\[Kepoch 1/40 \[[=> ]{20}\] \d+/15  loss")
        for line in re.split(r"[\r\n]+", text.decode().replace("\x1b[K", "")):
            if "[=" in line:
                self.assertLess(len(line), 70, line)


class Trace(ProgramTest):
    def test_instructions_communication_and_data(self):
        ranks = 2 if support.HAS_MPI else 1
        text = self.run_one("convnet", *self.cnn(), "--dry-run").out
        instructions = int(re.search(r"program +(\d+) instructions", text).group(1))
        self.run_ranks(ranks, "convnet", *self.cnn(), "--profile", "trace.json", "--steps", 3)
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        processes = [event for event in events if event["ph"] == "M"]
        self.assertEqual([(event["pid"], event["args"]["name"]) for event in processes], [(rank, f"rank {rank}") for rank in range(ranks)])
        events = [event for event in events if event not in processes]
        categories = {event["cat"] for event in events}
        self.assertEqual(categories, {"instruction", "data", "step"} | ({"communication"} if ranks > 1 else set()))
        for rank in range(ranks):
            own = [event for event in events if event["pid"] == rank]
            self.assertGreaterEqual(sum(event["cat"] == "instruction" for event in own), 3 * instructions // 2)
            self.assertEqual(sum(event["name"] == "waiting for data" for event in own), 3)
            # numbers of samples
            self.assertEqual([event["args"]["detail"] for event in own if event["name"] == "step"], [str(10 // ranks)] * 3)
        for event in events:
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
        self.assertTrue(any("conv2d" in event["name"] and event["args"]["detail"] for event in events))

    def test_an_overlapped_exchange_has_a_track_of_its_own(self):
        for overlap in ("on", "both", "off") if support.HAS_MPI else ():
            self.run_ranks(2, "convnet", *self.cnn(f"distributed.overlap={overlap}"), "--profile", "trace.json", "--steps", 3)
            events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
            for rank in range(2):
                tracks = lambda name: [event["tid"] for event in events if event["pid"] == rank and event["name"] == name]
                self.assertEqual(len(tracks("exchange")), 2 * 3)  # all gradients, and the tail
                self.assertEqual(set(tracks("exchange")) == set(tracks("step")), overlap == "off")


if __name__ == "__main__":
    support.main()
