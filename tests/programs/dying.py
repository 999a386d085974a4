"""Ranks die at named points of their work, with Open MPI 5. With on_loss: exact the others end as if no rank
had died.

PLEXAURA_FAULT_SEEDS=20 dying.py BUILD_FOLDER    all points and ranks, instead of some; prints a line for each
"""

import random
import shutil
import sys

import support
from support import BUILD
from surviving import OPEN_MPI_5, ApartTest, SurvivalTest

from events import Kind  # noqa: E402
from verdict import judge  # noqa: E402

RANKS = 4
EPOCHS = 3  # of 15 steps each, followed by a checkpoint
LAST = EPOCHS * 15
ALL = support.FAULT_SEEDS >= 20

# Points of ranks that keep their own weights and exchange them after steps 19, 23, 27 and 30, in the second
# epoch.
TOLD = "which ranks have the mean of "  # followed by the name of the weights
APART = ["step 18", "the loss of step 18", "after the loss of step 18", "the loss of step 19", "the loss of step 30", "after the loss of step 30",
         *(f"{when}{what}the weights after step {step}" for step in (19, 30) for what in ("", TOLD) for when in ("", "after ")),
         "validation", "the state of the strategy", "saving a checkpoint", f"the weights after step {LAST}", f"saved {LAST}", "MPIX_Comm_agree"]

# Points of a rank in a step, at the end of an epoch, and at the end of the run.
OF_STEP = ["step 18", "samples", "bucket 0 of step 18", "bucket 1 of step 18", "after bucket 1 of step 18", "the update of step 18", "after the update of step 18"]
OF_EPOCH = ["validation", "after validation", "the comparison of the weights of all ranks", "the state of the strategy", "saving a checkpoint",
            "after saving a checkpoint", "saved 15", f"the update of step {LAST}", f"after the update of step {LAST}", f"saved {LAST}",
            "MPIX_Comm_agree", "after MPIX_Comm_agree", "the end of its work", "after the end of its work"]
FIRST = "bucket 0 of step 18"
RECOVERY = 140  # number of points from the first call of the recovery on; the last ones are in later steps
SETTINGS = {"shared memory": (), "messages": ("distributed.shared_memory=false",), "overlap": ("distributed.overlap=on",)}
SHORT = {"deadline of 2 s": (support.short_deadline(),)}


def death(rank, point, more=0, times=1, fault="kill"):
    """Returns a fault: the rank dies when it has reached the point `times` times and then `more` further
    points."""
    return f"{rank}:{times}:{more}:{fault}:{point}"


def chosen(cases):
    """Returns all cases, or two that depend on the contents of this file."""
    return cases if ALL else random.Random(str(cases)).sample(cases, 2)


class DyingTest(SurvivalTest):
    def setUp(self):
        super().setUp()
        self.arguments = self.iris(f"training.epochs={EPOCHS}", f"output.keep={EPOCHS}", support.short_deadline(20))
        self.run_ranks(RANKS, "mlp", *self.arguments, *self.settings("output.dir=whole"))

    def check(self, deaths, settings, spares=0):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.environment["PLEXAURA_FAULTS"] = ";".join(deaths)
        command = [BUILD / "tests/programs/faulty_mlp", *self.arguments, *self.settings("output.dir=run", *(SETTINGS | SHORT)[settings])]
        self.assertEqual(self.launch("-n", RANKS, "--survive", "--spares", spares, *command), [], self.all_output)
        self.assertEqual({rank.rank for rank in self.ranks() if not rank.last(Kind.END)}, {int(each.split(":")[0]) for each in deaths}, "those that have died")
        self.compare("run", "whole")
        self.assertEqual(self.checkpoints("run"), self.checkpoints("whole"))

    def check_all(self, title, cases):
        """A case has a name, deaths, a key of SETTINGS or SHORT, and perhaps a number of spares."""
        for name, deaths, settings, *spares in cases:
            with self.case(title, f"{name}, {settings}"):
                self.check(deaths, settings, *spares)


