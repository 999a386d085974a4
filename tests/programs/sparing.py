"""Spares replace ranks that die, with Open MPI 5: the run ends like an undisturbed one.

PLEXAURA_FAULT_SEEDS=20 sparing.py BUILD_FOLDER    all points and ranks, instead of some; prints a line for
each
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import dying
import support
from dying import FIRST, LAST, OF_EPOCH, OF_STEP, RANKS, RECOVERY, SETTINGS, chosen, death
from patience import seconds
from support import SOURCE
from surviving import OPEN_MPI_5, SurvivalTest, again_if_ended

from verdict import list_ranks  # noqa: E402

SPARE = RANKS  # the number of the first spare
WAITS = "the death of another rank"
ENDS = "the end of training"


def continuing(ranks):
    return f"{list_ranks(ranks)} {'continue' if len(ranks) > 1 else 'continues'}"


class SpareTest(SurvivalTest):
    def start_spares(self, spares, *settings, ranks=RANKS, program="mlp"):
        return self.start("-n", ranks, "--survive", "--spares", spares, *self.command(program, *settings))

    def wait_for_training(self, training, step):
        def is_reached():
            ranks = self.by_number()  # once, since a rank may appear or disappear between two readings
            return all(number in ranks and ranks[number].step >= step for number in training)
        self.wait_for(is_reached)

    def by_number(self):
        return {rank.rank: rank for rank in self.ranks()}

    def why(self):
        return subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True).stdout

    def let_wait_for(self, number):
        """Delays a rank, so that others wait for it. Only a rank that waits checks who has died; without a
        wait, a dead spare would be noticed only at the end."""
        process = self.by_number()[number].process
        os.kill(process, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(process, signal.SIGCONT)


class Sparing(SpareTest):
    EPOCHS = 250
    EPOCHS_OF_TWO = 2000  # two ranks, which share their cores with no others, take as long for this many

    @again_if_ended
    def check(self, spares, deaths, *settings, ranks=RANKS, epochs=EPOCHS):
        """`deaths` are pairs (rank, step), in this order. The folder "whole" has an undisturbed run of as
        many ranks."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.start_spares(spares, *self.iris("output.dir=run", f"training.epochs={epochs}", *settings), ranks=ranks)
        living, expected = list(range(ranks + spares)), []
        for victim, step in deaths:
            training = living[:ranks]
            self.wait_for_training(training, step)
            if expected:
                self.wait_for(lambda: self.by_number()[training[0]].survived)
            self.kill_before_its_end(victim)
            if victim not in training:
                self.let_wait_for(training[-1])
            living.remove(victim)
            new = [number for number in living[:ranks] if number not in training]
            expected.append(f"rank {victim} has died; " + (f"rank {new[0]} takes over; " if new else "") + continuing(living[:ranks]))
        self.end_survivors(run, [victim for victim, _ in deaths])
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], expected, self.all_output)
        self.compare("run", "whole")
        return living

    def whole(self, ranks=RANKS, epochs=EPOCHS):
        self.run_ranks(ranks, "mlp", *self.iris("output.dir=whole", f"training.epochs={epochs}"))

    def test_at_random_moments(self):
        self.whole()
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            victim, step, loss = source.randrange(RANKS), source.randrange(1, 1500), source.choice(("exact", "drop"))
            settings = (f"distributed.overlap={'on' if seed % 2 else 'off'}", f"distributed.on_loss={loss}")
            with self.case("spare", f"rank {victim} behind step {step}, {', '.join(settings)}"):
                self.check(1, [(victim, step)], *settings)
        self.assertRegex(self.why(), r"finished: ranks .* and 4 ended with exit status 0 after step 3750; rank \d died before, and the others continued")

    def test_one_after_the_other_and_more_than_there_are_spares(self):
        self.whole()
        self.check(3, [(0, 100), (2, 400), (5, 700), (1, 1000)])

    def test_a_spare_dies(self):
        """The second of two spares may also die before the first one is needed."""
        self.whole(2, self.EPOCHS_OF_TWO)
        self.check(2, [(3, 100), (0, 400), (1, 700)], ranks=2, epochs=self.EPOCHS_OF_TWO)

    def test_nobody_needs_them(self):
        run = self.start_spares(2, *self.iris("output.dir=run", "training.epochs=1000000"))
        self.wait_for_training(range(RANKS), 100)
        self.assertRegex(self.why(), r"^running: ranks 0, 1, 2 and 3 at step \d+; ranks 4 and 5 are spares\n$")
        os.kill(self.by_number()[4].process, signal.SIGTERM)  # a spare leaves a signal to the others
        before = self.by_number()[0].step
        self.wait_for_training(range(RANKS), before + 100)
        os.kill(self.by_number()[0].process, signal.SIGTERM)
        self.end(run, 143)
        self.assertRegex(self.why(), r"^signal: rank [04] on \S+ was asked to end by SIGTERM, and all ranks ended after step \d+; ranks 4 and 5 were spares\n$")
        self.assertEqual({rank.step for rank in self.ranks()[:RANKS]}, {int(self.checkpoint("run").name.split("-")[1])})

    def test_they_end_with_the_others(self):
        self.assertEqual(self.launch("-n", 2, "--survive", "--spares", 1, *self.command("mlp", *self.iris("output.dir=run", "training.epochs=2"))), [])
        self.assertIn("samples of 3 classes", self.all_output)
        self.assertRegex(self.all_output, r"(?m)^\S+ parameters, .*, 2 ranks$")
        self.assertRegex(self.why(), "^finished: ranks 0, 1 and 2 ended with exit status 0 after step 30; rank 2 was a spare\n$")
        self.assertEqual([rank.last(dying.Kind.END).number for rank in self.ranks()], [0, 0, 0])

    def test_they_end_with_an_error_of_the_others(self):
        """The error comes before a loss, or after one: a bit of a weight flips."""
        for deaths in ([], [death(1, FIRST)]):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.environment["PLEXAURA_FAULTS"] = ";".join([*deaths, death(0, "step 30", fault="flip fc1.weight -1 30")])
            self.launch("-n", 2, "--survive", "--spares", 2, support.BUILD / "tests/programs/faulty_mlp", *self.iris("output.dir=run"), status=1)
            self.assertEqual(self.all_output.count("hold different bits in fc1.weight"), 1, self.all_output)
            self.assertEqual(len(self.who_went_on()), len(deaths))
            ends = [rank.last(dying.Kind.END) for rank in self.ranks()]
            self.assertTrue(all(end.number > 0 for end in ends if end), ends)

    def test_a_batch_is_that_of_the_ranks_that_train(self):
        arguments = [word for word in self.iris("training.epochs=2") if "batch_size" not in str(word)]
        yaml = self.write("iris.yaml", re.sub(r"batch_size: \d+", "batch_per_rank: 4", (SOURCE / "models/iris.yaml").read_text()))
        arguments[0] = yaml
        self.run_ranks(2, "mlp", *arguments, *self.settings("output.dir=whole"))
        self.launch("-n", 2, "--survive", "--spares", 2, *self.command("mlp", *arguments, *self.settings("output.dir=run")))
        self.compare("run", "whole")

    def test_dropout_and_parts_of_unequal_size(self):
        arguments = self.cnn("training.epochs=150", "training.batch_size=8", "training.micro_batches=2")
        self.run_ranks(3, "convnet", *arguments, *self.settings("output.dir=whole"))
        self.check_one_of_three(arguments)

    @again_if_ended
    def check_one_of_three(self, arguments):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.start_spares(1, *arguments, *self.settings("output.dir=run"), ranks=3, program="convnet")
        self.wait_for_training(range(3), 20)
        self.kill_before_its_end(1)
        self.end_survivors(run, [1])
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 1 has died; rank 3 takes over; ranks 0, 2 and 3 continue"])
        self.compare("run", "whole")

    def test_a_resumed_run_with_kernels_that_are_measured(self):
        """The spare knows neither the step at which the run is resumed nor the times of kernels."""
        arguments = self.iris("output.dir=run", "training.tuning=measure", f"training.epochs={self.EPOCHS_OF_TWO}")
        self.run_ranks(2, "mlp", *arguments, "--steps", 40)
        run = self.start_spares(1, *arguments, "--resume", "--log", "run.log", ranks=2)
        self.wait_for_training([0, 1], 300)
        self.kill(0)
        self.wait_for_training([1, 2], 500)
        self.kill(1)
        self.assertEqual(self.end(run, 0), [])
        self.assertRegex(self.all_output, r"steps +30,000, 29,960 of them now")
        self.assertEqual(self.log("run.log")[-1]["epoch"], self.EPOCHS_OF_TWO - 1)

    def test_a_spare_waits_for_those_that_compute(self):
        """The spare learns of a death at once. The only remaining rank is stopped, as if it computed for
        longer than the deadline."""
        deadline = seconds(2)
        run = self.start_spares(1, *self.iris("output.dir=run", "training.epochs=1000000", f"distributed.deadline_seconds={deadline}"), ranks=2)
        self.wait_for_training([0, 1], 100)
        process = self.by_number()[0].process
        os.kill(process, signal.SIGSTOP)
        self.kill(1)
        time.sleep(2.5 * deadline)
        os.kill(process, signal.SIGCONT)
        self.wait_for(lambda: self.by_number()[2].survived)
        os.kill(process, signal.SIGTERM)
        self.end(run, 143)
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 1 has died; rank 2 takes over; ranks 0 and 2 continue"])

    def test_all_that_trained_die(self):
        """The spare that reports the end is delayed, so that the other one can end before."""
        self.environment["PLEXAURA_FAULTS"] = death(2, "its own error", fault="late")
        run = self.start("-n", 2, "--survive", "--spares", 2, support.BUILD / "tests/programs/faulty_mlp", *self.iris("output.dir=run", "training.epochs=1000000"))
        self.wait_for_training([0, 1], 100)
        processes = [self.by_number()[number].process for number in (0, 1)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)  # stopped first, so that neither outlives the other
        for process in processes:
            os.kill(process, signal.SIGKILL)
        self.end(run, 1)
        said = re.findall(r"(?m)^all ranks that trained have died or ended, .*; continue from the last checkpoint with --resume$", self.all_output)
        self.assertEqual(len(said), 1, self.all_output)


