"""A run that was stopped and resumed ends like one that was never stopped."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import support
from patience import Patience
from support import ProgramTest


class Resume(ProgramTest):
    def check(self, ranks, program, arguments, stops):
        """Stops after each of these numbers of steps, and compares with an undisturbed run."""
        output = lambda name: self.settings(f"output.dir={name}")
        self.run_ranks(ranks, program, *arguments, *output("whole"))
        for i, stop in enumerate(stops):
            self.run_ranks(ranks, program, *arguments, *output("parts"), "--steps", stop, *(["--resume"] if i else []))
        result = self.run_ranks(ranks, program, *arguments, *output("parts"), "--resume")
        self.assertIn("resumed from the newest checkpoint in parts", result.out)
        for name in ("weights.safetensors", "state.safetensors"):
            self.assertEqual((self.checkpoint("whole") / name).read_bytes(), (self.checkpoint("parts") / name).read_bytes(), name)

    def test_momentum_at_the_end_of_an_epoch_and_within_one(self):
        self.check(1, "mlp", self.iris("training.epochs=4"), [15, 17, 44])

    def test_adam_and_dropout(self):
        self.check(1, "convnet", self.cnn("training.epochs=4", "training.schedule.name=cosine"), [1, 7, 10])

    def test_bfloat16_on_two_ranks(self):
        self.check(2, "convnet", self.cnn("training.epochs=3", "training.precision=bfloat16"), [5])

    def test_the_loss_scale_of_float16_on_two_ranks(self):
        self.check(2, "convnet", self.cnn("training.epochs=3", "training.precision=float16"), [5])

    def test_adam_and_dropout_on_two_ranks(self):
        self.check(2, "convnet", self.cnn("training.epochs=3", "training.micro_batches=2"), [8])

    def test_compressed_gradients_on_three_ranks(self):
        for compression in ("fp16", "top-k", "powersgd"):
            with self.subTest(compression):
                for folder in ("whole", "parts"):
                    shutil.rmtree(self.folder / folder, ignore_errors=True)
                self.check(3, "convnet", self.cnn("training.epochs=3", f"distributed.compression={compression}"), [8])

    def test_augmented_images_on_two_ranks(self):
        support.draw_images(self.folder / "images")
        yaml = support.SOURCE / "models/resnet18.yaml"
        settings = ["data.path=images", "data.image_size=32", "training.batch_size=6", "training.epochs=2",
                    "training.schedule.warmup_epochs=1"]
        self.check(2, "resnet", [yaml, *self.settings(*settings)], [4])

    def test_the_epoch_figures_of_a_resumed_run(self):
        arguments = self.iris("training.epochs=2")
        self.run_one("mlp", *arguments, *self.settings("output.dir=whole"), "--log", "whole.log")
        self.run_one("mlp", *arguments, *self.settings("output.dir=parts"), "--log", "parts.log", "--steps", 20)
        self.run_one("mlp", *arguments, *self.settings("output.dir=parts"), "--log", "parts.log", "--resume")
        timeless = lambda log: [{k: v for k, v in line.items() if k not in ("seconds", "images_per_second")} for line in log]
        self.assertEqual(timeless(self.log("whole.log")), timeless(self.log("parts.log")))

    def test_steps_are_counted_within_the_epoch_whatever_batches_were_before(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        result = self.run_one("mlp", *self.iris("training.epochs=2", "training.batch_size=30", "output.dir=run"), "--resume")
        self.assertIn("epoch 2/2  step 1/4  ", result.out)

    def test_nothing_to_resume(self):
        arguments = self.iris("training.epochs=1", "output.dir=run")
        self.assertIn("no checkpoint in run yet; starting afresh", self.run_one("mlp", *arguments, "--resume").out)

    def test_nothing_left_to_do(self):
        arguments = self.iris("training.epochs=1", "output.dir=run")
        self.run_one("mlp", *arguments)
        before = self.weight_bytes("run")
        self.assertIn("resumed", self.run_one("mlp", *arguments, "--resume").out)
        self.assertEqual(before, self.weight_bytes("run"))

    def test_a_fresh_run_replaces_an_older_one_that_went_further(self):
        arguments = self.iris("output.dir=run")
        self.run_one("mlp", *arguments, "--steps", 20)
        result = self.run_one("mlp", *arguments, "--steps", 10)
        self.assertIn("the checkpoints in run will be removed as this run writes its own; --resume continues from the newest", result.out)
        self.assertEqual(self.checkpoints("run"), ["checkpoint-000010"])

    def test_a_run_that_was_stopped_is_not_replaced_by_chance(self):
        arguments = self.iris("output.dir=run", "training.epochs=2")
        self.run_one("mlp", *arguments, "--steps", 20)
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            said = support.without_mpirun(self.run_ranks(ranks, "mlp", *arguments, status=2).text)
            self.assertEqual(said, ["output.dir is run, where an earlier run has stopped after step 20: give --resume to continue from there, or --replace to "
                                    "start anew and remove its checkpoints, or name another folder"])
        self.assertEqual(self.checkpoints("run"), ["checkpoint-000020"])
        self.assertIn("the checkpoints in run will be removed", self.run_one("mlp", *arguments, "--replace", "--steps", 10).out)
        self.assertEqual(self.checkpoints("run"), ["checkpoint-000010"])
        self.assertIn("resumed", self.run_one("mlp", *arguments, "--resume").out)
        finished = self.checkpoints("run")
        self.run_one("mlp", *arguments)
        self.assertEqual(self.checkpoints("run"), finished)

    def test_the_schedule_goes_on_from_its_epoch_whatever_batches_were_before(self):
        arguments = [*self.iris("training.epochs=10", "training.schedule.name=cosine", "output.dir=run"), "--log", "log"]
        self.run_one("mlp", *arguments, "--steps", 75)  # five epochs
        rate = self.log("log")[-2]["learning_rate"]
        (self.folder / "log").unlink()
        self.run_one("mlp", *arguments, *self.settings("training.batch_size=16"), "--resume")
        rates = [line["learning_rate"] for line in self.log("log") if line["event"] == "step"]
        self.assertEqual(len(rates), 5 * 8)
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertAlmostEqual(rates[0], rate, delta=0.05 * rate)
        self.assertLess(rates[-1], 0.01 * rate)

    def test_two_runs_into_one_log(self):
        first = subprocess.Popen(self.command("mlp", *self.iris("training.epochs=1000000", "output.dir=first"), "--log", "log"), cwd=self.folder,
                                 env=support.environment(), stdout=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        self.wait_for(lambda: (self.folder / "log").exists() and (self.folder / "log").stat().st_size > 0)
        result = self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=second"), "--log", "log", status=2)
        self.assertEqual(result.err, "another run writes its log into 'log': wait until it has ended, or name another file with --log\n")

    def test_what_was_changed_in_between(self):
        def resume(pattern, *settings):
            result = self.run_one("mlp", *self.iris("output.dir=run", *settings), "--resume", status=2)
            self.assertRegex(result.err, pattern)
            self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.run_one("mlp", *self.iris("output.dir=run"), "--steps", 20)
        resume("made with seed 1 and training.seed is 2", "training.seed=2")
        held_out = "made with other data, classes or split, .*; resume with the same, or start from its weights with --weights$"
        table = (support.SOURCE / "models/iris.csv").read_text().splitlines(keepends=True)
        self.write("shorter.csv", "".join(table[:-1]))
        for setting in ("split_seed=2", "validation_share=0.1", "folds=5", "path=shorter.csv"):
            resume(held_out, f"data.{setting}")
        resume("in batches of 8 and now there are 120 in batches of 9; resume with the same", "training.batch_size=9")
        resume("made with model.hidden \\[30, 20\\] and now it is \\[7\\]; resume with the same", "model.hidden=[7]")
        resume('made with model.activation "tanh" and now it is "relu"; resume with the same', "model.activation=relu")
        resume('made with model.loss "\\w+" and now it is "\\w+"; resume with the same', "model.loss=squared_error")
        resume("made with data.standardise true and now it is false; resume with the same", "data.standardise=false")
        resume("made with training.precision float32 and now it is float64; resume with the same", "training.precision=float64")
        resume("made with training.precision float32 and now it is bfloat16; resume with the same", "training.precision=bfloat16")
        resume("within an epoch with data.shuffle true and now it is false, .*; resume with the same$", "data.shuffle=false")
        resume("the checkpoint in run is of epoch 2 and training.epochs is 1; set it to 2 or more$", "training.epochs=1")

    def test_another_optimizer(self):
        """Adam and AdamW have two states, SGD with momentum has one. The state of one must not be read as
        that of another."""
        adam = self.cnn("output.dir=run")
        self.run_one("convnet", *adam, "--steps", 3)
        text = (self.folder / "cnn.yaml").read_text().replace("{name: adam, learning_rate: 0.005}",
                                                              "{name: sgd, learning_rate: 0.01, momentum: 0.9}")
        sgd = [self.write("sgd.yaml", text), *self.settings("output.dir=run")]
        adamw = [*adam, *self.settings("training.optimizer.name=adamw")]
        refusal = lambda arguments: self.run_one("convnet", *arguments, "--resume", status=2).err
        self.assertRegex(refusal(adamw), "made with training.optimizer.name adam and now it is adamw; resume with the same")
        self.assertRegex(refusal(sgd), "made with training.optimizer.name adam and now it is sgd; resume with the same")
        self.run_one("convnet", *sgd, "--steps", 3)
        self.assertRegex(refusal(adam), "made with training.optimizer.name sgd and now it is adam; resume with the same")

    def test_a_broken_checkpoint(self):
        arguments = self.iris("output.dir=run")
        self.run_one("mlp", *arguments, "--steps", 5)
        weights = self.checkpoint("run") / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-10])
        self.assertRegex(self.run_one("mlp", *arguments, "--resume", status=2).err, "^'run/checkpoint-000005/weights.safetensors': .* damaged")


class Files(ProgramTest):
    def test_two_runs_write_the_same_bytes(self):
        for name in ("a", "b/c"):
            self.run_ranks(2 if support.HAS_MPI else 1, "convnet", *self.cnn(f"output.dir={name}"))
        self.assertEqual(self.weight_bytes("a"), self.weight_bytes("b/c"))

    def test_older_checkpoints_go(self):
        for keep, left in ((1, ["000045"]), (2, ["000030", "000045"])):
            self.run_one("mlp", *self.iris("training.epochs=3", f"output.keep={keep}", f"output.dir=keep{keep}"))
            self.assertEqual(self.checkpoints(f"keep{keep}"), [f"checkpoint-{number}" for number in left])

    def test_a_kill_leaves_a_readable_checkpoint(self):
        arguments = self.iris("training.epochs=20000", "output.dir=run")
        for _ in range(4):
            process = subprocess.Popen(self.command("mlp", *arguments, "--resume"), cwd=self.folder, env=support.environment(),
                                       stdout=subprocess.DEVNULL)
            self.wait_for_checkpoint("run")
            time.sleep(0.3)
            process.kill()
            process.wait()
            result = self.run_one("mlp", *arguments, "--resume", "--steps", 1)
            self.assertIn("resumed", result.out)

    def wait_for_checkpoint(self, output):
        patience = Patience(60)
        while not list((self.folder / output).glob("checkpoint-*")):
            self.assertFalse(patience.is_over())
            time.sleep(0.01)

    def test_a_full_disk(self):
        """A checkpoint is larger than a file may be. The last one stays, and the run ends with a sentence."""
        arguments = self.iris("model.hidden=[30, 20]", "output.dir=run", "training.epochs=2")
        self.run_one("mlp", *arguments, "--steps", 15)
        before = self.weight_bytes("run")
        result = self.run_one("mlp", *arguments, "--resume", status=2, limit="-f 1")
        self.assertRegex(result.err, r"\Acannot write 'run/checkpoint.unfinished/\w+.safetensors\S*': File too large; free space or name another place\n\Z")
        self.assertEqual(self.checkpoints("run"), ["checkpoint-000015"])
        self.assertEqual(before, self.weight_bytes("run"))

    def test_a_full_disk_on_two_ranks(self):
        arguments = self.iris("output.dir=run", "training.epochs=2")
        result = self.mpirun(2, support.with_short_files(1, self.command("mlp", *arguments)), status=2)
        said = [line for line in support.without_mpirun(result.text) if line.startswith("cannot write 'run/checkpoint.unfinished/")]
        self.assertEqual(len(said), 1, result.text)

    def test_an_output_folder_that_cannot_be_written_is_found_at_the_start(self):
        self.write("file", "")
        result = self.run_one("mlp", *self.iris("output.dir=file/run"), "--log", "log", status=2)
        self.assertEqual(result.err, "cannot create file/run: Not a directory; name a folder that can be written in output.dir\n")
        self.assertFalse((self.folder / "log").exists())

    def test_divergence_leaves_the_checkpoint(self):
        arguments = self.iris("output.dir=run", "training.epochs=2")
        self.run_one("mlp", *arguments)
        files = lambda: {path: path.read_bytes() for path in (self.folder / "run").rglob("*.safetensors")}
        before = files()
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            result = self.run_ranks(ranks, "mlp", *arguments, *self.settings("training.optimizer.learning_rate=1e30"), status=2)
            self.assertRegex(result.text, r"(?m)^the loss of step \d+ is (nan|infinite): training diverged; lower the learning rate")
            self.assertEqual(result.text.count("diverged"), 1, result.text)
            self.assertEqual(files(), before)

    def test_a_full_log(self):
        result = self.run_one("mlp", *self.iris(), "--log", "/dev/full", status=2)
        self.assertEqual(result.err, "cannot write '/dev/full': No space left on device; free space or name another place\n")


class OneFolder(ProgramTest):
    """If two runs use one folder, one rank of the second run refuses to start, and does not change the folder."""

    def test_two_runs(self):
        arguments = self.iris("training.epochs=1000000", "output.dir=run")
        first = subprocess.Popen(self.command("mlp", *arguments), cwd=self.folder, env=support.environment(), stdout=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        patience = Patience(60)
        while not (self.folder / "run/.lock").exists() or not self.checkpoints("run"):
            self.assertFalse(patience.is_over())
            time.sleep(0.01)
        for ranks in (1, 2) if support.HAS_MPI else (1,):
            for resume in ([], ["--resume"]):
                said = support.without_mpirun(self.run_ranks(ranks, "mlp", *arguments, *resume, status=2).text)
                self.assertEqual(len(said), 1, said)
                self.assertRegex(said[0], f"^another run, process {first.pid} on \\S+, writes its checkpoints into run: "
                                          "wait until it has ended, or name another folder in output.dir$")
        for option in ("--dry-run", "--evaluate"):
            self.assertEqual(self.run_one("mlp", *arguments, option).err, "")
        first.kill()
        first.wait()
        self.assertIn("resumed", self.run_one("mlp", *arguments, "--resume", "--steps", 1).out)

    def test_a_checkpoint_of_two_runs(self):
        for name, size in (("one", 8), ("two", 9)):
            self.run_one("mlp", *self.iris(f"output.dir={name}", f"training.batch_size={size}"), "--steps", 5)
        state = "checkpoint-000005/state.safetensors"
        (self.folder / "one" / state).write_bytes((self.folder / "two" / state).read_bytes())
        error = self.run_one("mlp", *self.iris("output.dir=one"), "--resume", status=2).err
        self.assertEqual(error, "one/checkpoint-000005/weights.safetensors and state.safetensors were not written together; take both from "
                                "one checkpoint, or start from the weights alone with --weights\n")


def keep_metadata(path, names):
    """Removes all metadata of a safetensors file but these, which it must have. Returns the names of its tensors."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = {name: header["__metadata__"][name] for name in names}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
    return header.keys() - {"__metadata__"}


