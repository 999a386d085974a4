"""Signals ask tools/run to end, at any moment."""

import os
import random
import shutil
import signal
import time

import support
from launching import ENDLESS, LaunchTest

from events import Kind  # noqa: E402

AT_ONCE = "the ranks have nothing to save yet; the job is ended at once"
REPEATED = (signal.SIGHUP, signal.SIGXCPU)  # the system itself may send these twice


def later(number):
    name = signal.Signals(number).name
    return f"run: {name}: the ranks finish their step and save" + ("" if number in REPEATED else f"; a second {name} ends them at once")


class Signals(LaunchTest):
    """Signals while ranks train."""

    def check(self, numbers, status):
        """Sends these signals, of which the first one determines the status."""
        run = self.start("-n", 2, "--restarts", 2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        for number in numbers:
            run.send_signal(number)
            time.sleep(0.02)  # otherwise the system would merge two signals into one
        said = self.end(run, status)
        self.assertEqual(said, [later(numbers[0])])
        steps = int(self.checkpoint("run").name.split("-")[1])
        self.assertEqual({rank.step for rank in self.ranks()}, {steps})
        self.assertIn("resumed", self.run_one("mlp", *self.iris(*ENDLESS), "--resume", "--steps", steps + 3).out)

    def test_a_run_with_a_server(self):
        run = self.start("-n", 3, *self.command("mlp", *self.iris(*ENDLESS, "distributed.strategy=async-server")))
        self.wait_for(lambda: len(self.ranks()) == 3 and all(rank.step >= 100 for rank in self.ranks()[1:]))
        run.send_signal(signal.SIGTERM)
        self.assertEqual(len(self.end(run, 143)), 1)
        self.assertTrue((self.checkpoint("run") / "weights.safetensors").exists())

    def test_interrupted(self):
        self.check([signal.SIGINT], 130)

    def test_terminated(self):
        self.check([signal.SIGTERM], 143)

    def test_the_terminal_is_closed(self):
        """The shell sends SIGHUP to its jobs, and then the system does."""
        self.check([signal.SIGHUP, signal.SIGHUP], 143)

    def test_other_signals(self):
        for number, status in ((signal.SIGUSR1, 143), (signal.SIGUSR2, 130), (signal.SIGQUIT, 143), (signal.SIGALRM, 143), (signal.SIGXCPU, 143)):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.check([number], status)

    def test_a_warning_and_then_an_order(self):
        """Slurm sends signals like this."""
        self.check([signal.SIGUSR1, signal.SIGTERM], 143)

    def test_the_terminal_of_nohup_is_closed(self):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, signal.SIG_DFL)
        run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        run.send_signal(signal.SIGHUP)
        self.wait_for_step(2, max(rank.step for rank in self.ranks()) + 1000)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(run, 143), [later(signal.SIGTERM)])

    def test_a_second_signal(self):
        """The first signal finds a rank that does not answer."""
        run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        for rank in self.ranks():
            os.kill(rank.process, signal.SIGSTOP)
        run.send_signal(signal.SIGINT)
        self.wait_for_word(run, "SIGINT")
        run.send_signal(signal.SIGINT)
        self.assertEqual(len(self.end(run, 130)), 1)

    def test_ranks_that_were_asked_already(self):
        """A batch system signals all processes of a job, but the ranks must count the signal once. Each step
        takes a third of a second."""
        self.environment["PLEXAURA_PLUGIN_PATH"] = str(support.BUILD / "tools")
        program = self.command("mlp", *self.iris(*ENDLESS, "training.tuning=off"), "--backend", "paced:times=100000")
        run = self.start("-n", 2, *program)
        self.wait_for(lambda: len(self.ranks()) == 2 and all(rank.step >= 2 for rank in self.ranks()))
        for rank in self.ranks():
            os.kill(rank.process, signal.SIGTERM)
        self.wait_for(lambda: all(rank.last(Kind.SIGNAL) for rank in self.ranks()))
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)
        self.assertEqual({rank.step for rank in self.ranks()}, {int(self.checkpoint("run").name.split("-")[1])})

    def test_a_second_one_at_any_moment(self):
        """The second signal comes while the ranks finish their step, save, leave or have left."""
        for seed in range(support.FAULT_SEEDS):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
            self.wait_for_step(2, 50)
            run.send_signal(signal.SIGINT)
            time.sleep(random.Random(seed).uniform(0, 0.25))
            run.send_signal(signal.SIGINT)
            self.end(run, 130)
            self.assertIn("resumed", self.run_one("mlp", *self.iris(*ENDLESS), "--resume", "--steps", 60).out)