class Mistakes(SpareTest):
    def check(self, says, *words, status=2):
        said = self.launch(*words, status=status)
        lines = said or [line for line in self.all_output.splitlines() if "spare" in line.lower()]
        self.assertEqual(len(lines), 1, self.all_output)
        self.assertRegex(lines[0], says)

    def test_of_the_launcher(self):
        for says, *words in (("^run: --spares needs --survive, ", "-n", 2, "--spares", 1), ("^run: --spares needs -n 2 or more, ", "-n", 1, "--survive", "--spares", 1),
                             ("^run: .* and --restarts and --spares not below 0$", "-n", 2, "--survive", "--spares", -1)):
            self.check(says, *words, *self.command("mlp", *self.iris()))

    def test_an_mpirun_that_cannot(self):
        self.environment["PATH"] = os.environ["PATH"]
        self.check("^run: --survive needs an mpirun that knows --with-ft, ", "-n", 2, "--survive", "--spares", 1, *self.command("mlp", *self.iris()))

    def test_of_the_run(self):
        for setting, reason in (("strategy=scatter-gather", "distributed.strategy is scatter-gather; .*"),
                                ("on_loss=end", "distributed.on_loss is end; set it to exact or drop"), ("algorithm=ring", "distributed.algorithm is ring; .*")):
            program = self.command("mlp", *self.iris(f"distributed.{setting}"))
            self.check(f"^no spare can take over: when a rank dies, all others end, .*, because {reason}, or leave --spares out$",
                       "-n", 2, "--survive", "--spares", 1, *program)

    def test_of_ranks_that_keep_their_own_weights(self):
        self.check("^a spare takes over the weights that all ranks have in common, and with distributed.strategy elastic each has its own; ",
                   "-n", 2, "--survive", "--spares", 1, *self.command("mlp", *self.iris("distributed.strategy=elastic")))

    def test_a_choice_that_spares_do_not_make(self):
        program = self.command("mlp", *self.iris("distributed.on_loss=drop", "distributed.compression=auto"))
        self.check("compression is 'auto', which the ranks that train choose without the spares; name the compression, or leave --spares out$",
                   "-n", 2, "--survive", "--spares", 1, *program)

    def test_nothing_is_trained(self):
        self.check("^a spare takes over from a rank that trains, and --dry-run, ", "-n", 2, "--survive", "--spares", 1, *self.command("mlp", *self.iris(), "--dry-run"))

    def test_of_the_variable(self):
        for value, says in (("1", r"^a spare takes over from a rank that dies, and this job of Open MPI v5\S+ ends then; "), ("2", "^the variable PLEXAURA_SPARES is '2', of 3 ranks; "),
                            ("x", "^the variable PLEXAURA_SPARES is 'x', of 3 ranks; ")):
            program = ["env", f"PLEXAURA_SPARES={value}", *self.command("mlp", *self.iris())]
            self.check(says, "-n", 3, *program)