class Dying(DyingTest):
    def test_at_a_named_point(self):
        points = [(point, settings) for point in OF_STEP for settings in SETTINGS] + [(point, "shared memory") for point in OF_EPOCH]
        cases = [(f"rank {rank} at '{point}'", [death(rank, point)], settings) for point, settings in points for rank in range(RANKS)]
        self.check_all("point", chosen(cases))

    def test_within_an_exchange(self):
        """Ranks die between any two messages of an exchange."""
        cases = [(f"rank {rank}, {more} points behind '{FIRST}'", [death(rank, FIRST, more)], "messages") for rank in range(RANKS) for more in range(1, 25, 2)]
        self.check_all("exchange", chosen(cases))

    def test_while_the_others_recover(self):
        source = random.Random(1)
        cases = []
        for more in range(RECOVERY):
            first, second = source.sample(range(RANKS), 2)
            name = f"rank {first}, and rank {second} {more} points behind the shrinking"
            cases.append((name, [death(first, FIRST), death(second, "MPIX_Comm_shrink", more)], source.choice(list(SETTINGS))))
        self.check_all("recovery", chosen(cases))

    def test_while_the_others_recover_again(self):
        source = random.Random(3)
        cases = []
        for more in range(0, RECOVERY, 2):
            first, second, third = source.sample(range(RANKS), 3)
            earlier = source.randrange(40)
            name = f"rank {first}, rank {second} {earlier} points behind the shrinking, rank {third} {more} behind the next"
            deaths = [death(first, FIRST), death(second, "MPIX_Comm_shrink", earlier), death(third, "MPIX_Comm_shrink", more, times=2)]
            cases.append((name, deaths, source.choice(list(SETTINGS))))
        self.check_all("again", chosen(cases))

    def test_stopped_while_the_others_recover(self):
        """Another rank kills the stopped rank after the deadline, also while the others wait for it within a
        call of the library."""
        cases = [(f"rank 3, and rank {more % 3} is stopped {more} points behind the shrinking",
                  [death(3, FIRST), death(more % 3, "MPIX_Comm_shrink", more, fault="stop")], "deadline of 2 s") for more in (*range(8), *range(8, RECOVERY, 8))]
        self.check_all("stopped", chosen(cases))

    def test_two_at_once(self):
        points = [*OF_STEP, "saving a checkpoint", "validation", "MPIX_Comm_shrink", "after MPIX_Comm_shrink"]
        cases = [(f"ranks {a} and {b} at '{point}'", [death(a, point), death(b, point)] + ([death(3, FIRST)] if "shrink" in point else []), "shared memory")
                 for point in points for a, b in ((0, 1), (0, 2), (1, 2))]
        self.check_all("at once", chosen(cases))

    def test_in_a_revoking(self):
        """The second rank dies while the others call the library together. They revoke the communicator then,
        and the third rank dies."""
        cases = [(f"rank {a}, rank {b} in the duplication, rank {c} as it revokes that",
                  [death(a, FIRST), death(b, "MPIX_Comm_shrink", 2), death(c, "MPIX_Comm_revoke")], "shared memory")
                 for a in range(RANKS) for b in range(RANKS) for c in range(RANKS) if len({a, b, c}) == 3]
        self.check_all("revoke", chosen(cases))

    def test_three_in_sequence(self):
        source = random.Random(2)
        cases = []
        for _ in range(20):
            ranks = source.sample(range(RANKS), 3)
            steps = sorted(source.sample(range(16, LAST), 3))
            points = [source.choice((f"bucket 0 of step {step}", f"the update of step {step}", f"after the update of step {step}", f"step {step}")) for step in steps]
            name = ", ".join(f"{rank} at '{point}'" for rank, point in zip(ranks, points))
            cases.append((name, [death(*each) for each in zip(ranks, points)], source.choice(list(SETTINGS))))
        self.check_all("sequence", chosen(cases))


