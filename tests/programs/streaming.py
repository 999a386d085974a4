"""Tests the training on rows that a command prints."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock

import support
from support import SOURCE, ProgramTest

sys.path.insert(0, str(SOURCE / "tools/run_parts"))

import events  # noqa: E402
from events import Kind  # noqa: E402

# Prints the rows of Iris again and again; `head` ends the stream. An argument is the number of rows.
ROWS = f"""
i=0
while [ $i -lt 12 ]; do tail -n +2 {SOURCE / "models/iris.csv"}; i=$((i + 1)); done | head -n $1 > rows.$$
head -n 1 {SOURCE / "models/iris.csv"}
cat rows.$$
rm rows.$$
"""


class Streaming(ProgramTest):
    def stream(self, command, *settings):
        self.write("rows.sh", ROWS)
        return self.iris(f"data.stream={command}", "data.steps_per_epoch=20", "training.epochs=4", *settings)

    def test_a_stream_ends_the_run_and_is_resumed_bitwise(self):
        for ranks, command in ((1, "sh rows.sh 500"), (2, "sh rows.sh $((300 - 50 * {rank}))")):
            with self.subTest(ranks):
                names = [f"{name}{ranks}" for name in ("whole", "parts")]
                arguments = lambda name: self.stream(command, "data.shuffle_buffer=40", f"output.dir={name}")
                whole = self.run_ranks(ranks, "mlp", *arguments(names[0]))
                # 62 steps of 8 rows; or 250 rows of rank 1, in parts of 4.
                self.assertIn("a stream has no samples for another step", whole.out)
                self.assertEqual(self.checkpoint(names[0]).name, "checkpoint-000062")
                self.assertRegex(whole.out, "20 steps in an epoch on the rows of the command")
                for i, stop in enumerate((7, 40, 62)):
                    self.run_ranks(ranks, "mlp", *arguments(names[1]), "--steps", stop, *(["--resume"] if i else []))
                self.run_ranks(ranks, "mlp", *arguments(names[1]), "--resume")
                for file in ("weights.safetensors", "state.safetensors"):
                    self.assertEqual(*((self.checkpoint(name) / file).read_bytes() for name in names), file)

    def test_a_command_that_fails_ends_all_ranks_and_is_no_end(self):
        failed = self.run_ranks(2, "mlp", *self.stream("sh rows.sh 300; exit {rank}", "output.dir=run"), status=2)
        self.assertIn("was to print rows, and has ended with status 1 after", failed.out + failed.err)
        killed = self.run_one("mlp", *self.stream("sh rows.sh 300; kill -9 $$", "output.dir=killed"), status=2)
        self.assertIn("was ended by signal 9", killed.err)
        empty = self.run_one("mlp", *self.stream("true", "output.dir="), status=2)
        self.assertIn("the stream of rank 0 has too few samples for one step of 8", empty.err)

    def test_an_endless_command_ends_with_the_run(self):
        self.write("endless.sh", f"echo $$ > process; while cat {SOURCE / 'models/iris.csv'} | tail -n +2; do :; done\n")
        done = self.run_one("mlp", *self.stream("head -n 1 " + str(SOURCE / "models/iris.csv") + "; sh endless.sh", "output.dir="), "--steps", "30")
        self.assertNotIn("ended early", done.out)
        self.assert_command_has_ended()

    def start(self, *arguments):
        """Starts a run without mpirun, and does not wait for it."""
        run = subprocess.Popen(self.command("mlp", *arguments), cwd=self.folder, env=support.environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def ranks(self):
        return events.read_ranks(self.folder / "run").ranks

    def silent(self, rows):
        """Returns a command that notes its process and prints rows, after which it is silent."""
        self.write("silent.sh", f"echo $$ > noted; mv noted process; head -n {rows + 1} {SOURCE / 'models/iris.csv'}; exec sleep 1000\n")
        return "sh silent.sh"

    def assert_command_has_ended(self):
        stat = pathlib.Path("/proc", (self.folder / "process").read_text().strip(), "stat")
        # The process may still wait for its new parent to take note of its end.
        self.wait_for(lambda: not stat.exists() or ") Z" in stat.read_text())

    def test_a_signal_ends_the_wait_for_a_silent_command(self):
        for rows, steps in ((140, 17), (5, 0)):
            with self.subTest(rows):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                (self.folder / "process").unlink(missing_ok=True)
                run = self.start(*self.stream(self.silent(rows), "output.dir=run"))
                self.wait_for(lambda: (self.folder / "process").exists() and self.ranks()[0].step == steps and self.ranks()[0].activity()[0] == Kind.DATA)
                run.send_signal(signal.SIGINT)
                out, err = run.communicate(timeout=60)
                self.assertEqual((run.returncode, err), (130, ""), out)
                self.assert_command_has_ended()
                saved = [name for name in self.checkpoints("run") if name.startswith("checkpoint-")]
                self.assertEqual(saved, [f"checkpoint-{steps:06}"] if steps else [])

    @unittest.skipUnless(support.HAS_ONEDNN, "the backend 'paced' is for builds with oneDNN")
    def test_a_second_signal_ends_a_long_step_and_the_command(self):
        with unittest.mock.patch.dict(os.environ, PLEXAURA_PLUGIN_PATH=str(support.BUILD / "tools")):
            run = self.start(*self.stream(self.silent(140), "output.dir=run", "training.tuning=off"), "--backend", "paced:times=100000000")
        self.wait_for(lambda: [rank for rank in self.ranks() if rank.step == 1])
        run.send_signal(signal.SIGINT)
        self.wait_for(lambda: self.ranks()[0].last(Kind.SIGNAL))
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, -signal.SIGINT)
        self.assert_command_has_ended()

    def test_what_reads_samples_again_or_elsewhere_refuses_a_stream(self):
        arguments = self.stream("sh rows.sh 300", "output.dir=")
        for option in ("--check", "--find-lr"):
            self.assertIn(f"{option} reads the same samples again", self.run_one("mlp", *arguments, option, status=2).err)
        self.assertIn("because data.stream is given", self.run_one("mlp", *arguments, "--overfit", "8", status=2).err)
        serving = (*self.settings("distributed.strategy=async-server"), "--serve", "127.0.0.1:0")
        self.assertIn("with --serve the clients read the samples", self.run_one("mlp", *arguments, *serving, status=2).err)
        for strategy, reason in (("scatter-gather", "rank 0 alone reads a table"), ("async-server", "a rank does not read the samples")):
            failed = self.run_ranks(3, "mlp", *arguments, *self.settings(f"distributed.strategy={strategy}"), status=2)
            self.assertIn(reason, failed.out + failed.err)


if __name__ == "__main__":
    support.main()
