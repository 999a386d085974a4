"""Faults happen at random places, and tools/why must name their kind, rank, step and tensor. There are twelve
kinds.

PLEXAURA_FAULT_SEEDS=20 explaining.py BUILD_FOLDER    each at five places, instead of one; prints a line for
each
PLEXAURA_ALARM_SECONDS=3600 explaining.py BUILD_FOLDER Explained.test_no_false_alarm    asks for an hour
"""

import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import support
from support import BUILD, SOURCE
from verdicts import VerdictTest

PLACES = max(1, support.FAULT_SEEDS // 4)
RANKS = 3
# The tensors in the order in which their gradients are final. Each has its own bucket.
TENSORS = ["fc3.bias", "fc3.weight", "fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"]
ENDLESS = ("output.dir=run", "training.epochs=1000000", "distributed.deadline_seconds=3")
FAKE_HOSTS = SOURCE / "tests/support/fake_hosts.sh"


class Place:
    """The place of a fault."""

    def __init__(self, seed):
        source = random.Random(seed)
        self.rank, self.step, self.bucket = source.randrange(RANKS), source.randrange(2, 40), source.randrange(len(TENSORS))
        self.memory = f"distributed.shared_memory={source.choice(('true', 'false'))}"
        self.image, self.key = source.randrange(24), source.choice(["training.seed=2", "training.batch_size=9", "distributed.bucket_bytes=100"])

    def __str__(self):
        return f"rank {self.rank}, step {self.step}, {TENSORS[self.bucket]}, {self.memory}, image {self.image}, {self.key}"

    def call(self):
        return rf"in step {self.step}, in 'bucket {self.bucket} of step {self.step}' \({TENSORS[self.bucket]}\) with the other ranks"


class Explained(VerdictTest):
    def faulty(self, place, fault, point, more=0):
        """Starts a run with a fault `more` points after the given point."""
        self.let_go_wrong(f"{place.rank}:1:{more}:{fault}:{point}")
        settings = self.iris(*ENDLESS, "distributed.bucket_bytes=4", place.memory)
        return self.start(RANKS, BUILD / "tests/programs/faulty_mlp", *settings)

    def faulty_bucket(self, place, fault):
        return self.faulty(place, fault, f"bucket {place.bucket} of step {place.step}")

    @staticmethod
    def one_of(rank, odd, others):
        """Returns words for mpirun: one command for that rank, and another one for the others."""
        words = [odd if i == rank else others for i in range(RANKS)]
        return [word for i, each in enumerate(words) for word in ([":", "-n", 1] if i else []) + list(each)]

    def check(self, kind, attempt):
        for seed in range(PLACES):
            place = Place(f"{kind} {seed}")
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            with self.case(kind, str(place)):
                self.why(kind, attempt(place))

    def test_killed(self):
        def attempt(place):
            self.end(self.faulty_bucket(place, "kill"))
            return rf"rank {place.rank} on \S+ was killed, or crashed, {place.call()}"
        self.check("killed", attempt)

    def test_stopped(self):
        def attempt(place):
            run = self.faulty_bucket(place, "stop")
            self.wait_for(lambda: len(self.ranks()) == RANKS and self.ranks()[place.rank].process_state() == "T")
            self.why("stopped", rf"rank {place.rank} on \S+ is stopped {place.call()}")
            self.end(run)
            return rf"rank {place.rank} on \S+ was stopped {place.call()}, until the other ranks gave it up"
        self.check("stopped", attempt)

    def test_exit(self):
        def attempt(place):
            self.end(self.faulty_bucket(place, "exit"))
            return rf"rank {place.rank} on \S+ was left by exit\(3\) {place.call()}"
        self.check("exit", attempt)

    def test_stuck(self):
        def attempt(place):
            self.end(self.faulty_bucket(place, "hang"))
            return rf"rank {place.rank} on \S+ was {place.call()}, until the other ranks gave it up"
        self.check("stuck", attempt)

    def test_slow_loader(self):
        def attempt(place):
            self.end(self.faulty(place, "hang", f"step {place.step}", 1))
            return rf"rank {place.rank} on \S+ was in step {place.step}, waiting for samples, until the other ranks gave it up"
        self.check("slow loader", attempt)

    def test_signal(self):
        def attempt(place):
            self.end(self.faulty_bucket(place, "terminate"))
            step = int(self.checkpoint("run").name.split("-")[1])
            self.assertIn(step, (place.step, place.step + 1))
            return rf"rank {place.rank} on \S+ was asked to end by SIGTERM, and all ranks ended after step {step}\b"
        self.check("signal", attempt)

    def test_start_up(self):
        def attempt(place):
            command = self.one_of(place.rank, ["sleep", 60], self.command("mlp", *self.iris(*ENDLESS)))
            run = self.start(1, *command)
            self.wait_for(lambda: len(self.ranks()) == RANKS - 1)
            waiting = rf"rank {place.rank} did not start, "
            self.why("start-up", waiting)
            run.kill()
            self.end(run)
            return waiting
        self.check("start-up", attempt)

    def test_exception(self):
        """A sample cannot be read. Each of three ranks takes two of the six samples of a step, in order."""
        def attempt(place):
            shutil.rmtree(self.folder / "images", ignore_errors=True)
            support.draw_images(self.folder / "images", train=8)
            image = sorted((self.folder / "images/train").rglob("*.jpg"))[place.image]
            image.write_text("no image")
            settings = ["data.path=images", "data.image_size=32", "data.shuffle=false", "training.batch_size=6", "training.schedule.warmup_epochs=1", *ENDLESS]
            self.end(self.start(RANKS, *self.command("resnet", SOURCE / "models/resnet18.yaml", *self.settings(*settings))))
            return rf"rank {place.image % 6 // 2} on \S+ ended in step {place.image // 6 + 1} with the error: .*{image.name}"
        self.check("exception", attempt)

    def test_disk_full(self):
        def attempt(place):
            large = self.iris("output.dir=run", "model.hidden=[300, 300]")
            program = self.command("mlp", *large, "--steps", place.step)
            self.end(self.start(RANKS, *support.with_short_files(80, program)))
            return rf"rank 0 on \S+ ended in step {min(place.step, 15)} with the error: cannot write 'run/checkpoint.unfinished/"
        self.check("disk full", attempt)

    def test_mismatch(self):
        def attempt(place):
            settings = [self.iris("output.dir=run", *more) for more in ((place.key,), ())]
            self.end(self.start(1, *self.one_of(place.rank, *(self.command("mlp", *each) for each in settings))))
            key, value = place.key.split("=")
            others = [rank for rank in range(RANKS) if rank != place.rank]
            return rf"rank 0 on \S+ ended with the error: the ranks differ in '{key}': .*rank {place.rank} has '{value}'.*ranks {others[0]} and {others[1]} have"
        self.check("mismatch", attempt)

    def test_out_of_memory(self):
        def attempt(place):
            large = self.command("mlp", *self.iris("output.dir=run", "model.hidden=[6000, 6000]"))
            limited = ["bash", "-c", 'ulimit -v 1000000 && exec "$@"', "-", *large]
            self.end(self.start(1, *self.one_of(place.rank, limited, large)))
            return rf"rank {place.rank} on \S+ ended with the error: "
        self.check("out of memory", attempt)

    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_dropped_link(self):
        """Cuts the link of a host. Each rank has its own host. The verdict must name that host, or a rank
        that it cannot reach."""
        def attempt(place):
            launcher = f'exec {SOURCE}/tools/run -n {RANKS} --deadline 5 --host "$FAKE_HOSTS" "$@"'
            program = self.command("mlp", *self.iris(*ENDLESS))
            run = subprocess.Popen([FAKE_HOSTS, "--hosts", str(RANKS), "-n", str(RANKS), "--no-mpirun", "--", "bash", "-c", launcher, "-", *program],
                                   cwd=self.folder, env=support.mpi_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.addCleanup(run.communicate)
            self.addCleanup(run.kill)
            self.wait_for(lambda: run.poll() == 77 or len(self.ranks()) == RANKS and self.ranks()[place.rank].step > place.step)
            if run.poll() == 77:
                self.skipTest("no network namespaces here")
            host = self.ranks()[place.rank].host
            subprocess.run(["ip", "link", "set", host.replace("-", "v"), "down"], check=True)
            self.end(run)
            return rf".*{host}"
        self.check("dropped link", attempt)

    def test_no_false_alarm(self):
        """One rank is three times as slow as the others, and each evaluation takes several deadlines."""
        seconds = float(os.environ.get("PLEXAURA_ALARM_SECONDS", "12"))
        slow = ("output.dir=run", "output.keep=1", "training.epochs=1000000", "training.tuning=off", "training.batch_size=3", "data.validation_share=0.8", "distributed.deadline_seconds=2")
        paced = self.command("mlp", *self.iris(*slow), "--backend", "paced:times=20000,slow_rank=2,slow=3")
        run = self.start(RANKS, "env", f"PLEXAURA_PLUGIN_PATH={BUILD / 'tools'}", *paced)
        self.wait_for_step(RANKS, 1)
        asked, evaluations, end = 0, 0, time.monotonic() + seconds
        while time.monotonic() < end:
            self.why("running", "ranks? ")
            evaluations += any(rank.activity()[1] == "validation" for rank in self.ranks())
            asked += 1
            time.sleep(0.5)
        os.kill(self.ranks()[0].process, signal.SIGTERM)
        self.end(run)
        self.assertEqual(run.returncode, 143)
        print(f"alarm: {asked} times in {seconds:.0f} s the run was said to be running, {evaluations} times within an evaluation")
        self.assertGreater(evaluations, 0)


if __name__ == "__main__":
    support.main()
