"""Ranks that die and come back, with Open MPI 5: tools/run --rejoin starts all again, and the run ends as one that nobody has disturbed.

PLEXAURA_FAULT_SEEDS=20 churning.py BUILD_FOLDER    ten times as many deaths
"""

import os
import random
import re
import signal
import sys
import time

import dying
import support
from sparing import SpareTest
from surviving import OPEN_MPI_5

IN_MPI_INIT = "MPI_Init, where all ranks come together"
STARTS_AGAIN = "starting again from the last checkpoint with {}"


class RejoinTest(SpareTest):
    """Each kernel takes longer than on this processor, so that a run is not over before ranks are back."""

    def setUp(self):
        super().setUp()
        self.environment["PLEXAURA_PLUGIN_PATH"] = str(support.BUILD / "tools")

    def paced(self, *settings, epochs=100):
        """100 epochs take some 5 seconds."""
        return self.command("mlp", *self.iris(f"training.epochs={epochs}", "training.tuning=off", *settings), "--backend", "paced:times=1000")

    def whole(self, ranks, epochs=100, *settings):
        self.run_ranks(ranks, "mlp", *self.iris(f"training.epochs={epochs}", "training.tuning=off", "output.dir=whole", *settings))

    def start_all(self, ranks, program, *options):
        return self.start("-n", ranks, "--survive", "--rejoin", *options, *program)

    def wait_for_start(self, ranks, known):
        """Of processes that are not known yet. Returns all that are known then."""
        processes = lambda: {rank.process for rank in self.ranks()}
        self.wait_for(lambda: len(self.ranks()) == ranks and not processes() & known and all(rank.step or rank.is_spare for rank in self.ranks()))
        return known | processes()

    def starts(self, said):
        return [line.removeprefix("run: ") for line in said if "starting again" in line]


class Rejoin(RejoinTest):
    def test_ranks_come_back(self):
        """Any of them, one after the other, and two at once."""
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
        self.assertRegex(said[0], r"^run: ranks 0 and 2 at step \d+; rank 1 died before, and the others went on; the ranks finish their step and save, and all start again from there$")
        self.compare("run", "whole")

    def test_beside_spares(self):
        """These take over. More deaths than spares are worth a new start."""
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
        """It is known at once, though the others wait for it in MPI_Init."""
        self.whole(2)
        dies = self.write("dies.py", "import os, sys\n"
                          f"if os.environ['OMPI_COMM_WORLD_RANK'] == '1' and not os.path.exists('died'): open('died', 'w'); os.environ['PLEXAURA_FAULTS'] = '1:1:0:kill:{IN_MPI_INIT}'\n"
                          "os.execvp(sys.argv[1], sys.argv[1:])\n")
        arguments = self.iris("training.epochs=100", "training.tuning=off", "output.dir=run")
        begin = time.monotonic()
        said = self.end(self.start_all(2, [sys.executable, dies, support.BUILD / "tests/programs/faulty_mlp", *arguments]), 0)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertRegex(said[0], r"^run: a rank has died before all had started: rank 1 on \S+ was killed, or crashed, in start-up, .*; the job is killed$")
        self.assertRegex(said[1], r"; starting again from the beginning with 2 ranks \(restart 1 of 3\)$")
        self.compare("run", "whole")

    def test_starts_in_vain(self):
        self.environment["PLEXAURA_FAULTS"] = dying.death(1, IN_MPI_INIT)
        said = self.end(self.start_all(2, [support.BUILD / "tests/programs/faulty_mlp", *self.iris("output.dir=run")], "--restarts", 1), 1)
        self.assertEqual(len(self.starts(said)), 1, said)

    def test_a_signal_ends_it(self):
        """Where ranks are about to come back as well."""
        run = self.start_all(2, self.paced("output.dir=run", epochs=100000))
        self.wait_for_start(2, set())
        self.kill(1)
        self.wait_for_survivors([1])
        run.send_signal(signal.SIGTERM)
        said = self.end(run, 143)
        self.assertEqual(self.starts(said), [])

    def test_a_signal_while_they_save(self):
        """It does not end them before that, as a second one would."""
        run = self.start_all(2, self.paced("output.dir=run", epochs=100000))
        self.wait_for_start(2, set())
        self.kill(1)
        while "all start again from there" not in run.stderr.readline():
            pass
        run.send_signal(signal.SIGINT)
        self.end(run, 130)
        self.assertEqual(self.by_number()[0].saved, self.by_number()[0].step)

    def test_its_mistake(self):
        said = self.launch("-n", 2, "--rejoin", *self.paced(), status=2)
        self.assertEqual(said, ["run: --rejoin needs --survive, for without it all ranks end when one dies; give both, or --restarts alone"])


class Churn(RejoinTest):
    def check(self, ranks, spares, kills, pause, epochs):
        """Kills so many processes of the run, any of them at any moment, one each `pause` seconds on average."""
        self.whole(ranks, epochs, "output.keep=1000000")
        run = self.start_all(ranks, self.paced("output.dir=run", "output.keep=1000000", epochs=epochs), "--spares", spares)
        self.wait_for_start(ranks + spares, set())
        source = random.Random(support.FAULT_SEEDS)
        for _ in range(kills):
            time.sleep(source.expovariate(1 / pause))
            living = [rank for rank in self.ranks() if rank.process_state()]
            if living:
                os.kill(source.choice(living).process, signal.SIGKILL)
        said = self.end(run, 0)
        self.assertGreater(len(self.starts(said)), 0, said)
        self.compare_epochs()

    def compare_epochs(self):
        """All checkpoints; those that were saved within an epoch have no match."""
        folders = [folder for folder in (self.folder / "run").glob("checkpoint-*") if (self.folder / "whole" / folder.name).exists()]
        for folder in folders:
            for name in ("weights.safetensors", "state.safetensors"):
                self.assertEqual((folder / name).read_bytes(), (self.folder / "whole" / folder.name / name).read_bytes(), f"{folder.name}/{name}")
        self.assertGreater(len(folders), 10)

    def test_churn(self):
        more = 10 if support.FAULT_SEEDS >= 20 else 1
        with self.case("churn", f"4 ranks and a spare, {8 * more} deaths, one each 2.5 s"):
            self.check(4, 1, 8 * more, 2.5, 400 * more)


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
