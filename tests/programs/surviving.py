"""The programs with Open MPI 5, where the other ranks live on when one dies."""

import os
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


if __name__ == "__main__":
    if not support.HAS_MPI or OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