class AtStart(LaunchTest):
    """Signals before the ranks handle signals themselves."""

    SIGNALS = ((signal.SIGINT, 130), (signal.SIGTERM, 143))

    def check(self, run, number, status, says=None):
        run.send_signal(number)
        self.assertEqual(self.end(run, status), [says or f"run: {signal.Signals(number).name}: {AT_ONCE}"])

    def check_before_ranks(self, marker, says, *options):
        """Signals a launcher that has made this file and started no rank. Checks what it says."""
        for number, status in self.SIGNALS:
            run = self.start("-n", 2, *options, "true")
            self.wait_for((self.folder / marker).exists)
            run.send_signal(number)
            self.assertEqual(self.end(run, status), [f"run: {signal.Signals(number).name}: {says}"] if says else [])
            if not says:
                self.assertEqual(self.all_output, "")
            (self.folder / marker).unlink()

    def test_while_python_imports(self):
        """Nothing has been started yet, and no traceback of Python is printed."""
        self.write("modules/argparse.py", "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(1000)\n")
        self.environment["PYTHONPATH"] = str(self.folder / "modules")
        self.check_before_ranks("importing", None)

    def test_while_mpirun_is_asked_whether_it_can_outlive_ranks(self):
        self.stub("touch asked; exec sleep 1000")
        self.check_before_ranks("asked", "no rank has begun yet; the job is not started", "--survive")

    def test_while_mpirun_has_started_nobody(self):
        """mpirun may not answer the signal then."""
        self.stub('trap "" INT TERM; touch started; sleep 1000 & wait; sleep 1000')
        for number, status in self.SIGNALS:
            run = self.start("-n", 2, "true")
            self.wait_for((self.folder / "started").exists)
            self.check(run, number, status)
            (self.folder / "started").unlink()

    def test_while_a_rank_waits_for_another_in_mpi_init(self):
        for number, status in self.SIGNALS:
            run = self.start("-n", 1, *self.command("mlp", *self.iris(*ENDLESS)), ":", "-n", 1, "sleep", 1000)
            self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[1].startswith("MPI_Init"))
            self.check(run, number, status)
            shutil.rmtree(self.folder / "run")

    def test_ranks_of_which_nothing_is_known(self):
        """mpirun ends the ranks, and does not report that a signal has."""
        for number, status in self.SIGNALS:
            run = self.start("-n", 2, "bash", "-c", "touch started.$OMPI_COMM_WORLD_RANK; exec sleep 1000")
            self.wait_for(lambda: len(list(self.folder.glob("started.*"))) == 2)
            self.check(run, number, status, later(number))
            for path in self.folder.glob("started.*"):
                path.unlink()

    def test_while_hosts_are_asked_whether_they_can_start_again(self):
        self.stub("exit 137")
        agent = self.write("agent", "#!/bin/sh\ntouch asked; while [ ! -e has_come ]; do sleep 0.1; done; sleep 1\n")
        agent.chmod(0o755)
        self.environment["OMPI_MCA_plm_rsh_agent"] = str(agent)
        run = self.start("-n", 2, "--restarts", 1, "--host", "h0:1,h1:1", "program", "--resume")
        self.wait_for((self.folder / "asked").exists)
        run.send_signal(signal.SIGINT)
        (self.folder / "has_come").touch()
        self.assertEqual(self.end(run, 130), ["run: mpirun returned 137; it is not started again, because SIGINT has come"])

    def test_at_any_moment(self):
        """Signals from the moment at which there is something to clean up."""
        for seed in range(support.FAULT_SEEDS):
            run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
            self.wait_for(lambda: list((self.folder / "tmp").glob("plexaura-run-*")))
            time.sleep(random.Random(seed).uniform(0, 2))
            run.send_signal(signal.SIGINT)
            said = self.end(run, 130)
            self.assertIn(said, ([f"run: SIGINT: {AT_ONCE}"], [later(signal.SIGINT)]))
            shutil.rmtree(self.folder / "run", ignore_errors=True)


if __name__ == "__main__":
    support.main()