class FirstFormat(ProgramTest):
    """A checkpoint of Iris with only the metadata and the tensors that commit 9fff8c9 wrote."""

    WEIGHTS = ["checksum.fnv1a64", "data.origin", *(f"data.column {i}" for i in range(4)), *(f"data.class {i}" for i in range(3)),
               *(f"setting.class {i}" for i in range(3)), "setting.data.standardise",
               *(f"setting.model.{key}" for key in ("activation", "hidden", "loss", "name", "outputs", "standardise"))]
    STATE = ["checksum.fnv1a64", "bucket_bytes", "kernels", "optimizer", "precision", "shuffle", "weights"]
    RUN = ("step", "epoch", "step_in_epoch", "seed", "epoch_loss", "epoch_samples", "data_origin", "samples", "batch_size")

    def test_it_is_continued_and_evaluated(self):
        whole, parts = (self.iris("training.epochs=4", f"output.dir={name}") for name in ("whole", "parts"))
        self.run_one("mlp", *whole)
        self.run_one("mlp", *parts, "--steps", 20)
        parameters = {f"fc{i}.{kind}" for i in (1, 2, 3) for kind in ("weight", "bias")}
        self.assertEqual(keep_metadata(self.checkpoint("parts") / "weights.safetensors", self.WEIGHTS), parameters)
        self.assertEqual(keep_metadata(self.checkpoint("parts") / "state.safetensors", self.STATE),
                         {f"state0.{name}" for name in parameters} | {f"run.{name}" for name in self.RUN})
        self.assertIn("validation accuracy", self.run_one("mlp", *parts, "--evaluate").out)
        self.run_one("mlp", *parts, "--resume")
        self.assertEqual(self.weight_bytes("whole"), self.weight_bytes("parts"))


