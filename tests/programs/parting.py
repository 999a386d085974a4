"""Cuts the network of ranks that may outlive others: exactly one side trains on, the one that mpirun chooses,
and the others end."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import support
from support import SOURCE
from surviving import OPEN_MPI_5, SurvivalTest

from events import Kind  # noqa: E402

FAKE_HOSTS = SOURCE / "tests/support/fake_hosts.sh"
ENDLESS = ("training.epochs=1000000", "distributed.on_loss=drop")
FROM_MPIRUN = "and from mpirun, which decides which ranks continue"
# With these, mpirun would notice after 14 s that a host is cut off, instead of 8 minutes.
IMPATIENT = {"PRTE_MCA_oob_tcp_keepalive_time": "8", "PRTE_MCA_oob_tcp_keepalive_intvl": "2", "PRTE_MCA_oob_tcp_keepalive_probes": "3"}


class HostsTest(SurvivalTest):
    def start_on_hosts(self, hosts, ranks, *settings, deadline=60, list_of_hosts="$FAKE_HOSTS", options="", serving=0):
        program = self.command("mlp", *self.iris("distributed.deadline_seconds=3", "output.dir=run", *settings))
        launcher = ["bash", "-c", f'exec {SOURCE}/tools/run -n {ranks} --survive --deadline {deadline} --host "{list_of_hosts}" {options} "$@"', "-"]
        run = self.start(*launcher, *program, launcher=[FAKE_HOSTS, "--hosts", hosts, "-n", ranks, "--no-mpirun", "--"])
        self.addCleanup(self.end_all_of, run)
        self.wait_for(lambda: run.poll() == 77 or len(self.ranks()) == ranks and all(rank.step >= 20 for rank in self.ranks()[serving:]))
        if run.poll() == 77:
            self.skipTest("no network namespaces here")
        return run

    def end_all_of(self, run):
        """Ends all processes of a test that has failed."""
        with contextlib.suppress(ProcessLookupError):
            for _ in range(2):
                os.killpg(run.pid, signal.SIGTERM)
                time.sleep(0.5)

    def end_by_signal(self, run, number):
        os.kill(self.ranks()[number].process, signal.SIGTERM)
        return self.end(run, 143)


class Parting(HostsTest):
    def set_link(self, number, *words):
        """Sets the link of a rank's host."""
        subprocess.run(["ip", "link", "set", self.ranks()[number].host.replace("-", "v"), *words], check=True)

    def check_ended(self, ended, why):
        """Checks that these ranks have ended by themselves with one sentence, and have made no further step.
        """
        ranks = [self.ranks()[number] for number in ended]
        words = "ranks {} and {} were".format(*ended) if len(ended) == 2 else f"rank {ended[0]} was"
        said = [event.text for rank in ranks for event in rank.events if event.kind == Kind.ERROR]
        self.assertEqual(said, [f"{words} cut off from the others, {why}"])
        self.assertEqual([(rank.left, rank.last(Kind.END).number) for rank in ranks], [(0, 1)] * len(ranks))

    def check_parted(self, ended, why=FROM_MPIRUN):
        begin, others = time.monotonic(), [rank.rank for rank in self.ranks() if rank.rank not in ended]
        self.wait_for(lambda: all(self.ranks()[number].left == len(others) for number in others))
        seconds = time.monotonic() - begin
        self.wait_for(lambda: not any(self.ranks()[number].process_state() for number in ended))
        print(f"parted: {others} trained on after {seconds:.1f} s, {ended} had ended after {time.monotonic() - begin:.1f} s", flush=True)
        self.check_ended(ended, why)

    def check_training(self, numbers):
        steps = {number: self.ranks()[number].step for number in numbers}
        self.wait_for(lambda: all(self.ranks()[number].step > steps[number] + 10 for number in numbers))

    def test_the_side_of_mpirun_trains_on(self):
        """That side ends with the bits of an undisturbed run. mpirun does not notice that the others end."""
        epochs = "training.epochs=200"
        self.run_ranks(4, "mlp", *self.iris(epochs, "output.dir=whole"))
        run = self.start_on_hosts(2, 4, epochs)
        self.set_link(2, "down")
        self.check_parted([2, 3])
        said = self.end(run, 0)
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], "^run: mpirun waits for ranks that are cut off: ranks 0 and 1 ended with exit status 0 after step 3000; "
                                  "ranks 2 and 3 were cut off, and the others continued; the job is killed$")
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["ranks 2 and 3 have died; ranks 0 and 1 continue"])
        self.compare("run", "whole")

    def test_rank_0_is_cut_off_until_the_link_is_mended(self):
        self.environment |= IMPATIENT
        run = self.start_on_hosts(3, 3, *ENDLESS)
        begin = time.monotonic()
        self.set_link(0, "down")
        self.check_parted([0])
        self.check_training([1, 2])
        self.wait_for(lambda: time.monotonic() > begin + 18)
        self.check_training([1, 2])
        self.set_link(0, "up")
        time.sleep(3)
        self.check_training([1, 2])
        self.assertEqual(self.end_by_signal(run, 1), [])
        self.assertEqual(len(re.findall("cut off", self.all_output)), 1, self.all_output)

    def test_both_sides_reach_mpirun(self):
        """Later another rank of the side that continues dies."""
        run = self.start_on_hosts(2, 4, *ENDLESS)
        for number in (0, 2):
            self.set_link(number, "type", "bridge_slave", "isolated", "on")
        self.wait_for(lambda: any(rank.left for rank in self.ranks()))
        left = next(rank.rank for rank in self.ranks() if rank.left)
        self.check_parted([2, 3] if left < 2 else [0, 1], "which continued without them")
        self.kill(left ^ 1)
        self.wait_for(lambda: self.ranks()[left].left == 1)
        self.check_training([left])
        self.assertEqual(self.end_by_signal(run, left), [])

    def test_nobody_reaches_mpirun(self):
        run = self.start_on_hosts(2, 4, *ENDLESS, deadline=10)
        for number in (0, 2):
            self.set_link(number, "down")
        self.assertEqual(len(self.end(run, 1)), 1)
        for ended in ([0, 1], [2, 3]):
            self.check_ended(ended, FROM_MPIRUN)


