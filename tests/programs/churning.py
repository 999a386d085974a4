"""Ranks die and come back, with Open MPI 5: tools/run --rejoin restarts all ranks, and the run ends like an
undisturbed one.

PLEXAURA_FAULT_SEEDS=20 churning.py BUILD_FOLDER                              more and longer tests
PLEXAURA_CHURN_SECONDS=3600 churning.py BUILD_FOLDER Churn.test_long_churn    one death each 15 s for an hour
"""

import contextlib
import os
import random
import shutil
import signal
import sys
import time

import dying
import support
from sparing import SpareTest
from surviving import OPEN_MPI_5

import events  # noqa: E402

IN_MPI_INIT = "MPI_Init, where all ranks come together"
LONGEST_START = 120  # seconds
STARTS_AGAIN = "starting again from the last checkpoint with {}"


class RejoinTest(SpareTest):
    """Slows kernels down, so that a run is not over before ranks are back."""

    def setUp(self):
        super().setUp()
        self.environment["PLEXAURA_PLUGIN_PATH"] = str(support.BUILD / "tools")

    def paced(self, *settings, epochs=100, times=1000):
        """Starts a run in which 100 epochs take about 5 seconds."""
        return self.command("mlp", *self.iris(f"training.epochs={epochs}", "training.tuning=off", *settings), "--backend", f"paced:times={times}")

    def whole(self, ranks, epochs=100, *settings):
        self.run_ranks(ranks, "mlp", *self.iris(f"training.epochs={epochs}", "training.tuning=off", "output.dir=whole", *settings))

    def start_all(self, ranks, program, *options):
        return self.start("-n", ranks, "--survive", "--rejoin", *options, *program)

    def wait_for_start(self, ranks, known):
        """Waits until ranks run whose processes are not in `known`. Returns all processes that are known
        then."""
        processes = lambda: {rank.process for rank in self.ranks()}
        self.wait_for(lambda: len(self.ranks()) == ranks and not processes() & known and all(rank.step or rank.is_spare for rank in self.ranks()))
        return known | processes()

    def starts(self, said):
        return [line.removeprefix("run: ") for line in said if "starting again" in line]