class Weights(ProgramTest):
    def test_training_starts_from_them(self):
        self.run_one("mlp", *self.iris("output.dir=first"), "--steps", 40)
        saved = self.checkpoint("first") / "weights.safetensors"
        slow = self.iris("output.dir=second", "training.optimizer.learning_rate=1e-12")
        self.run_one("mlp", *slow, "--weights", saved, "--steps", 1)
        self.assertLess(support.difference(self.weights("first"), self.weights("second")), 1e-6)

    def test_weights_that_do_not_fit(self):
        self.run_one("mlp", *self.iris("output.dir=first"), "--steps", 1)
        saved = self.checkpoint("first") / "weights.safetensors"
        for setting, says in (("model.hidden=[30]", "'fc2.weight' is float32[20,30] and the model has float32[3,30]"),
                              ("model.hidden=[30, 20, 10]", "'fc3.weight' is float32[3,20] and the model has float32[10,20]")):
            result = self.run_one("mlp", *self.iris(setting, "output.dir=second"), "--weights", saved, status=2)
            self.assertIn(says, result.err)
            self.assertEqual(len(result.err.splitlines()), 1)


def processes(folder, program):
    """Returns the ranks of a test, by number."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            process = pathlib.Path("/proc", entry)
            words = (process / "cmdline").read_text().split("\0")
            if words[0].endswith(f"models/{program}") and str((process / "cwd").readlink()) == str(folder):
                rank = re.search(r"OMPI_COMM_WORLD_RANK=(\d+)", (process / "environ").read_text())
                found[int(rank.group(1)) if rank else 0] = int(entry)
        except (OSError, UnicodeError):
            pass
    return found


class Signals(ProgramTest):
    """The first signal of any rank ends all ranks after the same step."""

    # mpirun ends all others when the first rank has ended. This script ignores that, so that it can write the
    # status of its rank.
    SCRIPT = 'trap "" INT TERM; "$@"; status=$?; echo $status > status.${OMPI_COMM_WORLD_RANK:-0}; exit $status'

    def stop(self, ranks, number, chosen):
        """Starts a long run, sends one rank the signal, and returns the exit statuses of the ranks."""
        if ranks > 1 and not support.HAS_MPI:
            self.skipTest("built without MPI")
        arguments = self.cnn("training.epochs=100000")
        command = ["bash", "-c", self.SCRIPT, "-", *self.command("convnet", *arguments, "--log", "log")]
        if ranks > 1:
            command = [str(support.MPIRUN), "-n", str(ranks), "--status", "failure", "--", *command]
        # gives the scripts time to write
        patient = dict(support.environment(), OMPI_MCA_odls_base_sigkill_timeout="3")
        process = subprocess.Popen(command, cwd=self.folder, env=patient, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        patience = Patience(60)
        while not (self.folder / "log").exists() or (self.folder / "log").stat().st_size < 2000:
            self.assertFalse(patience.is_over())
            time.sleep(0.05)
        os.kill(processes(self.folder, "convnet")[chosen], number)
        output, _ = process.communicate(timeout=90)
        statuses = [int((self.folder / f"status.{rank}").read_text()) for rank in range(ranks)]
        return statuses, output

    def check(self, ranks, number, chosen):
        statuses, output = self.stop(ranks, number, chosen)
        self.assertEqual(statuses, [128 + number] * ranks, output)
        steps = int(self.checkpoint("run").name.split("-")[1])
        self.assertEqual([line["step"] for line in self.log("log") if line["event"] == "step"][-1], steps)
        arguments = self.cnn("training.epochs=100000")
        self.run_ranks(ranks, "convnet", *arguments, "--resume", "--steps", steps + 3)
        self.run_ranks(ranks, "convnet", *arguments, *self.settings("output.dir=whole"), "--steps", steps + 3)
        self.assertEqual(self.weight_bytes("run"), self.weight_bytes("whole"))

    def test_interrupted_alone(self):
        self.check(1, signal.SIGINT, 0)

    def test_terminated_alone(self):
        self.check(1, signal.SIGTERM, 0)

    def test_alone_when_the_terminal_is_closed(self):
        statuses, output = self.stop(1, signal.SIGHUP, 0)
        self.assertEqual(statuses, [128 + signal.SIGTERM], output)
        self.assertEqual([line["step"] for line in self.log("log") if line["event"] == "step"][-1], int(self.checkpoint("run").name.split("-")[1]))

    def test_rank_0_terminated(self):
        self.check(2, signal.SIGTERM, 0)

    def test_rank_1_interrupted(self):
        self.check(2, signal.SIGINT, 1)

    def test_rank_2_terminated(self):
        self.check(3, signal.SIGTERM, 2)


class Launcher(ProgramTest):
    """mpirun itself gets the signal, as from Ctrl-C in a terminal, and stops reading the output of the ranks.
    """

    def check(self, number, *settings):
        arguments = self.iris("output.dir=run", "training.epochs=1000000", "data.validation_share=0.9", *settings)
        reader, writer = self.small_terminal()
        process = self.start_ranks(2, *self.command("mlp", *arguments, "--log", "log"), stdout=writer, stderr=writer)
        os.close(writer)
        os.read(reader, 1)  # waits until it prints
        time.sleep(4)
        steps_before = self.complete_log()[-1]["step"]
        process.send_signal(number)
        time.sleep(5)  # the reader continues only now
        self.drain(reader)
        self.assertEqual(process.wait(60), 1)
        steps = int(self.checkpoint("run").name.split("-")[1])
        self.assertGreater(steps, steps_before)
        self.assertEqual(self.complete_log()[-1]["step"], steps, "a step was lost")
        self.assertIn("resumed", self.run_one("mlp", *arguments, "--resume", "--steps", steps + 3).out)
        self.assertEqual(int(self.checkpoint("run").name.split("-")[1]), steps + 3)

    @staticmethod
    def drain(reader):
        try:
            while os.read(reader, 65536):
                pass
        except OSError:
            os.close(reader)

    def complete_log(self):
        """Returns the steps in the log, without a line that is still being written."""
        text = (self.folder / "log").read_text()
        lines = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
        return [line for line in lines if line["event"] == "step"]

    @staticmethod
    def small_terminal():
        """A terminal that is soon full, and a progress line every tenth of a second."""
        reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        return reader, writer

    def test_interrupted(self):
        self.check(signal.SIGINT)

    def test_terminated(self):
        self.check(signal.SIGTERM)

    def test_terminated_with_a_server(self):
        self.check(signal.SIGTERM, "distributed.strategy=async-server")

    def test_a_rank_that_serves_leaves_the_end_to_the_others(self):
        arguments = self.iris("output.dir=run", "training.epochs=1000000", "distributed.strategy=async-server")
        process = self.start_ranks(2, *self.command("mlp", *arguments, "--log", "log"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for_step(1)
        ranks = processes(self.folder, "mlp")
        os.kill(ranks[0], signal.SIGTERM)
        self.wait_for_step(self.complete_log()[-1]["step"] + 1000)
        os.kill(ranks[1], signal.SIGTERM)
        self.assertEqual(process.wait(60), 128 + signal.SIGTERM)
        self.assertEqual(self.complete_log()[-1]["step"], int(self.checkpoint("run").name.split("-")[1]))

    def wait_for_step(self, step):
        patience = Patience(60)
        while not (self.folder / "log").exists() or (log := self.complete_log()) == [] or log[-1]["step"] < step:
            self.assertFalse(patience.is_over())
            time.sleep(0.05)

    def test_a_mistake_is_told_soon(self):
        process = self.start_ranks(2, *self.command("mlp", *self.iris("training.epoch=3")), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        text, _ = process.communicate(timeout=60)  # guards against a wait of two minutes
        self.assertEqual(process.returncode, 2)
        self.assertEqual(text.count("did you mean 'epochs'"), 1, text)


if __name__ == "__main__":
    support.main()
