"""Tests clients of a parameter server that are jobs of their own: they join while it runs, are killed, come
back and leave."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import unittest

import support
from patience import Patience

MLP = support.BUILD / "models/mlp"
ACCURACY = 0.9  # of 30 flowers
FAKE_HOSTS = support.SOURCE / "tests/support/fake_hosts.sh"
# Writes the names of all hosts into each host of FAKE_HOSTS.
NAMES_OF_HOSTS = """IFS=, read -ra hosts <<< "${FAKE_HOSTS//:1/}"
for host in "${hosts[@]}"; do echo "$(ip -n $host -4 -o address show eth0 | sed 's|.* inet \\([0-9.]*\\).*|\\1|') $host"; done > names
cat /etc/hosts >> names
mount --bind names /etc/hosts"""
ENDLESS = "training.epochs=1000000"  # until a signal, at which a client leaves
ROW = re.compile(r"(?m)^ +(\d+) +(\d+) +(\d+) +[\d.]+ +[\d.]+ %(?:  (has died))?$")


class VisitTest(support.ProgramTest):
    def setUp(self):
        if not support.HAS_SODIUM:
            self.skipTest("built without libsodium")
        super().setUp()
        self.logs = 0

    def tearDown(self):
        """Checks that no process is left, unless the test has failed."""
        self.wait_for(lambda: not self.processes(), within=20)

    def settings_of_run(self, *settings, deadline=30):
        return self.iris("distributed.strategy=async-server", "distributed.push_every=4", "training.optimizer.learning_rate=0.01",
                         f"distributed.deadline_seconds={deadline}", *settings)

    def start(self, *command, program=(MLP,)):
        self.logs += 1
        log = self.folder / f"log{self.logs}"
        # tools/run sets up the environment of mpirun itself
        environment = support.environment() if len(program) == 1 else support.mpi_environment()
        with log.open("w") as out:
            process = subprocess.Popen([*map(str, program), *map(str, command)], cwd=self.folder, env=environment, stdout=out, stderr=out)
        process.log = log
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def serve(self, *settings, options=(), program=(MLP,), deadline=30):
        return self.start(*self.settings_of_run("output.dir=run", *settings, deadline=deadline), "--serve", "server", *options, program=program)

    def join(self, *settings, options=(), deadline=30):
        return self.start(*self.settings_of_run(*settings, deadline=deadline), "--join", "server", *options)

    def said(self, process):
        return process.log.read_text()

    def wait_until_said(self, process, text, within=60):
        patience = Patience(within)
        while text not in self.said(process):
            self.assertFalse(patience.is_over(), f"{process.log.name}: '{text}' was not said\n{self.said_by_all()}")
            time.sleep(0.02)

    def said_by_all(self):
        return "\n".join(f"{log.name}:\n{log.read_text()}" for log in sorted(self.folder.glob("log*")))

    def wait_for_pushes(self, more):
        """Waits for further pushes to a server that saves after each."""
        first = self.newest()
        self.wait_for(lambda: self.newest() >= first + more)

    def newest(self):
        return max((int(path.name.split("-")[1]) for path in (self.folder / "run").glob("checkpoint-*")), default=0)

    def end(self, process, status, within=60):
        self.assertEqual(process.wait(within), status, self.said(process))
        return self.said(process)

    def stop(self, client):
        """Stops a client, which pushes what it has learned, and leaves."""
        client.send_signal(signal.SIGTERM)
        self.end(client, 143)

    def rows(self, server):
        return {int(number): (int(pushes), remark) for number, _, pushes, remark in ROW.findall(self.said(server))}

    def check_learned(self):
        evaluated = self.run_one("mlp", *self.settings_of_run("output.dir=run"), "--evaluate").out
        self.assertGreaterEqual(float(re.search(r"validation accuracy ([\d.]+) %", evaluated)[1]), 100 * ACCURACY)


class ComeAndGo(VisitTest):
    def test_one_is_killed_and_one_comes_late(self):
        for strategy in ("async-server", "downpour"):
            chosen = f"distributed.strategy={strategy}"
            server = self.serve(chosen, options=("--clients", 3, "--replace"), deadline=2)
            first, killed = self.join(chosen, ENDLESS), self.join(chosen, ENDLESS)
            self.wait_until_said(server, "clients that are there: 2")
            killed.kill()
            self.wait_until_said(server, "was lost: the connection")
            late = self.join(chosen, "training.epochs=100")
            self.assertIn("joined the server of server as client 3", self.end(late, 0))
            self.assertIsNone(first.poll())
            self.stop(first)
            self.end(server, 0)
            rows = self.rows(server)
            self.assertEqual(sorted(remark for _, remark in rows.values()), ["", "", "has died"])
            self.assertEqual(rows[3], (100 * 4, ""))  # 15 steps of an epoch: three pushes, and one at its end
            self.assertIn("pushes by staleness   0: ", self.said(server))
            self.assertFalse((self.folder / "server").exists())
            self.check_learned()

    def test_each_client_has_its_own_rows(self):
        """The rows are scaled like those of the server."""
        head, *rows = (support.SOURCE / "models/iris.csv").read_text().splitlines()
        server = self.serve(options=("--clients", 2))
        paths = [self.write(f"part{part}.csv", "\n".join([head, *rows[part::2]]) + "\n") for part in range(2)]
        clients = [self.join(f"data.path={path}", "data.validation_share=0", "training.epochs=100") for path in paths]
        for client in clients:
            self.assertIn("75 samples of 3 classes, 0 for validation", self.end(client, 0))
        self.end(server, 0)
        self.check_learned()

    def test_unequal_rows_on_hosts_with_slow_links(self):
        """Federated averaging: 15, 45 and 90 flowers, each on one host only."""
        head, *rows = (support.SOURCE / "models/iris.csv").read_text().splitlines()
        rows = rows[0::3] + rows[1::3] + rows[2::3]  # so that each part has all species
        commands = [[MLP, *self.settings_of_run("output.dir=run"), "--serve", "server", "--clients", 3, "--address", "0.0.0.0"]]
        for part, (first, last) in enumerate(((0, 15), (15, 60), (60, 150))):
            path = self.write(f"part{part}.csv", "\n".join([head, *rows[first:last]]) + "\n")
            commands.append([MLP, *self.settings_of_run(f"data.path={path}", "data.validation_share=0", "training.epochs=60"), "--join", "server"])
        starts = [f'"$1" ${{hosts[{i}]}} \'cd {self.folder} && exec {shlex.join(map(str, command))} > host{i} 2>&1\' & jobs+=($!)' for i, command in enumerate(commands)]
        script = self.write("start", "\n".join((NAMES_OF_HOSTS, *starts, 'for job in "${jobs[@]}"; do wait $job || status=$?; done; exit ${status:-0}')))
        done = subprocess.run([FAKE_HOSTS, "--hosts", "4", "--rate", "500kbit", "-n", "4", "--no-mpirun", "--", "unshare", "-m", "bash", script, FAKE_HOSTS],
                              cwd=self.folder, env=support.environment(), stdout=subprocess.PIPE, text=True)
        if done.returncode == 77:
            self.skipTest("no network namespaces here")
        said = [(self.folder / f"host{i}").read_text() for i in range(4)]
        self.assertEqual(done.returncode, 0, said)
        for client, samples in zip(said[1:], (15, 45, 90)):
            self.assertIn(f"{samples} samples of 3 classes, 0 for validation", client)
        self.check_learned()

    def test_the_weights_of_a_convolutional_net_with_buffers(self):
        """The programs choose different layouts."""
        arguments = [*self.cnn("distributed.strategy=async-server", "distributed.mix=1"), "--set",
                     "model.layers=[{type: conv, channels: 4, kernel: 3}, {type: batch_norm}, {type: relu}, {type: flatten}, {type: linear}]"]
        convnet = (support.BUILD / "models/convnet",)
        server = self.start(*arguments, "--serve", "server", program=convnet)
        told = self.end(self.start(*arguments, "--set", "training.epochs=20", "--join", "server", program=convnet), 0)
        self.end(server, 0)
        evaluated = self.run_one("convnet", *arguments, "--evaluate").out
        losses = [re.findall(r"validation loss +([\d.]+)", text)[-1] for text in (told, evaluated)]
        self.assertEqual(losses[0], losses[1])

    def test_a_client_that_is_stopped_comes_back(self):
        server = self.serve(options=("--clients", 2), deadline=2)
        going, stopped = self.join(ENDLESS), self.join(ENDLESS)
        self.wait_until_said(server, "clients that are there: 2")
        stopped.send_signal(signal.SIGSTOP)
        self.wait_until_said(server, "was lost: it has been silent for 2 s; the others continue")
        stopped.send_signal(signal.SIGCONT)
        self.wait_until_said(server, "has come back from")
        self.stop(stopped)
        self.stop(going)
        self.end(server, 0)
        self.assertEqual([remark for _, remark in self.rows(server).values()], ["", ""])

    def test_the_only_client_is_killed(self):
        server = self.serve(deadline=1)
        client = self.join(ENDLESS, deadline=1)
        self.wait_until_said(server, "clients that are there: 1")
        client.kill()
        self.assertIn("all clients were lost, and none has come back within 1 s; ", self.end(server, 1))


class ServerAway(VisitTest):
    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_it_is_killed_and_starts_again_from_its_checkpoint(self):
        server = self.serve("output.every=1", options=("--clients", 2), program=(support.SOURCE / "tools/run", "-n", 1, "--restarts", 1, MLP))
        clients = [self.join(ENDLESS), self.join(ENDLESS)]
        self.wait_until_said(server, "clients that are there: 2")
        self.wait_for_pushes(30)
        before = self.newest()
        serving, = [process for process, arguments in self.processes("--serve") if arguments[0] == str(MLP)]
        os.kill(serving, signal.SIGKILL)
        for client in clients:
            self.wait_until_said(client, "the server of server is back, and this is its client")
        self.assertGreaterEqual(int(re.search(r"serving from the checkpoint after push (\d+)", self.said(server))[1]), before)
        self.wait_for_pushes(30)
        for client in clients:
            self.stop(client)
        self.end(server, 0)
        self.assertEqual(self.rows(server).keys(), {1, 2})
        self.assertEqual(sum(pushes for pushes, _ in self.rows(server).values()), self.newest())
        self.check_learned()

    def test_it_is_told_to_end_and_goes_on_later(self):
        server = self.serve()
        client = self.join(ENDLESS)
        self.wait_until_said(server, "clients that are there: 1")
        self.wait_for(lambda: self.newest() > 0)
        server.send_signal(signal.SIGTERM)
        self.end(server, 143)
        saved = self.newest()
        server = self.serve(options=("--resume",))
        self.wait_until_said(server, f"serving from the checkpoint after push {saved} at ")
        self.wait_until_said(server, "client 1 has come back from ")
        self.stop(client)
        self.end(server, 0)
        self.assertGreaterEqual(self.newest(), saved)
        self.check_learned()

    def test_it_does_not_come_back(self):
        server = self.serve()
        client = self.join(ENDLESS, deadline=2)
        self.wait_until_said(server, "clients that are there: 1")
        server.kill()
        said = self.end(client, 1, within=20)
        self.assertIn("the server of server was lost: the connection", said)
        self.assertRegex(said, r"--join: server names no server any more that answered within 2 s \(at 127\.0\.0\.1, port \d+: no program listens there\); see whether the server runs, and start this client again\n$")

    def test_it_is_stopped(self):
        server = self.serve()
        client = self.join(ENDLESS, deadline=2)
        self.wait_until_said(server, "clients that are there: 1")
        server.send_signal(signal.SIGSTOP)
        self.assertIn("--join: server names a server that has not answered for 2 s; ", self.end(client, 1, within=20))
        server.kill()
        server.wait()

    def test_there_is_none(self):
        self.assertIn("--join: server names no server that answered within 1 s; ", self.end(self.join(deadline=1), 1, within=20))


class Refused(VisitTest):
    def test_clients_that_differ(self):
        server = self.serve()
        for settings, name in ((("model.hidden=[7]",), "model.hidden"), (("distributed.strategy=downpour",), "distributed.strategy"),
                               (("distributed.mix=0.4",), "distributed.mix"), (("distributed.damping=1",), "distributed.damping"),
                               (("distributed.push_limit=50",), "distributed.push_limit"),
                               (("training.precision=float64",), "parameter fc1.bias"), (("training.freeze=['fc1.*']",), "parameter fc1.bias")):
            said = self.end(self.join(*settings), 2)
            self.assertRegex(said, f"(?m)^the server and this client differ in '{re.escape(name)}': the server has .*, and the client .*; start both with the same$")
            self.wait_until_said(server, f"was turned away: the server and this client differ in '{name}'")
        self.end(self.join("training.epochs=20"), 0)
        self.end(server, 0)
        self.assertEqual(self.rows(server).keys(), {1})

    def test_one_whose_training_diverges(self):
        """The others continue with weights that the client has not spoiled. The checkpoint from before its
        pushes stays, though only the newest ones are kept."""
        server = self.serve("output.every=1", "output.keep=2", options=("--clients", 2))
        good = self.join(ENDLESS)
        self.wait_for_pushes(100)
        diverging = self.join("training.optimizer.learning_rate=1e30", "distributed.push_every=1")
        said = self.end(diverging, 2)
        self.assertRegex(said, r"the server takes in no (push that changes the weights by .*, which is more than 100 times their norm of|weights that are not finite)")
        self.wait_until_said(server, "client 2 from 127.0.0.1 was lost: the server takes in no ")
        # ten times the learning rate of the other client
        fast = self.join("training.optimizer.learning_rate=0.1", "training.epochs=20")
        self.end(fast, 0)
        self.stop(good)
        self.end(server, 0)
        self.assertIn("a push that changes the weights more than 100 times as far as other pushes, ", self.said(server))
        self.check_learned()

    def test_one_whose_training_diverges_behind_some_pushes(self):
        """The server keeps the checkpoint from before the pushes of a client that diverges, although output.keep is 1.
        Servers that continue the run keep it, too."""
        relu = "model.activation=relu"  # an activation whose gradients grow with the samples
        keeping_one = (relu, "output.every=1", "output.keep=1")
        server = self.serve(*keeping_one, options=("--clients", 2))
        good = self.join(relu, ENDLESS)
        self.wait_for_pushes(50)
        head, *rows = (support.SOURCE / "models/iris.csv").read_text().splitlines()
        rows = rows[0::3] + rows[1::3]  # so that each part has all species
        path = self.write("damaged.csv", "\n".join([head, *rows[:56], *(f"1e12,1e12,1e12,1e12,{row.rpartition(',')[2]}" for row in rows[56:64])]) + "\n")
        said = self.end(self.join(relu, f"data.path={path}", "data.validation_share=0", "data.shuffle=false", "distributed.push_every=1"), 2)
        self.assertIn("the server takes in no push that changes the weights by ", said)
        self.wait_until_said(server, "the weights contain earlier pushes of client 2, and the last 7 of these may have spoiled them: ")
        kept = re.search(r"may have spoiled them: (\S+) is from before them, and is kept", self.said(server))[1]
        self.wait_for_pushes(100)
        self.assertTrue((self.folder / kept / "weights.safetensors").is_file())
        self.stop(good)
        self.end(server, 0)
        for _ in range(2):
            server = self.serve(*keeping_one, options=("--resume", "--clients", 9))
            good = self.join(relu, ENDLESS)
            self.wait_until_said(server, "serving from the checkpoint")
            self.wait_for_pushes(20)
            self.stop(good)
            server.send_signal(signal.SIGTERM)
            self.end(server, 143)
            left = [path.name for path in sorted((self.folder / "run").glob("checkpoint-*"))]
            self.assertIn(pathlib.Path(kept).name, left)
            # Besides the saved one, only checkpoints that may be needed for later pushes are left, and the
            # newest.
            self.assertLessEqual(len(left), 5)

    def test_a_second_server(self):
        server = self.serve()
        self.wait_for(lambda: (self.folder / "server").is_file() and (self.folder / "server").read_text().endswith("\n"))
        other = self.start(*self.settings_of_run(), "--serve", "server")
        self.assertIn("--serve: another server uses 'server'; end it, or name another file\n", self.end(other, 2))
        self.end(self.join("training.epochs=2"), 0)
        self.end(server, 0)

    def test_settings(self):
        for options, settings, said in ((("--serve", "a"), ("distributed.strategy=allreduce",), "distributed.strategy is 'allreduce', which has no parameter server, "),
                                        (("--join", "a"), ("distributed.max_staleness=3",), "distributed.max_staleness has no effect here, because with --join each client is a job of its own; "),
                                        (("--serve", "no/such/folder"), (), "--serve: 'no/such/folder' cannot be written: No such file or directory; ")):
            arguments = self.iris("distributed.strategy=async-server", *settings)
            self.assertIn(said, self.run_one("mlp", *arguments, *options, status=2).err)

    def test_files_of_no_server(self):
        """The client does not wait."""
        (self.folder / "folder").mkdir()
        os.mkfifo(self.folder / "pipe")
        self.write("mine.csv", "a,b\n1,2\n")
        for name in ("folder", "pipe", "mine.csv"):
            arguments = self.settings_of_run(deadline=3600)
            self.assertEqual(self.run_one("mlp", *arguments, "--join", name, status=2).text, f"--join: '{name}' was not written by a server; name the file of --serve\n")

    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_several_ranks(self):
        said = self.mpirun(2, self.command("mlp", *self.iris("distributed.strategy=async-server"), "--serve", "a"), status=2).text
        self.assertIn("--serve is for a job of one rank, and there are 2; ", said)


class WithoutSodium(support.ProgramTest):
    @unittest.skipIf(support.HAS_SODIUM, "built with libsodium")
    def test_it_is_said(self):
        for option in ("--serve", "--join"):
            said = self.run_one("mlp", *self.iris("distributed.strategy=async-server"), option, "server", status=2).text
            self.assertEqual(said, f"{option} needs libsodium, and Plexaura was built without it; install libsodium-dev (tools/install_packages), and build again\n")


if __name__ == "__main__":
    support.main()