class Rejoin(RejoinTest):
    def test_ranks_come_back(self):
        """Kills any rank, one after another, and two at once."""
        self.whole(3)
        run = self.start_all(3, self.paced("output.dir=run"))
        known = set()
        for victims in ([1], [0], [1, 2]):
            known = self.wait_for_start(3, known)
            for victim in victims:
                self.kill(victim)
        self.wait_for_start(3, known)
        said = self.end(run, 0)
        self.assertEqual(self.starts(said), [STARTS_AGAIN.format("3 ranks")] * 3)
        self.assertRegex(said[0], r"^run: .*; rank 1 died before, and the others continued; the ranks finish their step and save, and all start again from there$")
        self.compare("run", "whole")

    def test_ranks_that_train_for_themselves_come_back(self):
        for strategy in ("elastic", "local") if support.FAULT_SEEDS >= 20 else ("elastic",):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            run = self.start_all(3, self.paced("output.dir=run", f"distributed.strategy={strategy}"))
            known = self.wait_for_start(3, set())
            self.kill(1)
            self.wait_for_start(3, known)
            said = self.end(run, 0)
            self.assertEqual(self.starts(said), [STARTS_AGAIN.format("3 ranks")])
            self.assertEqual(self.checkpoint("run").name, "checkpoint-001500")

    def test_beside_spares(self):
        """Spares replace dead ranks. If more ranks die than there are spares, all are restarted."""
        self.whole(2)
        run = self.start_all(2, self.paced("output.dir=run"), "--spares", 1)
        known = self.wait_for_start(3, set())
        self.kill(0)
        self.wait_for_training([1, 2], self.by_number()[1].step + 5)
        self.wait_for(lambda: self.by_number()[2].survived)
        self.kill(2)
        self.wait_for_start(3, known)
        said = self.end(run, 0)
        self.assertEqual(self.starts(said), [STARTS_AGAIN.format("2 ranks and 1 spare")])
        self.compare("run", "whole")

    def test_one_that_dies_as_it_starts(self):
        """The launcher finds out soon, although the others wait for the rank in MPI_Init for a minute."""
        self.whole(2)
        dies = self.write("dies.py", "import os, sys\n"
                          f"if os.environ['OMPI_COMM_WORLD_RANK'] == '1' and not os.path.exists('died'): open('died', 'w'); os.environ['PLEXAURA_FAULTS'] = '1:1:0:kill:{IN_MPI_INIT}'\n"
                          "os.execvp(sys.argv[1], sys.argv[1:])\n")
        arguments = self.iris("training.epochs=100", "training.tuning=off", "output.dir=run")
        run = self.start_all(2, [sys.executable, dies, support.BUILD / "tests/programs/faulty_mlp", *arguments])
        self.wait_for((self.folder / "died").exists)
        # before the minute of MPI_Init is over
        self.wait_for_word(run, "a rank has died before all had started")
        said = self.end(run, 0)
        self.assertRegex(said[0], r"^run: a rank has died before all had started: rank 1 on \S+ was killed, or crashed, in start-up, .*; the job is killed$")
        self.assertRegex(said[1], r"; starting again from the beginning with 2 ranks \(restart 1 of 3\)$")
        self.compare("run", "whole")

    def test_starts_in_vain(self):
        self.environment["PLEXAURA_FAULTS"] = dying.death(1, IN_MPI_INIT)
        said = self.end(self.start_all(2, [support.BUILD / "tests/programs/faulty_mlp", *self.iris("output.dir=run")], "--restarts", 1), 1)
        self.assertEqual(len(self.starts(said)), 1, said)

    def test_a_signal_ends_it(self):
        """A signal ends the run, also while ranks are about to come back."""
        run = self.start_all(2, self.paced("output.dir=run", epochs=100000))
        self.wait_for_start(2, set())
        self.kill(1)
        self.wait_for_survivors([1])
        run.send_signal(signal.SIGTERM)
        said = self.end(run, 143)
        self.assertEqual(self.starts(said), [])

    def test_a_signal_while_they_save(self):
        """The signal must not end ranks that are saving, as a second signal would."""
        run = self.start_all(2, self.paced("output.dir=run", epochs=100000))
        self.wait_for_start(2, set())
        self.kill(1)
        self.wait_for_word(run, "all start again from there")
        run.send_signal(signal.SIGINT)
        self.end(run, 130)
        self.assertEqual(self.by_number()[0].saved, self.by_number()[0].step)

    def test_nobody_comes_back_to_a_run_without_output(self):
        """A restart would begin anew, so the remaining ranks continue."""
        run = self.start_all(2, self.paced("output.dir="))
        self.wait_for_word(run, "keeps nothing in output.dir")
        (folder,) = (self.folder / "tmp").glob("plexaura-run-*")
        self.wait_for(lambda: all(rank.step for rank in events.read_ranks(folder).ranks))
        os.kill(events.read_ranks(folder).ranks[1].process, signal.SIGKILL)
        said = self.end(run, 0)
        self.assertEqual(said, ["run: ranks that die do not come back before a checkpoint is saved, and this run keeps nothing in output.dir; name a folder there"])
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 1 has died; rank 0 continues"])

    def test_one_that_dies_again_and_again(self):
        """A rank dies soon after the first step of each start. In the end the others finish the run, with the
        same weights."""
        self.whole(2)
        run = self.start_all(2, self.paced("output.dir=run"), "--restarts", 1)
        known = set()
        for _ in range(2):
            known = self.wait_for_start(2, known)
            self.kill(1)
        said = self.end(run, 0)
        self.assertEqual(self.starts(said), [STARTS_AGAIN.format("2 ranks")])
        self.assertRegex(said[-1], "^run: in 2 starts in a row a rank has died within 60 s of the first step; the others continue without it, ")
        self.compare("run", "whole")

    def test_its_mistake(self):
        said = self.launch("-n", 2, "--rejoin", *self.paced(), status=2)
        self.assertEqual(said, ["run: --rejoin needs --survive, for without it all ranks end when one dies; give both, or --restarts alone"])


