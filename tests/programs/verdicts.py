"""Tests that tools/why says what a run does, or why it ended: kind, rank and step."""

import os
import re
import shutil
import signal
import subprocess
import sys

import support
from support import BUILD, SOURCE, ProgramTest

sys.path.insert(0, str(SOURCE / "tools/run_parts"))

import events  # noqa: E402
from events import Kind  # noqa: E402

ENDLESS = ("output.dir=run", "training.epochs=1000000", "distributed.deadline_seconds=3")


class VerdictTest(ProgramTest):
    def why(self, kind, pattern):
        done = subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, rf"\A{kind}: {pattern}.*\n\Z")
        return done.stdout

    def ranks(self):
        return events.read_ranks(self.folder / "run").ranks

    def wait_for_step(self, ranks, step):
        self.wait_for(lambda: len(self.ranks()) == ranks and all(rank.step >= step for rank in self.ranks()))

    def start(self, ranks, *command):
        run = self.start_ranks(ranks, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def end(self, run):
        output, _ = run.communicate(timeout=60)
        return output


class Run(VerdictTest):
    """Runs with different ends."""

    def check_signal(self, number, kind, during, behind):
        run = self.start(3, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(3, 100)
        os.kill(self.ranks()[1].process, number)
        self.wait_for(lambda: self.ranks()[1].process_state() in ("", "T"))
        self.assertRegex(self.why(kind, during), f" in step {self.ranks()[1].step}\\b")
        self.end(run)
        self.why(kind, behind)

    def test_killed(self):
        self.check_signal(signal.SIGKILL, "killed", r"rank 1 on \S+ was killed, or crashed, in step \d+", r"rank 1 on \S+ was killed, or crashed, in step \d+")

    def test_stopped(self):
        self.check_signal(signal.SIGSTOP, "stopped", r"rank 1 on \S+ is stopped in step \d+", r"rank 1 on \S+ was stopped in step \d+")

    def test_running_and_finished(self):
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS), "--steps", 3000))
        self.wait_for_step(2, 50)
        self.why("running|finished", r"ranks 0 and 1 ")
        self.end(run)
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 3000")
        self.assertRegex(self.ranks()[0].buckets[0], "fc1.weight")

    def test_finished_with_a_server(self):
        """The server makes no steps."""
        self.end(self.start(2, *self.command("mlp", *self.iris("output.dir=run", "distributed.strategy=async-server"), "--steps", 20)))
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 20")

    def test_alone(self):
        self.run_one("mlp", *self.iris("output.dir=run"), "--steps", 20)
        self.why("finished", "rank 0 ended with exit status 0 after step 20")

    def test_asked_to_end(self):
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 50)
        os.kill(self.ranks()[1].process, signal.SIGTERM)
        self.end(run)
        self.why("signal", r"rank 1 on \S+ was asked to end by SIGTERM, and all ranks ended after step \d+")
        for rank in self.ranks():
            said = next(event for event in rank.events if event.kind == Kind.END)
            leaves = next(event for event in rank.events if event.text == "the end of its work")
            self.assertLess(said.sequence, leaves.sequence, "mpirun may kill a rank that leaves")

    def test_left_by_exit(self):
        run = self.start(2, BUILD / "tests/programs/exiting_mlp", *self.iris(*ENDLESS))
        self.wait_for_step(2, 50)
        os.kill(self.ranks()[1].process, signal.SIGUSR1)
        self.end(run)
        self.why("exit", r"rank 1 on \S+ was left by exit\(3\) in step \d+")

    def test_broken_data(self):
        support.draw_images(self.folder / "images")
        settings = ["data.path=images", "data.image_size=32", "training.batch_size=6", "training.schedule.warmup_epochs=1", *ENDLESS]
        run = self.start(2, *self.command("resnet", SOURCE / "models/resnet18.yaml", *self.settings(*settings)))
        self.wait_for_step(2, 4)
        image = sorted((self.folder / "images/train").rglob("*.jpg"))[3]
        image.write_text("no image")
        self.end(run)
        said = self.why("exception", r"rank [01] on \S+ ended in step \d+ with the error: ")
        self.assertIn(image.name, said)

    def test_broken_data_that_rank_0_reads_for_all(self):
        """The error is in the validation of the first epoch, of which rank 1 gets no sample."""
        support.draw_images(self.folder / "images", train=4)
        image = sorted((self.folder / "images/val").rglob("*.jpg"))[-1]
        image.write_text("no image")
        settings = ["data.path=images", "data.image_size=32", "training.batch_size=6", "training.schedule.warmup_epochs=1",
                    "distributed.strategy=scatter-gather", *ENDLESS]
        self.end(self.start(2, *self.command("resnet", SOURCE / "models/resnet18.yaml", *self.settings(*settings))))
        self.assertIn(image.name, self.why("exception", r"rank 0 on \S+ ended in step 2 with the error: "))

    def test_samples_that_rank_0_does_not_send(self):
        run = self.start(2, *self.command("mlp", *self.iris("distributed.strategy=scatter-gather", *ENDLESS)))
        self.wait_for_step(2, 100)
        os.kill(self.ranks()[0].process, signal.SIGSTOP)
        self.wait_for(lambda: self.ranks()[0].process_state() == "T")
        self.why("stopped", r"rank 0 on \S+ is stopped in step \d+")
        self.end(run)
        self.why("stopped", r"rank 0 on \S+ was stopped in step \d+")

    def test_a_mistake_of_all(self):
        self.run_one("mlp", *self.iris("output.dir=run", "training.epoch=3"), status=2)
        self.why("exception", r"rank 0 on \S+ ended with the error: .*did you mean 'epochs'")

    def test_full_disk(self):
        self.run_one("mlp", *self.iris("output.dir=run", "model.hidden=[300, 300]"), status=2, limit="-f 80")
        self.why("disk full", r"rank 0 on \S+ ended in step 15 with the error: cannot write 'run/checkpoint.unfinished/")

    def test_full_disk_on_two_ranks(self):
        large = self.iris("output.dir=run", "model.hidden=[300, 300]")
        self.mpirun(2, support.with_short_files(80, self.command("mlp", *large)), status=2)
        self.why("disk full", r"rank 0 on \S+ ended in step 15 with the error: cannot write 'run/checkpoint.unfinished/")

    def test_different_files(self):
        one, other = (self.command("mlp", *self.iris("output.dir=run", f"training.seed={seed}")) for seed in (1, 2))
        self.end(self.start(2, *one, ":", "-n", 1, *other))
        self.why("mismatch", r"rank 0 on \S+ ended with the error: the ranks differ in 'training.seed': rank 2 has '2'")

    def test_a_rank_that_does_not_start(self):
        run = self.start(1, *self.command("mlp", *self.iris(*ENDLESS)), ":", "-n", 1, "sleep", 60)
        self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[0] == Kind.WAIT)
        self.why("start-up", r"rank 1 did not start, .*; rank 0 on \S+ has been in start-up, in 'MPI_Init")
        self.assertIsNone(run.poll())

    def test_a_start_that_is_refused(self):
        """A refused start must not hide the run that holds the folder, even after that run has ended."""
        run = self.start(1, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(1, 100)
        for mistake, says in (("training.seed=2", "^another run, process"), ("training.epoch=3", "did you mean 'epochs'")):
            refused = self.run_ranks(2, "mlp", *self.iris("output.dir=run", mistake), status=2)
            self.assertRegex(support.without_mpirun(refused.text)[0], says)
            self.why("running", "rank 0 ")
        os.kill(self.ranks()[0].process, signal.SIGTERM)
        self.end(run)
        self.why("signal", r"rank 0 on \S+ was asked to end by SIGTERM")

    def test_an_older_run_in_the_folder(self):
        self.run_ranks(3, "mlp", *self.iris("output.dir=run"), "--steps", 5)
        self.run_ranks(2, "mlp", *self.iris("output.dir=run"), "--steps", 7, "--replace")
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 7")

    def test_a_server_that_waits_is_not_the_slowest(self):
        self.start(3, *self.command("mlp", *self.iris(*ENDLESS, "distributed.strategy=async-server")))
        self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[:2] == (Kind.WAIT, "the end of the epoch"))

    def test_a_server_is_killed(self):
        """The server itself makes no steps."""
        for strategy in ("async-server", "send-recv"):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            run = self.start(3, *self.command("mlp", *self.iris(*ENDLESS, f"distributed.strategy={strategy}")))
            self.wait_for(lambda: len(self.ranks()) == 3 and all(rank.step >= 100 for rank in self.ranks()[1:]))
            os.kill(self.ranks()[0].process, signal.SIGKILL)
            self.end(run)
            self.why("killed", r"rank 0 on \S+ was killed, or crashed, as a server, ")

    def test_the_kinds_are_those_of_the_programs(self):
        kinds = re.findall(r"^  (\w+) = (\d+)", (SOURCE / "core/base/events.h").read_text(), re.MULTILINE)
        self.assertEqual([(name, int(number)) for name, number in kinds], [(kind.name.lower(), kind) for kind in Kind if kind])

    def test_a_folder_that_was_removed(self):
        """The ranks still have their files open, also if the next checkpoint makes the folder again."""
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        rank = self.ranks()[1].process
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.assertRegex(self.why("running", "rank"), "; what it kept in '.*/run' was removed$")
        os.kill(rank, signal.SIGTERM)
        self.end(run)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        done = subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Awhy: there is no folder '.*/run'; name the folder output.dir of a run\n\Z")

    def test_folders_that_may_not_be_read(self):
        """Runs as a user other than root, because root may read everything."""
        nobody = 65534 if os.geteuid() == 0 else None
        why = SOURCE / "tools/why"
        if nobody and subprocess.run([why, "--help"], user=nobody, capture_output=True).returncode != 0:
            self.skipTest(f"user {nobody} may not start {why}")
        self.folder.chmod(0o755)
        (self.folder / "run/events").mkdir(parents=True)
        for part, mode in (("run/events", 0), ("run", 0o333), ("run", 0)):
            (self.folder / part).chmod(mode)
            done = subprocess.run([why, self.folder / "run"], user=nobody, capture_output=True, text=True, timeout=60)
            (self.folder / part).chmod(0o755)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"\Awhy: '.*/{part}' may not be read; ask as the user who has started the run\n\Z")


if __name__ == "__main__":
    support.main()