class DyingApart(ApartTest):
    """Tests strategies in which each rank keeps its own weights."""

    EPOCHS = EPOCHS
    # The losses of each step are summed. The sum is a point at which ranks die.
    SETTINGS = ("distributed.report_seconds=0",)

    def train(self, strategy, folder):
        return [*super().train(strategy, folder), *self.settings(*self.SETTINGS)]

    def end_with(self, strategy, deaths, folder, *words):
        shutil.rmtree(self.folder / folder, ignore_errors=True)
        self.environment["PLEXAURA_FAULTS"] = ";".join(deaths)
        said = self.launch("-n", RANKS, "--survive", BUILD / "tests/programs/faulty_mlp", *self.train(strategy, folder), *words)
        self.assertEqual(said, [], self.all_output)

    def check_all(self, title, cases):
        """A case has a name, deaths, and a strategy."""
        for name, deaths, strategy in cases:
            with self.case(title, f"{name}, {strategy}"):
                self.end_with(strategy, deaths, "run")
                self.assertEqual({rank.rank for rank in self.ranks() if not rank.last(Kind.END)}, {int(each.split(":")[0]) for each in deaths}, "those that have died")
                self.assertEqual(self.checkpoint("run").name, f"checkpoint-{LAST:06}")
                self.check_alike("run")

    def test_at_a_named_point(self):
        cases = [(f"rank {rank} at '{point}'", [death(rank, point)], strategy) for point in APART for rank in range(RANKS) for strategy in self.STRATEGIES]
        self.check_all("apart", chosen(cases))

    def test_while_the_others_recover(self):
        source = random.Random(4)
        cases = []
        for more in range(0, RECOVERY, 2):
            first, second = source.sample(range(RANKS), 2)
            point = source.choice(["the weights after step 19", f"{TOLD}the weights after step 19", "the loss of step 19", "the weights after step 30"])
            deaths = [death(first, point), death(second, "MPIX_Comm_shrink", more)]
            cases.append((f"rank {first} at '{point}', and rank {second} {more} points behind the shrinking", deaths, source.choice(list(self.STRATEGIES))))
        self.check_all("recovery", chosen(cases))

    def test_a_checkpoint_behind_a_loss(self):
        """The remaining ranks resume from the checkpoint and end with the same bits. The checkpoint is within
        an epoch and between two exchanges."""
        for strategy in self.STRATEGIES:
            deaths = [death(1, "the weights after step 19")]
            self.end_with(strategy, deaths, "whole")
            self.end_with(strategy, deaths, "run", "--steps", "25")
            self.run_ranks(RANKS - 1, "mlp", *self.train(strategy, "run"), "--resume")
            self.compare("run", "whole")


class DyingBetweenReports(DyingApart):
    """Ranks that sum their losses at the end of an epoch may be several steps apart."""

    SETTINGS = ()

    def test_at_a_named_point(self):
        points = ("step 18", "the weights after step 19", f"{TOLD}the weights after step 19", "step 29", "the loss of step 30", "after the loss of step 30")
        cases = [(f"losses late: rank {rank} at '{point}'", [death(rank, point)], strategy) for point in points for rank in range(RANKS) for strategy in self.STRATEGIES]
        self.check_all("apart", chosen(cases))

    test_while_the_others_recover = None


class StartingTest(SurvivalTest):
    """If a rank dies before training begins, the run ends, and the others print one sentence that names the
    rank."""

    def check(self, rank, point, *options):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.environment["PLEXAURA_FAULTS"] = death(rank, point)
        program = [BUILD / "tests/programs/faulty_mlp", *self.iris(support.short_deadline(20), "output.dir=run")]
        self.launch("-n", RANKS, "--survive", *options, *program, status=1)
        said = [line for line in self.all_output.splitlines() if "has died" in line]
        self.assertEqual(len(said), 1, self.all_output)
        self.assertRegex(said[0], rf"^rank {rank} (on \S+ )?has died while rank {0 if rank else 1} waited ")
        self.assertEqual(judge(self.ranks())[:2], ("killed", rank))


class Starting(StartingTest):
    POINTS = ["after MPI_Init, where all ranks come together", "MPI_Comm_dup", "where the ranks are", "reading the configuration", "placing the parameters",
              "compiling", "opening the outputs"]

    def test_at_a_named_point(self):
        for rank, point in chosen([(rank, point) for point in self.POINTS for rank in range(RANKS)]):
            with self.case("start", f"rank {rank} at '{point}'"):
                self.check(rank, point)


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