class Churn(RejoinTest):
    """A run that is disturbed all the time. docs/guide/surviving.md defines goodput."""

    PACE, STEPS_PER_EPOCH = 5000, 15

    def program(self, *settings):
        """Starts the program with its output in a file that nobody reads meanwhile."""
        return ["bash", "-c", 'exec "$@" >> printed', "-", *self.paced("output.keep=1000000", *settings, epochs=1000000, times=self.PACE)]

    def undisturbed_seconds_per_step(self, ranks, seconds):
        """Returns the seconds of a step of the same run by the same launcher, including everything beside
        steps."""
        run = self.start("-n", ranks, "--survive", *self.program("output.dir=run"))
        self.wait_for_start(ranks, set())
        first, begin = self.ranks()[0].step, time.monotonic()
        time.sleep(seconds)
        self.wait_for(lambda: self.ranks()[0].step > first)
        last, end = self.ranks()[0].step, time.monotonic()
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)
        shutil.rmtree(self.folder / "run")
        return (end - begin) / (last - first)

    def churn(self, ranks, spares, seconds, pause):
        """Kills random processes of the run at random times, one in `pause` seconds on average. Returns what
        was observed."""
        source, watch = random.Random(3), Watch(ranks, spares)
        run = self.start_all(ranks, self.program("output.dir=run"), "--spares", spares, "--restarts", 1000000)
        self.wait_for_start(ranks + spares, set())
        watch.begin(self.ranks())
        end, due = time.monotonic() + seconds, time.monotonic() + source.expovariate(1 / pause)
        while (time.monotonic() < end or watch.who_trains() == "nobody") and run.poll() is None:
            self.assertLess(time.monotonic(), end + LONGEST_START)
            time.sleep(0.1)
            with contextlib.suppress(ValueError, OSError):  # a new start may be writing these files
                watch.look(self.ranks())
            if end > time.monotonic() > due and watch.living:
                watch.kill(source.choice(watch.living))
                due += source.expovariate(1 / pause)
        watch.last_step = max(rank.step for rank in self.ranks())
        run.send_signal(signal.SIGTERM)
        said = self.end(run, 143)
        print("\n".join(said))
        watch.starts = len(self.starts(said))
        return watch

    def check(self, ranks, spares, seconds, pause):
        """Returns the goodput."""
        for folder in ("run", "whole"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        step = self.undisturbed_seconds_per_step(ranks, max(5, seconds / 60))
        watch = self.churn(ranks, spares, seconds, pause)
        print(watch.report(step), flush=True)
        self.assertGreater(watch.starts, 0)
        self.compare_epochs(ranks)
        return watch.goodput(step)

    def compare_epochs(self, ranks):
        """Compares the end of every epoch with an undisturbed run."""
        last = max(int(path.name.split("-")[1]) for path in (self.folder / "run").glob("checkpoint-*"))
        self.run_ranks(ranks, "mlp", *self.iris("training.epochs=1000000", "training.tuning=off", "output.keep=1000000", "output.dir=whole"), "--steps", last,
                       within=3600)
        epochs = [path for path in (self.folder / "whole").glob("checkpoint-*") if int(path.name.split("-")[1]) % self.STEPS_PER_EPOCH == 0]
        self.assertEqual(len(epochs), last // self.STEPS_PER_EPOCH)
        for whole in epochs:
            for name in ("weights.safetensors", "state.safetensors"):
                self.assertEqual((self.folder / "run" / whole.name / name).read_bytes(), (whole / name).read_bytes(), f"{whole.name}/{name}")
        print(f"churn: {len(epochs)} epochs have the weights of an undisturbed run")

    def test_churn(self):
        seconds = 120 if support.FAULT_SEEDS >= 20 else 25
        for spares, pause in ((0, 8), (1, 4)):
            with self.case("churn", f"4 ranks and {spares} spares, {seconds} s, a death each {pause} s"):
                self.check(4, spares, seconds, pause)

    def test_long_churn(self):
        if "PLEXAURA_CHURN_SECONDS" not in os.environ:
            self.skipTest("takes as long as PLEXAURA_CHURN_SECONDS says")
        seconds, spares = float(os.environ["PLEXAURA_CHURN_SECONDS"]), int(os.environ.get("PLEXAURA_CHURN_SPARES", "0"))
        with self.case("churn", f"4 ranks and {spares} spares, {seconds:g} s, a death each 15 s"):
            self.assertGreaterEqual(self.check(4, spares, seconds, 15), 0.88)


class Watch:
    """Records which ranks live and which train in a disturbed run. A rank counts as dead only from when the
    test killed it until the next start."""

    def __init__(self, ranks, spares):
        self.ranks, self.spares = ranks, spares
        self.processes, self.killed, self.living, self.kills = set(), set(), [], 0
        # seconds in which all, fewer or no ranks train
        self.seconds = dict.fromkeys(("all", "fewer", "nobody"), 0.0)
        self.live = 0.0  # rank-seconds
        self.first_step = self.last_step = self.starts = 0

    def begin(self, ranks):
        self.first_step, self.looked = max(rank.step for rank in ranks), time.monotonic()
        self.look(ranks)

    def look(self, ranks):
        processes = {rank.process for rank in ranks}
        if processes - self.processes:
            self.killed = set()
        self.processes = processes
        self.living = [rank for rank in ranks if rank.process_state() and rank.process not in self.killed]
        now = time.monotonic()
        self.seconds[self.who_trains()] += now - self.looked
        self.live += (self.ranks + self.spares - len(self.killed)) * (now - self.looked)
        self.looked = now

    def who_trains(self):
        training = [rank for rank in self.living if not rank.is_spare]
        if not training or any(rank.is_starting or not rank.step for rank in training):
            return "nobody"
        return "all" if len(training) >= self.ranks else "fewer"

    def kill(self, rank):
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank.process, signal.SIGKILL)
            self.killed.add(rank.process)
            self.living.remove(rank)
            self.kills += 1

    def goodput(self, seconds_per_step):
        return (self.last_step - self.first_step) * self.ranks * seconds_per_step / self.live

    def report(self, seconds_per_step):
        shares = ", ".join(f"{who} {seconds / sum(self.seconds.values()):.1%}" for who, seconds in self.seconds.items())
        return (f"churn: {sum(self.seconds.values()):.0f} s, {self.kills} deaths, {self.starts} new starts; steps {self.first_step} to {self.last_step} of "
                f"{1e3 * seconds_per_step:.2f} ms; goodput {self.goodput(seconds_per_step):.1%} of {self.live:.0f} s of live rank-time; who trains: {shares}")


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
