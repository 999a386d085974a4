"""Tests the strategies with a parameter server with Open MPI 5: the others continue when a client dies, or
the server.

PLEXAURA_FAULT_SEEDS=20 serving.py BUILD_FOLDER Killed    kills at 20 random moments, instead of 2
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import support
from churning import IN_MPI_INIT
from dying import chosen, death
from joining import FAULTS_OF_START
from launching import LaunchTest
from surviving import OPEN_MPI_5, SurvivalTest

CLIENTS = 3
EPOCHS = 120
STEPS = 15  # steps of an epoch: 120 flowers in batches of 8, shared by the clients
ACCURACY = 0.9  # of 30 flowers
DIED = re.compile(r"(?m)^rank (\d+) has died; the others are dealt what was drawn and not pushed there \(parts of batches: (\d+)\)$")
ALSO_DIED = re.compile(r"(?m)^ranks? .* died; (the others are dealt what was drawn and not pushed there|ranks? .* continue) .*\n")
FAULTY = support.BUILD / "tests/programs/faulty_mlp"
OF_START = [IN_MPI_INIT, f"after {IN_MPI_INIT}", "MPI_Comm_dup", "where the ranks are", "reading the configuration", "the roles of the ranks"]
LETTER = "after the end of the epoch"  # the call in which the server waits for each letter
NEWEST = "the newest weights of the server that any rank has"
ROW = re.compile(r"(?m)^ +(\d+) +(\d+) +\d+ +[\d.]+ +[\d.]+ %(?:  (has died|has taken over as server))?$")


def settings_of(seed):
    """Returns settings for a seed. Two seeds cover each value, four cover all pairs."""
    return [f"distributed.strategy={'downpour' if seed % 2 else 'async-server'}",
            f"distributed.client={'threaded' if (seed + seed // 2) % 2 else 'serial'}"]


class ServerTest(SurvivalTest):
    def start_clients(self, *settings, epochs=EPOCHS, options=(), program=(support.BUILD / "models/mlp",)):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        (self.folder / "run.log").unlink(missing_ok=True)
        arguments = self.iris("output.dir=run", "training.optimizer.learning_rate=0.01", "distributed.push_every=4", f"training.epochs={epochs}", *settings)
        return self.start("-n", CLIENTS + 1, "--survive", *options, *program, *arguments, "--log", "run.log")

    def wait_for_step(self, step):
        super().wait_for_step(CLIENTS + 1, step, serving=1)

    def why(self):
        return subprocess.run([support.SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True).stdout

    def wait_for_new_start(self, process):
        self.wait_for(lambda: len(self.ranks()) == CLIENTS + 1 and self.ranks()[0].process != process)

    def check_each_part_was_pushed_once(self, dead, server=None, steps=EPOCHS * STEPS):
        """Checks the table at the end, which counts the steps of all pushes in the weights."""
        rows = ROW.findall(self.all_output)
        remarks = {rank: "has died" for rank in dead} | ({server: "has taken over as server"} if server else {})
        self.assertEqual({int(rank): remark for rank, _, remark in rows}, {rank: remarks.get(rank, "") for rank in range(1, CLIENTS + 1)}, self.all_output)
        self.assertEqual(sum(int(pushed) for _, pushed, _ in rows), steps * CLIENTS, self.all_output)

    def check_said_once(self, reason):
        lines = [line for line in self.all_output.splitlines() if not line.startswith("run: ") and re.search("(has|have) died", line)]
        self.assertEqual(lines, [f"{reason}; continue from the last checkpoint with --resume"], self.all_output)

    def check_learned(self, epochs=EPOCHS):
        records = [record for record in self.log("run.log") if "val_accuracy" in record]
        self.assertEqual(records[-1]["epoch"], epochs - 1)
        self.assertGreaterEqual(records[-1]["val_accuracy"], ACCURACY)


class Killed(ServerTest):
    def test_a_client_at_random_moments(self):
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            victim, step, pause = source.randrange(1, CLIENTS + 1), source.randrange(1, STEPS * EPOCHS // 8), source.random() / 10
            settings = [*settings_of(seed), *(["distributed.max_staleness=2"] if source.randrange(2) else [])]
            with self.case("client killed", f"rank {victim} {pause:.3f} s behind step {step}, {', '.join(settings)}"):
                run = self.start_clients(*settings)
                self.wait_for_step(step)
                time.sleep(pause)
                self.kill(victim)
                self.assertEqual(self.end(run, 0), [])
                left = " and ".join(str(rank) for rank in range(1, CLIENTS + 1) if rank != victim)
                self.assertEqual([sentence for sentence, _ in self.who_went_on()], [f"rank {victim} has died; ranks 0, {left} continue"], self.all_output)
                self.assertIn(f"rank {victim} died before, and the others continued", self.why())
                self.check_each_part_was_pushed_once([victim])
                self.check_learned()

    def test_until_one_client_is_left(self):
        run = self.start_clients(*settings_of(0), epochs=100)
        dead = []
        for victim, step in ((3, 100), (1, 400)):
            self.wait_for_step(step) if not dead else self.wait_for_survivors(dead, step, serving=[0])
            self.kill(victim)
            dead.append(victim)
        self.assertEqual(self.end(run, 0), [])
        self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 3 has died; ranks 0, 1 and 2 continue", "rank 1 has died; ranks 0 and 2 continue"])
        self.check_each_part_was_pushed_once(dead, steps=100 * STEPS)
        self.check_learned(100)

    def test_the_others_go_on_at_once(self):
        """In the epoch in which the client dies, which is endless here."""
        run = self.start_clients("distributed.strategy=async-server", "distributed.push_every=epoch",
                                 "model.hidden=[1024, 1024]", f"data.path={self.long_table()}", epochs=1)
        self.wait_for(lambda: len(self.ranks()) == CLIENTS + 1 and all(rank.step > 100 for rank in self.ranks()[1:]))
        self.kill(2)
        self.wait_for(lambda: DIED.search((self.folder / "said").read_text()), within=20)
        step = max(rank.step for rank in self.ranks())
        self.wait_for(lambda: all(rank.step > step + 20 for rank in self.ranks() if rank.rank in (1, 3)))
        self.assertRegex(self.why(), r"^running: ranks 0, 1 and 3 at step \d+; rank 2 died before, and the others continued")
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)
        self.assertGreater(int(DIED.search(self.all_output)[2]), 20)  # each of three clients had done a third
        self.assertRegex(self.all_output, r"(?m)^ +2 +0 +0 +0.00 +[\d.]+ %  has died$")

    def long_table(self):
        """Returns data for an epoch of more than a minute."""
        head, *rows = (support.SOURCE / "models/iris.csv").read_text().splitlines()
        return self.write("long.csv", "\n".join([head, *(rows * 4_000)]) + "\n")

    def test_all_clients(self):
        run = self.start_clients(*settings_of(0), options=("--restarts", 1))
        self.wait_for_step(100)
        first = self.ranks()[0].process
        for victim in range(1, CLIENTS + 1):
            self.kill(victim)
        self.wait_for_new_start(first)
        said = self.end(run, 0)
        # The server may learn of one or two deaths first.
        self.all_output = ALSO_DIED.sub("", self.all_output)
        self.check_said_once("all ranks but 0 have died, and a parameter server needs a client")
        self.assertRegex(said[0], "; starting again from the last checkpoint with 4 ranks ")
        self.check_learned()

    def test_the_server(self):
        """The lowest client replaces the server in the same epoch, and no part is left out or pushed twice.
        """
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            step, pause = source.randrange(1, STEPS * EPOCHS // 3), source.random() / 10
            settings = [*settings_of(seed), *(["output.every=7"] if seed % 4 in (1, 2) else [])]
            with self.case("server killed", f"{pause:.3f} s behind step {step}, {', '.join(settings)}"):
                run = self.start_clients(*settings)
                self.wait_for_step(step)
                time.sleep(pause)
                self.kill(0)
                self.assertEqual(self.end(run, 0), [])
                self.assertEqual([sentence for sentence, _ in self.who_went_on()], ["rank 0 has died; rank 1 takes over; ranks 1, 2 and 3 continue"], self.all_output)
                self.assertIn("rank 0 died before, and the others continued", self.why())
                self.check_each_part_was_pushed_once([], server=1)
                self.check_learned()

    def test_one_server_after_the_other(self):
        """Servers die until the next one would have no client."""
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            first, pause = source.randrange(1, 300), source.random() / 10
            with self.case("servers killed", f"rank 0 behind step {first}, rank 1 {pause:.3f} s after it goes on, {', '.join(settings_of(seed))}"):
                run = self.start_clients(*settings_of(seed), epochs=200)
                self.wait_for_step(first)
                self.kill(0)
                self.wait_for_survivors([0], serving=[1])
                time.sleep(pause)
                self.kill(1)
                self.assertEqual(self.end(run, 0), [])
                self.assertEqual(self.who_went_on()[-1][0], "rank 1 has died; rank 2 takes over; ranks 2 and 3 continue", self.all_output)
                self.check_each_part_was_pushed_once([1], server=2, steps=200 * STEPS)
                self.check_learned(200)

    def test_the_server_while_others_validate(self):
        self.environment["PLEXAURA_FAULTS"] = death(2, "validation", fault="stop", times=9)
        run = self.start_clients(*settings_of(0), program=(FAULTY,))
        self.wait_for(lambda: len(self.ranks()) == CLIENTS + 1 and self.ranks()[2].process_state() == "T")
        stopped = self.ranks()[2].process
        self.kill(0)
        time.sleep(0.2)
        os.kill(stopped, signal.SIGCONT)
        self.assertEqual(self.end(run, 0), [])
        self.assertEqual(self.who_went_on(), [("rank 0 has died; rank 1 takes over; ranks 1, 2 and 3 continue", str(3 * STEPS + 1))])
        self.check_each_part_was_pushed_once([], server=1)
        self.check_learned()

    def test_the_server_as_it_starts(self):
        """No client has trained yet, so all ranks restart from the beginning."""
        for seed, point in enumerate(chosen(OF_START)):
            with self.case("server killed as it starts", f"at '{point}', {', '.join(settings_of(seed))}"):
                self.write("faults", death(0, point) + "\n")
                (self.folder / "starts").unlink(missing_ok=True)
                run = self.start_clients(*settings_of(seed), options=("--restarts", 1), epochs=20, program=("bash", "-c", FAULTS_OF_START, "-", FAULTY))
                self.assertRegex(self.end(run, 0)[-1], f"starting again from the beginning with {CLIENTS + 1} ranks ")
                self.check_all_are_back(20)

    def test_the_server_comes_back(self):
        for seed in range(support.FAULT_SEEDS):
            step = random.Random(seed).randrange(1, 1000)
            with self.case("server comes back", f"killed behind step {step}, {', '.join(settings_of(seed))}"):
                run = self.start_clients(*settings_of(seed), options=("--rejoin",), epochs=300)
                self.wait_for_step(step)
                first = self.ranks()[0].process
                self.kill(0)
                self.wait_for_new_start(first)
                self.assertRegex(self.end(run, 0)[-1], f"starting again from the last checkpoint with {CLIENTS + 1} ranks$")
                self.check_all_are_back(300)
                self.check_learned(300)

    def check_all_are_back(self, epochs):
        """Checks that the tables of all starts together have all parts."""
        rows = ROW.findall(self.all_output)
        self.assertEqual([(int(rank), remark) for rank, _, remark in rows[-CLIENTS:]], [(rank, "") for rank in range(1, CLIENTS + 1)], self.all_output)
        self.assertEqual(sum(int(pushed) for _, pushed, _ in rows), epochs * STEPS * CLIENTS, self.all_output)


class Stopped(ServerTest):
    def test_a_client_is_killed_after_the_deadline(self):
        for seed in range(support.FAULT_SEEDS):
            source = random.Random(seed)
            victim, step = source.randrange(1, CLIENTS + 1), source.randrange(1, STEPS * EPOCHS // 3)
            with self.case("client stopped", f"rank {victim} behind step {step}, {', '.join(settings_of(seed))}"):
                run = self.start_clients(*settings_of(seed), support.short_deadline())
                self.wait_for_step(step)
                os.kill(self.ranks()[victim].process, signal.SIGSTOP)
                self.assertEqual(self.end(run, 0), [])
                self.assertIn(f"rank {victim} is stopped (SIGSTOP or Ctrl-Z), and did not come within the deadline: rank 0 has killed it", self.all_output)
                self.check_each_part_was_pushed_once([victim])
                self.check_learned()

    def test_so_is_the_server(self):
        run = self.start_clients(*settings_of(0), support.short_deadline())
        self.wait_for_step(100)
        os.kill(self.ranks()[0].process, signal.SIGSTOP)
        self.assertEqual(self.end(run, 0), [])
        # The lowest client that came in time kills it, which on a busy machine may not be client 1.
        self.assertRegex(self.all_output, r"rank 0 is stopped \(SIGSTOP or Ctrl-Z\), and did not come within the deadline: rank [1-3] has killed it")
        self.check_each_part_was_pushed_once([], server=1)
        self.check_learned()


class AtPoints(ServerTest):
    """The server dies between two letters, or while it sends some."""

    EPOCHS = 4
    LETTERS = 70  # letters of an epoch: 45 draws, the pushes, and three rests

    def check(self, seed, deaths, dead, server):
        self.environment["PLEXAURA_FAULTS"] = ";".join(deaths)
        run = self.start_clients(*settings_of(seed), epochs=self.EPOCHS, program=(FAULTY,))
        self.assertEqual(self.end(run, 0), [])
        self.check_each_part_was_pushed_once(dead, server, self.EPOCHS * STEPS)

    def test_between_letters(self):
        points = [(letters, more) for letters in range(1, 2 * self.LETTERS) for more in range(7)]
        cases = [(f"letter {letters}, {more} points behind", [death(0, LETTER, more, letters)]) for letters, more in points]
        for seed, (name, deaths) in enumerate(chosen(cases)):
            with self.case("server", f"{name}, {', '.join(settings_of(seed))}"):
                self.check(seed, deaths, [], 1)

    def test_another_while_they_go_on(self):
        """The new server dies, or one of its clients."""
        points = [(point, 1) for point in ("MPIX_Comm_shrink", "after MPIX_Comm_shrink", "who is left", NEWEST, f"after {NEWEST}")]
        of_server = [(LETTER, 1), (LETTER, 20)]
        cases = [(rank, *point, letters) for rank in range(1, CLIENTS + 1) for point in points + (of_server if rank == 1 else []) for letters in (1, 30, 64)]
        for seed, (rank, point, times, letters) in enumerate(chosen(cases)):
            with self.case("another", f"rank {rank} at '{point}' ({times}), rank 0 behind letter {letters}, {', '.join(settings_of(seed))}"):
                self.check(seed, [death(0, LETTER, 0, letters), death(rank, point, times=times)], [rank], 2 if rank == 1 else 1)


class Ended(ServerTest):
    def test_a_signal_ends_those_that_are_left(self):
        run = self.start_clients(*settings_of(1), epochs=1_000_000)
        self.wait_for_step(100)
        self.kill(1)
        self.wait_for_survivors([1], serving=[0])
        run.send_signal(signal.SIGTERM)
        self.end(run, 143)
        self.assertEqual(int(self.checkpoint("run").name.split("-")[1]), max(rank.saved for rank in self.ranks()))

    def test_all_ranks_where_the_file_says_so(self):
        run = self.start_clients("distributed.strategy=async-server", "distributed.on_loss=end", epochs=1_000_000)
        self.wait_for_step(100)
        self.kill(1)
        self.end(run, 1)
        self.assertIn("all others end, although this MPI would let them continue, because distributed.on_loss is end; set it to drop", self.all_output)
        self.assertEqual(len(re.findall("(?m)^rank 1 on .* has died while rank", self.all_output)), 1, self.all_output)

    def test_spares_are_refused(self):
        self.launch("-n", 3, "--survive", "--spares", 1, *self.command("mlp", *self.iris("distributed.strategy=downpour")), status=2)
        self.assertIn("distributed.strategy is 'downpour', whose clients draw the parts of one that dies, and no spare takes over; ", self.all_output)


class Sharded(ServerTest):
    """Two servers, each with a shard of the weights."""

    TWO = "distributed.servers=2"
    SETTINGS = ("distributed.push_every=4", "training.epochs=20", "output.every=7", "output.keep=1000")

    def test_one_client_saves_the_bits_that_it_has_with_one_server(self):
        for strategy in ("async-server", "downpour"):
            arguments = self.iris(f"distributed.strategy={strategy}", *self.SETTINGS)
            self.launch("-n", 2, *self.command("mlp", *arguments, *self.settings("output.dir=one")))
            self.launch("-n", 3, *self.command("mlp", *arguments, *self.settings("output.dir=two", self.TWO)))
            names = self.checkpoints("one")
            self.assertEqual(self.checkpoints("two"), names)
            self.assertGreater(len(names), 40)
            for name in names:
                one, two = ((self.folder / folder / name / "weights.safetensors").read_bytes() for folder in ("one", "two"))
                self.assertEqual(one, two, name)
            shutil.rmtree(self.folder / "one")
            shutil.rmtree(self.folder / "two")

    def test_all_end_with_a_rank_that_dies(self):
        """Either server dies, or a client."""
        for victim in (0, 1, 3):
            run = self.start_clients(*settings_of(victim), self.TWO, epochs=1_000_000)
            LaunchTest.wait_for_step(self, CLIENTS + 1, 100, serving=2)
            self.kill(victim)
            self.end(run, 1)
            self.assertIn("all others end, although this MPI would let them continue, because distributed.servers is above 1, and the weights of a server "
                          "would be lost with it; set it to 1", self.all_output)
            self.assertEqual(len(re.findall(f"(?m)^rank {victim} on .* has died while rank", self.all_output)), 1, self.all_output)

    def test_a_restart_goes_on(self):
        run = self.start_clients(*settings_of(0), self.TWO, options=("--restarts", 1))
        LaunchTest.wait_for_step(self, CLIENTS + 1, 100, serving=2)
        first = self.ranks()[0].process
        self.kill(1)
        self.wait_for_new_start(first)
        self.assertRegex(self.end(run, 0)[0], "; starting again from the last checkpoint with 4 ranks ")
        self.check_learned()

    def test_what_is_refused(self):
        for settings, ranks, said in (((self.TWO, "distributed.on_loss=drop"), 4, "distributed.on_loss is 'drop', and the weights of a server would be lost with it, "),
                                      ((self.TWO,), 2, "all ranks serve and none trains; start more ranks, "),
                                      (("distributed.servers=3",), 2, "all ranks serve and none trains; start more ranks, ")):
            self.launch("-n", ranks, *self.command("mlp", *self.iris("distributed.strategy=downpour", *settings)), status=2)
            self.assertIn(said, self.all_output)


class Grouped(ServerTest):
    """Clients of two ranks each."""

    def test_the_ranks_of_a_client_hold_equal_bits(self):
        """At the end all ranks have the weights of the server. Each client keeps its own states of the
        optimizer."""
        for seed in range(4):
            arguments = self.iris("output.dir=run", *settings_of(seed), "distributed.group=2", "distributed.servers=2", "distributed.push_every=4", "training.batch_size=7")
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.launch("-n", 6, *self.command("mlp", *arguments), "--steps", 25)
            states = {}
            for name, value in support.read_safetensors(self.checkpoint("run") / "state.safetensors").items():
                if name.startswith("state0."):
                    states.setdefault("0", {})[name.removeprefix("state0.")] = value
                elif name.startswith("strategy.rank"):
                    rank, _, tensor = name.removeprefix("strategy.rank").partition(".store/state0/")
                    states.setdefault(rank, {})[tensor] = value
            self.assertEqual(sorted(states), ["0", "1", "2", "3"])
            self.assertEqual(states["0"], states["1"])
            self.assertEqual(states["2"], states["3"])
            self.assertNotEqual(states["0"], states["2"])

    def test_what_is_refused(self):
        for settings, said in ((("distributed.on_loss=drop",), "distributed.on_loss is 'drop', and a client would lose one of its ranks, "),
                               ((), "3 ranks train, and distributed.group makes clients of 2 ranks each; ")):
            self.launch("-n", 4, *self.command("mlp", *self.iris("distributed.strategy=downpour", "distributed.group=2", *settings)), status=2)
            self.assertIn(said, self.all_output)


if __name__ == "__main__":
    if OPEN_MPI_5 is None:
        print("skipped: built without MPI, or Open MPI 5 cannot be installed from PyPI")
        sys.exit(77)
    support.main()