class Unseen(HostsTest):
    """Ranks on hosts with separate folders for temporary files, like those of different machines. They share
    only the folder of output."""

    def setUp(self):
        super().setUp()
        agent = self.write("agent", f'#!/bin/sh\nexec unshare --mount sh -c \'mount -t tmpfs none "$TMPDIR" && exec {FAKE_HOSTS} "$@"\' - "$@"\n')
        agent.chmod(0o755)
        self.environment |= {"OMPI_MCA_plm_rsh_agent": str(agent)}

    def start_with_one_seen(self, *settings):
        run = self.start_on_hosts(1, 4, *settings, deadline=4, list_of_hosts="$(hostname):1,$FAKE_HOSTS", options="--restarts 1")
        self.kill(0)
        return run

    def test_the_one_that_is_seen_has_died(self):
        self.assertEqual(self.end(self.start_with_one_seen("training.epochs=60"), 0), [])

    def test_the_others_show_no_sign_of_life_here(self):
        run = self.start_with_one_seen(*ENDLESS)
        time.sleep(6)
        self.assertIsNone(run.poll(), "killed while the others worked")
        self.assertEqual(self.end_by_signal(run, 1), [])

    def test_a_signal_for_the_launcher_reaches_those_that_are_not_seen(self):
        """The server is the only rank that the launcher sees. It leaves the signal to the others."""
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            run = self.start_on_hosts(1, 3, *ENDLESS, "distributed.strategy=async-server", list_of_hosts="$(hostname):1,$FAKE_HOSTS", serving=1)
            launcher, = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
            os.kill(int(launcher), number)
            self.assertEqual(self.end(run, status), [f"run: {number.name}: the ranks finish their step and save; a second {number.name} ends them at once"])
            self.assertTrue((self.checkpoint("run") / "weights.safetensors").exists())

    def test_all_are_killed_that_are_not_seen(self):
        run = self.start_on_hosts(2, 2, *ENDLESS)
        for number in range(2):
            self.kill(number)
        self.end(run, 1)


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