class Replaced(dying.DyingTest):
    """Ranks die at named points of their work."""

    def check(self, deaths, settings, spares=1):
        super().check(deaths, settings, spares)
        left = RANKS + spares
        for sentence, _ in self.who_went_on():
            dead, *_, living = (re.findall(r"\d+", part) for part in sentence.split("; "))
            left -= len(dead)
            self.assertEqual(len(living), min(RANKS, left), self.all_output)

    def test_at_a_named_point(self):
        points = [(point, settings) for point in OF_STEP for settings in SETTINGS] + [(point, "shared memory") for point in OF_EPOCH]
        cases = [(f"rank {rank} at '{point}'", [death(rank, point)], settings) for point, settings in points for rank in range(RANKS)]
        self.check_all("replaced", chosen(cases))

    def test_a_spare(self):
        """A spare dies where it waits, replaces a rank or ends. For most of these points it must have been
        needed."""
        first = [death(1, FIRST)]
        cases = [(f"spare at '{point}'", [death(SPARE, point)], settings) for point in (WAITS, "MPIX_Comm_agree", "after MPIX_Comm_agree", "the end of its work") for settings in SETTINGS]
        cases += [(f"rank 1, and the spare at '{point}'", [*first, death(SPARE, point)], settings)
                  for point in ("MPIX_Comm_shrink", "after MPIX_Comm_shrink", "who is left", "placing the parameters", "compiling", "step 18", *OF_EPOCH[-4:]) for settings in SETTINGS]
        cases += [(f"rank 1, and the spare {more} points behind the shrinking", [*first, death(SPARE, "MPIX_Comm_shrink", more)], "shared memory") for more in range(1, RECOVERY, 3)]
        self.check_all("spare dies", chosen(cases))

    def test_between_the_messages_of_the_end(self):
        """Some of the spares know that the run has ended, and others do not."""
        cases = [(f"rank 0, {more} points behind '{ENDS}'", [death(0, ENDS, more)], "messages", spares) for more in range(1, 16) for spares in (1, 2)]
        self.check_all("ends", chosen(cases))

    def test_another_while_the_spare_takes_over(self):
        source = random.Random(5)
        cases = []
        for more in range(0, RECOVERY, 2):
            first, second = source.sample(range(RANKS), 2)
            spares = source.choice((1, 2))
            name = f"rank {first}, and rank {second} {more} points behind the shrinking, of {spares} spares"
            cases.append((name, [death(first, FIRST), death(second, "MPIX_Comm_shrink", more)], source.choice(list(SETTINGS)), spares))
        self.check_all("takes over", chosen(cases))

    def test_two_at_once(self):
        points = [*OF_STEP, "saving a checkpoint", "validation"]
        cases = [(f"ranks {a} and {b} at '{point}', of {spares} spares", [death(a, point), death(b, point)], "shared memory", spares)
                 for point in points for a, b in ((0, 1), (0, 3), (1, 2)) for spares in (1, 2)]
        cases += [(f"rank {rank} and the spare", [death(rank, "MPIX_Comm_shrink"), death(SPARE, "MPIX_Comm_shrink"), death((rank + 1) % RANKS, FIRST)], "shared memory", spares)
                  for rank in range(RANKS) for spares in (1, 2)]
        self.check_all("both", chosen(cases))

    def test_three_in_sequence_with_three_spares(self):
        """Some of the dying ranks were spares."""
        source = random.Random(7)
        cases = []
        for _ in range(20):
            living, deaths, said = list(range(RANKS + 3)), [], []
            for step in sorted(source.sample(range(16, LAST), 3)):
                rank = source.choice(living[:RANKS])
                living.remove(rank)
                point = source.choice((f"bucket 0 of step {step}", f"the update of step {step}", f"after the update of step {step}", f"step {step}"))
                deaths.append(death(rank, point))
                said.append(f"{rank} at '{point}'")
            cases.append((", ".join(said), deaths, source.choice(list(SETTINGS)), 3))
        self.check_all("replaced", chosen(cases))

    def test_stopped(self):
        """Another rank kills a stopped rank after the deadline: a training rank, or a spare, which nobody
        misses before it is needed."""
        short = "deadline of 2 s"
        cases = [(f"rank {rank} is stopped at '{FIRST}'", [death(rank, FIRST, fault="stop")], short) for rank in range(RANKS)]
        cases += [("the spare is stopped", [death(SPARE, WAITS, fault="stop")], short)]
        cases += [(f"rank 2, and the spare is stopped {more} points behind the shrinking", [death(2, FIRST), death(SPARE, "MPIX_Comm_shrink", more, fault="stop")], short)
                  # Leaves out the points at which the ranks exchange their places.
                  for more in (0, 4, *range(24, RECOVERY, 12))]
        self.check_all("stopped spare", chosen(cases))


class Starting(dying.StartingTest):
    """Not at the point where training begins, which the others may have passed before the spare."""

    POINTS = [*dying.Starting.POINTS[:4], "the roles of the ranks", "opening the backend"]

    def test_at_a_named_point(self):
        for rank, point in chosen([(rank, point) for point in self.POINTS for rank in (0, 1, SPARE)]):
            with self.case("start", f"rank {rank} of a run with a spare at '{point}'"):
                self.check(rank, point, "--spares", 1)


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
