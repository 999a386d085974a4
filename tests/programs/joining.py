"""Ranks die at named points while others come back, with Open MPI 5: in the save that the launcher asks for,
and in the next start.

PLEXAURA_FAULT_SEEDS=20 joining.py BUILD_FOLDER    all points and ranks, instead of some; prints a line for
each
"""

import shutil
import sys

import support
from churning import IN_MPI_INIT, RejoinTest
from dying import RANKS, chosen, death
from support import BUILD
from surviving import OPEN_MPI_5

EPOCHS = 6  # of 15 steps each, followed by a checkpoint
LAST = 15 * EPOCHS
FIRST = "bucket 0 of step 16"  # early in an epoch, so that the others save before the next checkpoint is due
# Sets the faults of a rank by the number of its start. Each start of mpirun has its own namespace.
FAULTS_OF_START = 'echo $PMIX_NAMESPACE >> starts; n=$(sort -u starts | wc -l); export PLEXAURA_FAULTS=$(sed -n ${n}p faults); exec "$@"'

# the save after an epoch has these points, too
OF_SAVE = ["the comparison of the weights of all ranks", "the state of the strategy", "saving a checkpoint", "after saving a checkpoint"]
OF_SIGNALLED_END = ["the end of its work", "after the end of its work", "MPI_Finalize, where all ranks come together"]
OF_START = [IN_MPI_INIT, f"after {IN_MPI_INIT}", "MPI_Comm_dup", "where the ranks are", "reading the configuration", "placing the parameters", "compiling", "resuming",
            "after resuming", "the start of training", "the beginning of the strategy"]
OF_TRAINING = ["the tail of the first step", "samples", "bucket 1 of step 40", "the update of step 40", "after the update of step 40", "validation", "saving a checkpoint",
               "saved 60"]
OF_END = [f"saved {LAST}", "the end of its work", "after the end of its work"]


class Joining(RejoinTest):
    def setUp(self):
        super().setUp()
        self.whole(RANKS, EPOCHS)

    def check(self, *faults, starts):
        """`faults` are lists of faults for the first start, the second, and so on. `starts` is the minimum
        number of starts."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        for name in ("starts", "happened"):
            (self.folder / name).unlink(missing_ok=True)
        self.write("faults", "".join(f"{';'.join(of_start)}\n" for of_start in faults))
        self.environment["PLEXAURA_FAULTS_HAPPENED"] = str(self.folder / "happened")
        program = [BUILD / "tests/programs/faulty_mlp", *self.iris(f"training.epochs={EPOCHS}", "training.tuning=off", "output.dir=run", "distributed.deadline_seconds=20"),
                   "--backend", "paced:times=4000"]
        said = self.end(self.start_all(RANKS, ["bash", "-c", FAULTS_OF_START, "-", *program]), 0)
        expected = sorted(":".join(fault.split(":")[i] for i in (0, 4)) for of_start in faults for fault in of_start)
        self.assertEqual(sorted((self.folder / "happened").read_text().splitlines()), expected, self.all_output)
        self.assertGreaterEqual(len(self.starts(said)), starts, said)
        self.compare("run", "whole")

    def check_all(self, title, cases):
        """A case has a name, the faults of each start, and the minimum number of restarts."""
        for name, faults, starts in chosen(cases):
            with self.case(title, name):
                self.check(*faults, starts=starts)

    def test_in_the_save_that_makes_room(self):
        """A rank dies while the others save. It may be rank 0, which writes the checkpoint."""
        self.check_all("making room", [(f"rank {first}, rank {rank} at '{point}'", [[death(first, FIRST), death(rank, point, times=times)]], 1)
                                       for points, times in ((OF_SAVE, 2), (OF_SIGNALLED_END, 1)) for point in points for rank in range(RANKS)
                                       for first in [(rank + 1) % RANKS]])

    def test_in_the_next_start(self):
        """All ranks must start once more."""
        self.check_all("next start", [(f"rank {rank} at '{point}'", [[death((rank + 2) % RANKS, FIRST)], [death(rank, point)]], 2)
                                      for point in OF_START for rank in range(RANKS)])

    def test_in_the_training_behind(self):
        self.check_all("next training", [(f"rank {rank} at '{point}'", [[death((rank + 2) % RANKS, FIRST)], [death(rank, point)]], 2 if point in OF_TRAINING else 1)
                                         for point in OF_TRAINING + OF_END for rank in range(RANKS)])

    def test_three_in_sequence(self):
        """Each rank comes back before the next one dies."""
        self.check_all("in sequence", [(f"ranks {a}, {b} and {c}", [[death(a, FIRST)], [death(b, "bucket 0 of step 40")], [death(c, "bucket 0 of step 70")]], 3)
                                       for a, b, c in ((0, 0, 0), (0, 1, 2), (3, 0, 1), (2, 2, 0), (1, 3, 3))])


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
