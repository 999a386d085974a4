"""Tests that tools/run starts the ranks, ends a job that hangs, and restarts it after a failure."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import support
from support import SOURCE, ProgramTest

sys.path.insert(0, str(SOURCE / "tools/run_parts"))

import events  # noqa: E402

ENDLESS = ("output.dir=run", "training.epochs=1000000")
NOTES_ITS_JOB = 'echo $PMIX_NAMESPACE ${PLEXAURA_RUN##*/} >> jobs; exec "$@"'
# Kills rank 1 in the first start before it can report anything.
# The pause lets tools/run see the rank. A job whose ranks it never saw is not started again.
DIES_AT_FIRST = 'if [ $OMPI_COMM_WORLD_RANK = 1 ] && [ ! -e died ]; then touch died; sleep 1; kill -9 $$; fi; exec "$@"'


class LaunchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not support.HAS_MPI:
            self.skipTest("built without MPI")
        (self.folder / "tmp").mkdir()
        self.environment = dict(support.mpi_environment(), TMPDIR=str(self.folder / "tmp"), OMPI_MCA_odls_base_sigkill_timeout="1")

    def command(self, program, *arguments):
        return ["bash", "-c", NOTES_ITS_JOB, "-", *super().command(program, *arguments)]

    def start(self, *words, launcher=(SOURCE / "tools/run",)):
        """Starts tools/run with its output in a file, which need not be read meanwhile."""
        with (self.folder / "said").open("w") as said:
            run = subprocess.Popen([*map(str, launcher), *map(str, words)], cwd=self.folder, env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=said, start_new_session=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def end(self, run, status):
        """Waits for the end, and returns the lines of tools/run itself."""
        out = run.communicate(timeout=120)[0]
        err = (self.folder / "said").read_text()
        self.assertEqual(run.returncode, status, out + err)
        self.assertEqual(self.processes(), [])
        self.assertEqual(self.files_left(), [])
        self.all_output = out + err
        return [line for line in err.splitlines() if line.startswith("run: ")]

    def wait_for_word(self, run, word):
        """Waits for a line of tools/run itself."""
        self.wait_for(lambda: run.poll() is not None or word in (self.folder / "said").read_text())
        self.assertIn(word, (self.folder / "said").read_text())

    def check_killed(self, *options):
        """Kills the launcher, alone and with its ranks. Nothing must be left."""
        for also_ranks in (False, True):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            run = self.start("-n", 2, *options, *self.command("mlp", *self.iris(*ENDLESS)))
            self.wait_for_step(2, 10)
            self.assertNotEqual(self.files_left(), [])
            shared = self.shared_files()
            for process in [run.pid, *(rank.process for rank in self.ranks() if also_ranks)]:
                os.kill(process, signal.SIGKILL)
            run.wait()
            self.wait_for(lambda: self.processes() == [])
            self.assertEqual(self.files_left(), [])
            self.assertEqual([name for name in shared if os.path.exists(name)], [])

    def shared_files(self):
        """Returns the files through which ranks share memory now. Their names do not always contain the job.
        """
        maps = "".join(pathlib.Path(f"/proc/{rank.process}/maps").read_text() for rank in self.ranks())
        return set(re.findall(r" (/dev/shm/\S+)$", maps, re.MULTILINE))

    def files_left(self):
        """Returns the files that tools/run or Open MPI have left."""
        names = set((self.folder / "jobs").read_text().split() if (self.folder / "jobs").exists() else [])
        # names of Open MPI 4, and of tools/run
        patterns = {f"*.{int(name):x}.*" if name.isdecimal() else f"{name}*" for name in names}
        return [path for folder, patterns in ((self.folder / "tmp", ("plexaura-run-*", "ompi.*/*")), (pathlib.Path("/dev/shm"), patterns))
                for pattern in patterns for path in folder.glob(pattern)]

    def launch(self, *words, status=0):
        return self.end(self.start(*words), status)

    def processes(self):
        """Returns the processes of this test that are left."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"TMPDIR={self.folder}/tmp".encode() in (entry / "environ").read_bytes() and "Z" != (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]:
                    found.append((entry / "cmdline").read_text())
            except OSError:
                pass
        return found

    def ranks(self):
        return events.read_ranks(self.folder / "run").ranks

    def wait_for_step(self, ranks, step, process=0, serving=0):
        """Waits for a step of ranks that have saved a checkpoint, in another process than `process`. The
        first `serving` ranks make no steps."""
        self.wait_for(lambda: len(self.ranks()) == ranks and all(rank.step >= step for rank in self.ranks()[serving:])
                      and self.ranks()[serving].saved > 0 and self.ranks()[0].process != process)

    def stub(self, script):
        """Replaces mpirun by a script."""
        path = self.write("bin/mpirun", f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        self.environment["PATH"] = f"{path.parent}:{os.environ['PATH']}"

    def compare(self, one, other):
        for name in ("weights.safetensors", "state.safetensors"):
            self.assertEqual((self.checkpoint(one) / name).read_bytes(), (self.checkpoint(other) / name).read_bytes(), name)


class Launch(LaunchTest):
    def test_it_trains_as_mpirun_does(self):
        self.assertEqual(self.launch("-n", 3, *self.command("mlp", *self.iris("output.dir=run", "training.epochs=3"))), [])
        self.run_ranks(3, "mlp", *self.iris("output.dir=whole", "training.epochs=3"))
        self.compare("run", "whole")

    def test_nothing_is_left_when_it_is_killed(self):
        self.check_killed()

    def test_who_reads_its_output_does_not_wait_for_what_is_left(self):
        self.stub('trap "" TERM; exec &> /dev/null; echo $$ > number; mv number process; exec sleep 1000')
        run = self.start("-n", 2, "true")
        self.wait_for((self.folder / "process").exists)
        run.kill()
        try:
            run.communicate(timeout=10)  # its watcher waits longer
        finally:
            os.kill(int((self.folder / "process").read_text()), signal.SIGKILL)
        self.wait_for(lambda: self.processes() == [])

    def test_a_mistake_is_not_repeated(self):
        said = self.launch("-n", 2, "--restarts", 3, "--", *self.command("mlp", *self.iris("training.epoch=3")), status=2)
        self.assertEqual(said, [])
        self.assertEqual(self.all_output.count("did you mean 'epochs'"), 1)

    def test_nor_is_a_start_of_which_nothing_came(self):
        self.stub("exit 1")
        self.assertEqual(self.launch("-n", 2, "--restarts", 3, "true", status=1), [])

    def test_its_own_mistakes(self):
        self.write("hosts", "h0 slots=2\n# a remark\n\nh1 places=3\n")
        self.write("empty", "# nothing\n")
        self.write("option", "h0 slots=2\n-oProxyCommand=touch${IFS}run slots=1\n")
        (self.folder / "bytes").write_bytes(b"h0\xff\n")
        for words, says in ((["-n", 2], "no program was named; "), (["-n", 2, "no/such/program"], "'no/such/program' is not a program that can be started; "), (["-n", 0, "true"], "-n and --deadline must be above 0, "),
                            (["-n", 99999999999, "true"], "a run has at most 10000 ranks, spares included; lower -n"),
                            (["-n", 2, "--host", "a", "--hosts", "hosts", "true"], "--host and --hosts exclude each other; give one of them"),
                            (["-n", 2, "--host", "", "true"], "--host: '' is not a list of hosts; "),
                            (["-n", 2, "--host", "a:b", "true"], "--host: 'a:b' is not a list of hosts; "),
                            (["-n", 2, "--host=-oProxyCommand=true:1", "true"], "--host: '-oProxyCommand=true:1' is not a list of hosts; "),
                            (["-n", 2, "--host", "a\x1b[31m,b", "true"], r"--host: 'a\x1b[31m,b' is not a list of hosts; "),
                            (["-n", 2, "--hosts", "option", "true"], "option:2: '-oProxyCommand=touch${IFS}run slots=1' is not a host; "),
                            (["-n", 2, "--hosts", "bytes", "true"], "--hosts: 'bytes' is not text; "),
                            (["-n", 2, "--hosts", "none", "true"], "--hosts: cannot read 'none': No such file or directory"),
                            (["-n", 2, "--hosts", "hosts", "true"], "hosts:4: 'h1 places=3' is not a host; "),
                            (["-n", 2, "--hosts", "empty", "true"], "--hosts: 'empty' names no host")):
            said = self.launch(*words, status=2)
            self.assertEqual(len(said), 1, self.all_output)
            self.assertTrue(said[0].startswith(f"run: {says}"), said)


class Room(LaunchTest):
    """Tests a lack of space in the folder for temporary files. Each test has its own file system."""

    def check(self, options, fill, says):
        script = f'mount -t tmpfs -o {options} none "$TMPDIR" && cd "$TMPDIR" && {fill} && cd "$OLDPWD" && exec "$@"'
        launcher = ["unshare", "--mount", "bash", "-c", script, "-", SOURCE / "tools/run"]
        run = self.start("-n", 2, *self.command("mlp", *self.iris("training.epochs=1")), launcher=launcher)
        said = self.end(run, 2 if says else 0)
        temporary = f"'{self.folder}/tmp', the folder for temporary files,"
        self.assertEqual(said, [f"run: {temporary} {says}, or name another folder in TMPDIR"] if says else [])
        self.assertEqual(self.all_output.count("\n") == 1, bool(says), self.all_output)

    def test_of_a_folder(self):
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("a file system of its own needs root")
        full = "has less than the 10 MB left that mpirun needs; free space there"
        self.check("size=64m", "true", "")
        self.check("size=1m", "true", full)
        self.environment["OMPI_MCA_orte_tmpdir_base"] = str(self.folder)
        self.check("size=1m", "true", "")
        del self.environment["OMPI_MCA_orte_tmpdir_base"]
        self.check("size=1m", "{ head -c 2m /dev/zero > big 2> /dev/null || true; }", full)
        self.check("size=64m,nr_inodes=3", "touch a b", "has no inodes left; remove files there")
        self.check("size=64m,nr_inodes=20", "touch a", "has 17 inodes left, and the run needs 36; remove files there")
        self.check("size=64m", 'mount -o remount,ro "$TMPDIR"', "is read-only; mount it to be written")

    def test_of_shared_memory(self):
        """Open MPI works without shared memory."""
        script = 'mount -t tmpfs -o size=64m,nr_inodes=1 none /dev/shm && exec "$@"'
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("a file system of its own needs root")
        run = self.start("-n", 2, *self.command("mlp", *self.iris("training.epochs=1")), launcher=["unshare", "--mount", "bash", "-c", script, "-", SOURCE / "tools/run"])
        self.assertEqual(self.end(run, 0), [])

    def test_of_no_folder(self):
        """The folder is made, as mpirun would."""
        self.environment["TMPDIR"] += "/made/for/it"
        self.assertEqual(self.launch("-n", 2, *self.command("mlp", *self.iris("training.epochs=1"))), [])

    def test_of_a_folder_that_is_named_from_where_it_starts(self):
        self.environment["TMPDIR"] = "tmp"
        self.assertEqual(self.launch("-n", 2, "bash", "-c", "[[ $PLEXAURA_RUN = /* ]]"), [])

    def test_of_a_file(self):
        self.write("tmp/file", "")
        self.environment["TMPDIR"] += "/file"
        for options in ((), ("--survive",)):
            said = self.launch("-n", 2, *options, "true", status=2)
            self.assertEqual(said, [f"run: '{self.folder}/tmp/file', the folder for temporary files, cannot be used: File exists; mend that, or name another folder in TMPDIR"])


class Restart(LaunchTest):
    def test_a_killed_rank_changes_nothing(self):
        arguments = self.iris("training.epochs=250")
        run = self.start("-n", 3, "--restarts", 2, *self.command("mlp", *arguments, *self.settings("output.dir=run")))
        process = 0
        for victim, step in ((1, 500), (0, 1500)):
            self.wait_for_step(3, step, process)
            process = self.ranks()[0].process
            os.kill(self.ranks()[victim].process, signal.SIGKILL)
        said = self.end(run, 0)
        self.assertEqual(len(said), 2, said)
        self.assertRegex(said[0], r"run: mpirun returned 137: rank 1 on \S+ was killed, or crashed, in step \d+, .*; starting again from the last checkpoint with 3 ranks \(restart 1 of 2\)")
        self.assertRegex(said[1], r"run: mpirun returned 137: rank 0 on \S+ was killed, .* \(restart 2 of 2\)")
        self.run_ranks(3, "mlp", *arguments, *self.settings("output.dir=whole"))
        self.compare("run", "whole")

    def test_a_killed_server_or_client_costs_no_more_than_an_epoch(self):
        """Such a run is not deterministic, so the weights are not compared."""
        self.check_killed_server_and_client(250, 15)

    def test_nor_than_the_steps_between_checkpoints(self):
        """An epoch has 120 steps."""
        self.check_killed_server_and_client(30, 120, 10, "training.batch_size=1", "output.every=10")

    def check_killed_server_and_client(self, epochs, steps_per_epoch, most_lost=15, *settings):
        arguments = self.iris("output.dir=run", f"training.epochs={epochs}", "distributed.strategy=async-server", "distributed.client=threaded", *settings)
        run = self.start("-n", 3, "--restarts", 2, *self.command("mlp", *arguments))
        process = 0
        for victim, step in ((0, 200), (1, 600)):
            self.wait_for_step(3, step, process, serving=1)
            process = self.ranks()[0].process
            os.kill(self.ranks()[victim].process, signal.SIGKILL)
            self.wait_for(lambda: len(ranks := self.ranks()) == 3 and ranks[0].process != process and ranks[1].step > 0)
            self.assertGreaterEqual(self.ranks()[1].step, step - most_lost)
        said = self.end(run, 0)
        self.assertEqual(len(said), 2, said)
        for line, victim in zip(said, (0, 1)):
            self.assertRegex(line, rf"run: mpirun returned 137: rank {victim} on \S+ was killed, .*; starting again from the last checkpoint with 3 ranks ")
        self.assertEqual(int(self.checkpoint("run").name.split("-")[1]), epochs * steps_per_epoch)

    def test_weights_to_start_from_are_for_the_first_start(self):
        self.run_one("mlp", *self.iris("output.dir=first"), "--steps", 40)
        weights = ("--weights", self.checkpoint("first") / "weights.safetensors", "--skip", "fc2.*")
        arguments = self.iris("training.epochs=120")
        run = self.start("-n", 2, "--restarts", 1, *self.command("mlp", *arguments, *self.settings("output.dir=run"), *weights))
        self.wait_for_step(2, 500)
        os.kill(self.ranks()[1].process, signal.SIGKILL)
        self.assertEqual(len(self.end(run, 0)), 1)
        self.run_ranks(2, "mlp", *arguments, *self.settings("output.dir=whole"), *weights)
        self.compare("run", "whole")

    def test_the_checkpoint_of_an_older_run_is_not_its_own(self):
        self.run_one("mlp", *self.iris("output.dir=run"), "--steps", 5)
        arguments = self.iris("training.epochs=3")
        said = self.launch("-n", 2, "--restarts", 1, "bash", "-c", DIES_AT_FIRST, "-", *self.command("mlp", *arguments, *self.settings("output.dir=run"), "--replace"))
        self.assertRegex(said[0], r"starting again from the beginning with 2 ranks \(restart 1 of 1\)$")
        self.run_ranks(2, "mlp", *arguments, *self.settings("output.dir=whole"))
        self.compare("run", "whole")

    def test_it_ends_when_there_is_no_start_left(self):
        run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        os.kill(self.ranks()[1].process, signal.SIGKILL)
        self.assertEqual(self.end(run, 137), [])

    def test_without_the_host_that_is_gone(self):
        self.stub('echo "$*" >> starts; [ -e once ] && exit 0; touch once; exit 137')
        agent = self.write("agent", "#!/bin/sh\n[ $1 != h1 ]\n")
        agent.chmod(0o755)
        self.environment["OMPI_MCA_plm_rsh_agent"] = str(agent)
        self.write("hosts", "h0 slots=4\nh1 slots=2 # remark\nh2 slots=2\n")
        for words in (["--hosts", "hosts"], ["--host", "h0:4,h1:2,h2:2"]):
            said = self.launch("-n", 8, "--restarts", 1, *words, "program", "--resume")
            self.assertEqual(said, ["run: mpirun returned 137; starting again from the last checkpoint with 6 ranks without h1 (restart 1 of 1)"])
            starts = (self.folder / "starts").read_text().splitlines()
            self.assertRegex(starts[0], "^-n 8 .* --host h0:4,h1:2,h2:2 program --resume$")
            self.assertRegex(starts[1], "^-n 6 .* --host h0:4,h2:2 program --resume$")
            for name in ("once", "starts"):
                (self.folder / name).unlink()

    def test_not_over_checkpoints_of_ranks_that_are_not_seen(self):
        self.stub("exit 137")
        said = self.launch("-n", 2, "--restarts", 1, "--host", "localhost:1,h1:1", "program", status=137)
        self.assertEqual(said, ["run: mpirun returned 137; it is not started again, because only 0 of 2 ranks are visible from here, and the others may "
                                "have saved a checkpoint; to continue from that, start the run with --resume"])


class Hang(LaunchTest):
    def test_mpirun_that_starts_nothing(self):
        self.stub('trap "" TERM; sleep 1000 & sleep 1000')
        said = self.launch("-n", 2, "--deadline", 2, *self.command("mlp", *self.iris(*ENDLESS)), status=1)
        self.assertEqual(said, ["run: no rank has shown a sign of life for 2 s while mpirun kept running; the job is killed"])

    def test_mpirun_that_outlives_its_ranks(self):
        self.stub('/usr/bin/env -- "$MPIRUN" "$@"; sleep 1000')
        self.environment["MPIRUN"] = subprocess.run(["which", "mpirun"], capture_output=True, text=True).stdout.strip()
        said = self.launch("-n", 2, "--deadline", 3, *self.command("mlp", *self.iris("training.epochs=3")))
        self.assertEqual(len(said), 1)
        self.launch("-n", 2, "--deadline", 3, *self.command("mlp", *self.iris("data.path=nowhere.csv")), status=2)

    def test_a_rank_that_never_comes(self):
        run = self.start("-n", 1, "--deadline", 3, "--restarts", 1, *self.command("mlp", *self.iris(*ENDLESS)), ":", "-n", 1, "sleep", 1000)
        said = self.end(run, 1)
        self.assertEqual(len(said), 3, said)
        self.assertRegex(said[1], r"run: no rank has shown .*: rank 1 did not start, .*; rank 0 on \S+ has been in start-up, in 'MPI_Init.*; starting again from the beginning with 1 ranks \(restart 1 of 1\)")

    def test_a_link_that_is_cut(self):
        """mpirun then waits forever for the other host. That host is lost, and the others continue without
        it."""
        fake_hosts = SOURCE / "tests/support/fake_hosts.sh"
        agent = self.write("agent", f'#!/bin/sh\nip -n "$1" link show eth0 | grep -q LOWER_UP && exec {fake_hosts} "$@"\n')
        agent.chmod(0o755)
        self.environment["OMPI_MCA_plm_rsh_agent"] = str(agent)
        program = self.command("mlp", *self.iris(*ENDLESS, support.short_deadline(3)))
        launcher = [SOURCE / "tools/run", "-n", 3, "--deadline", support.seconds(5), "--restarts", 1, "--host"]
        run = self.start(*program, launcher=[fake_hosts, "-n", 3, "--no-mpirun", "--", "bash", "-c", '"${@:1:8}" "$FAKE_HOSTS" "${@:9}"', "-", *launcher])
        self.wait_for(lambda: run.poll() == 77 or len(self.ranks()) == 3 and self.ranks()[0].saved > 0)
        if run.poll() == 77:
            self.skipTest("no network namespaces here")
        before, host = self.ranks()[0], self.ranks()[2].host
        subprocess.run(["ip", "link", "set", host.replace("-", "v"), "down"], check=True)
        self.wait_for_step(2, before.saved + 1, before.process)
        os.kill(self.ranks()[0].process, signal.SIGTERM)
        said = self.end(run, 143)
        self.assertEqual(len(said), 2, said)
        self.assertRegex(said[1], rf"run: no rank has .*: rank \d on \S+ and rank \d on \S+ did not reach each other: .* or the link of .* is down; "
                                  rf"starting again from the last checkpoint with 2 ranks without {host} \(restart 1 of 1\)$")
        self.assertEqual({rank.ranks for rank in self.ranks()}, {2})

    def check_long(self, output, disturb=lambda run: None, deadline=4):
        """Checks that a job outlives its deadline, which is long enough for ranks that report each second on
        a busy machine."""
        run = self.start("-n", 2, "--deadline", deadline, *self.command("mlp", *self.iris(f"output.dir={output}", "training.epochs=1000000")))
        time.sleep(3)
        disturb(run)
        time.sleep(6)
        self.assertIsNone(run.poll(), "killed while it worked")
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)

    def test_a_job_that_takes_longer_than_the_deadline(self):
        self.check_long("run")

    def test_a_job_without_output(self):
        """The events of a job without an output are kept only for tools/run."""
        self.check_long("")
        self.assertFalse((self.folder / "run").exists())

    def test_somebody_removes_the_output(self):
        def remove(_):
            self.wait_for(lambda: len(self.ranks()) == 2)
            shutil.rmtree(self.folder / "run/events")

        self.check_long("run", remove)

    def test_events_that_cannot_be_kept_in_the_output(self):
        self.write("run/events", "no folder")
        self.check_long("run")

    def test_a_program_that_keeps_no_events(self):
        self.assertEqual(self.launch("-n", 2, "--deadline", 5, "sleep", 8), [])

    def test_a_file_that_cannot_be_read(self):
        def disturb(run):
            for folder in (self.folder / "tmp").glob("plexaura-run-*"):
                (folder / "rank-0007").write_bytes(b"x" * 65536)
        self.check_long("run", disturb)

    def test_the_machine_sleeps(self):
        def disturb(run):
            self.wait_for_step(2, 1)
            processes = [run.pid, *(rank.process for rank in self.ranks())]
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            time.sleep(13)
            for process in processes:
                os.kill(process, signal.SIGCONT)
                time.sleep(1)
        self.check_long("run", disturb, deadline=12)  # leaves a busy machine time to wake up all of them


if __name__ == "__main__":
    support.main()
