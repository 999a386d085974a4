"""Runs mpirun once: watches its ranks, ends them if they hang, and removes the files that they leave."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

from asked import meant_by
from elsewhere import read_others
from events import Kind, Rank, open_events
from leftovers import Leftovers
from links import keep_waiting
from output import Output
from printing import say
from verdict import judge, those_cut_off

TOOLS = pathlib.Path(__file__).resolve().parents[1]
SURVIVING = ("--with-ft", "ulfm")  # options of mpirun with which the other ranks continue when one dies
TURN = 0.05  # seconds between two checks of mpirun and of signals
LOOK = 0.25  # seconds between two reads of the ranks' events
LONG_TURN = 2  # If a turn takes more seconds than this, this process or the machine was stopped
# signals that mpirun forwards to the ranks without ending the job itself
PASSED_ON = {signal.SIGINT: signal.SIGUSR2, signal.SIGTERM: signal.SIGUSR1}
TO_END = 10  # seconds that mpirun gets to end after the surviving ranks have ended
GRACE = 3  # seconds in which the other ranks can notice a death and end with an error of their own


def mpi_environment():
    command = ["bash", "-c", '. "$0" && env -0', TOOLS / "mpi_environment"]
    # the probe runs in its own session, so Ctrl-C does not reach it
    sourced = subprocess.run(command, stdout=subprocess.PIPE, check=True, start_new_session=True).stdout
    return dict(entry.split("=", 1) for entry in os.fsdecode(sourced).split("\0") if entry)


def end_with_launcher():
    """Runs in mpirun's process before it starts. Makes the system send it SIGTERM when this script dies,
    after which it ends its ranks."""
    set_signal_of_parents_death = 1
    ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGTERM)


class Job:
    """One start of mpirun. It runs in its own session, so that Ctrl-C reaches only this script, which then
    asks the ranks to end."""

    def __init__(self, options, starts, folder, signals, rejoining):
        self.options, self.folder, self.signals, self.started = options, folder, signals, starts.ranks
        # True if an earlier start has shown that the ranks' event files can be read here.
        self.are_seen = starts.are_seen
        self.rejoining = rejoining
        if rejoining:
            rejoining.begin(starts.ranks, starts.spares)
        # True if the ranks were asked to end for a restart of all ranks; true if they have ended for it.
        self.makes_room = self.has_made_room = False
        self.files, self.seen, self.ranks, self.life, self.alive_at = {}, {}, [], None, time.monotonic()
        self.lost_at = None  # time at which a rank was found dead before all ranks had started
        self.program, self.begun, self.has_hosts = starts.program, time.time_ns(), bool(starts.hosts)
        self.has_seen_ranks = False  # true if any rank was seen while mpirun ran
        self.asked = 0  # the signal that was sent to the ranks
        self.has_asked_mpirun = False  # true if mpirun was asked to end because there was no rank to ask
        self.is_asked = False  # true if the ranks were asked to end because of a signal
        self.keeps_waiting = False  # true if mpirun was set to wait for hosts that are cut off
        self.ended_at = None  # time at which all surviving ranks were found to have ended
        self.cause = ""
        for path in folder.iterdir():
            path.unlink()
        self.leftovers = Leftovers(folder)
        values = {"PLEXAURA_RUN": str(folder), "PLEXAURA_SHARED": self.leftovers.make_shared_folder(), "PLEXAURA_SPARES": str(starts.spares)}
        self.environment = dict(mpi_environment(), **values)
        places = ["--host", ",".join(map(str, starts.hosts_left))] if starts.hosts else []
        # mpirun passes this unused setting to its daemons, whose command lines then show which job they
        # belong to.
        surviving = SURVIVING if options.survive else ()
        exported = [word for name in values for word in ("-x", name)]
        command = ["mpirun", *surviving, "-n", str(starts.ranks), *exported, "--mca", "plexaura_run", str(folder), *places, *starts.program]
        self.output = Output(signals)
        self.mpirun = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_launcher, **self.output.of_child())
        self.output.has_started()

    def run(self):
        """Watches the job until it ends, and returns its exit status."""
        try:
            status = self.watch()
        except BaseException:
            self.kill()
            raise
        finally:
            self.output.finish()
            for file in self.files.values():
                file.close()
        if not self.makes_room or status != 128 + signal.SIGTERM:
            return status
        self.has_made_room = not self.signals
        return self.signals.status if self.signals else status

    def watch(self):
        looked = 0
        turn = time.monotonic()
        while self.mpirun.poll() is None:
            self.output.pass_on(TURN)
            last, turn = turn, time.monotonic()
            if turn - last > LONG_TURN:
                self.alive_at += turn - last
            if self.signals.are_to_end_at_once:
                return self.end_at_once()
            if time.monotonic() - looked > LOOK or self.signals and not self.is_asked:
                looked = time.monotonic()
                status = self.take_turn()
                if status is not None:
                    return status
            if self.hangs():
                return self.give_up(f"no rank has shown a sign of life for {self.options.deadline:g} s while mpirun kept running")
        self.look()
        self.leftovers.clean_up([self.mpirun.pid], self.ranks)
        if self.has_hosts:
            self.ranks += read_others(self.folder.glob("rank-*"), self.program, self.ranks, self.mpirun.pid, self.begun)
        status = self.status_by_mpirun()
        self.cause = f"mpirun returned {status}" + self.verdict()
        return status

    def take_turn(self):
        """Performs one round of checks. Returns the exit status if it ends the job, and None otherwise."""
        self.look()
        if self.signals and self.has_nothing_to_save():
            if not self.is_asked:
                say(f"{self.signals.name}: the ranks have nothing to save yet; the job is ended at once")
            return self.end_at_once()
        self.ask_to_end()
        self.make_room()
        self.let_mpirun_wait()
        if self.waits_in_vain():
            return self.give_up("mpirun waits for ranks that are cut off")
        if self.has_lost_one_at_start():
            return self.give_up("a rank has died before all had started")
        return None

    def has_nothing_to_save(self):
        """True while the ranks have not yet come together in MPI_Init."""
        if self.ranks or self.has_hosts:
            return any(rank.is_starting and rank.is_here for rank in self.ranks)
        return not self.is_asked and not self.has_rank_processes()

    def has_rank_processes(self):
        return any(b"OMPI_COMM_WORLD_RANK=" in environ for _, environ in self.leftovers.processes())

    def end_at_once(self):
        self.kill()
        return self.signals.status

    def ask_to_end(self):
        """Asks the ranks to end after a signal. Does so only once."""
        if not self.signals or self.is_asked:
            return
        self.is_asked = True
        # Ranks that make room have the signal already, and a second one would end them before they save.
        if not self.makes_room:
            self.forward(self.signals[0])
        say(self.signals.promise())

    def give_up(self, cause):
        self.cause = cause + self.verdict()
        say(f"{self.cause}; the job is killed")
        self.kill()
        return self.status_of_ranks()

    def make_room(self):
        """Asks the ranks to end for a restart if missing ranks can come back."""
        if not self.rejoining or self.makes_room or self.signals or not self.rejoining.is_due(self.ranks, self.can_save()):
            return
        self.makes_room = True
        say(f"{judge(self.ranks).sentence}; the ranks finish their step and save, and all start again from there")
        self.forward(signal.SIGTERM)

    def can_save(self):
        """True if the run has an output.dir: the ranks keep their events there, or have reported a
        checkpoint."""
        return any(path.is_symlink() for path in self.folder.glob("rank-*")) or any(rank.saved for rank in self.ranks)

    def has_lost_one_at_start(self):
        """True if a rank died before all have started. The other ranks would wait for it in MPI_Init, and
        with --survive mpirun does not end them."""
        is_lost = any(rank.is_starting and rank.is_here and not rank.process_state() and not rank.has_ended for rank in self.ranks)
        if not is_lost or not self.options.survive:
            self.lost_at = None
        elif self.lost_at is None:
            self.lost_at = time.monotonic()
        return self.lost_at is not None and time.monotonic() - self.lost_at > GRACE

    def went_on(self):
        """True if ranks on several hosts have continued without lost ranks. The host of a lost rank may be
        lost, too."""
        return self.has_hosts and any(rank.survived for rank in self.ranks)

    def let_mpirun_wait(self):
        if self.went_on() and not self.keeps_waiting:
            self.keeps_waiting = True
            keep_waiting(self.mpirun.pid)

    def waits_in_vain(self):
        """True if mpirun waits for ranks that are cut off, of whose end it never hears."""
        have_ended = all(rank.last(Kind.END) or not rank.process_state() for rank in self.ranks)
        if not self.went_on() or not have_ended or not those_cut_off(self.ranks):
            self.ended_at = None
        elif self.ended_at is None:
            self.ended_at = time.monotonic()
        return self.ended_at is not None and time.monotonic() - self.ended_at > TO_END

    def status_by_mpirun(self):
        """Returns the exit status of mpirun, unless the ranks or a signal give a better one."""
        status = self.mpirun.returncode if self.mpirun.returncode >= 0 else 128 - self.mpirun.returncode
        is_told = status != 0 or not self.options.survive
        is_of_signal = self.asked and (not is_told or status == 128 + PASSED_ON[self.asked] or self.has_asked_mpirun and status != 0)
        if is_of_signal and not any(rank.last(Kind.END) for rank in self.ranks):
            return 128 + self.asked  # the signal came before the ranks could record it
        return status if is_told else self.status_of_those_that_ended()

    def status_of_ranks(self):
        """Returns the exit status that the ended ranks recorded. Without --survive, returns 1 if a rank has
        recorded none."""
        cut_off = those_cut_off(self.ranks)
        ends = [rank.last(Kind.END) for rank in self.ranks if rank not in cut_off]
        if not self.options.survive and (len(ends) < max([self.started, *(rank.ranks for rank in self.ranks)]) or None in ends):
            return 1
        return max((end.number for end in ends if end), default=1)

    def status_of_those_that_ended(self):
        """Returns the exit status of a job for which mpirun returned 0. mpirun ignores ranks that a signal
        killed, so the ranks' events decide if there are any."""
        are_all_seen = len(self.ranks) >= self.started if self.has_hosts else self.ranks
        if are_all_seen or any(rank.last(Kind.END) for rank in self.ranks):
            return self.status_of_ranks()
        if self.has_hosts:
            say(f"mpirun returned 0, as it also does if a signal has killed all ranks; {len(self.ranks)} of {self.started} are visible from here, and none of them has reached its end")
        return 0

    def may_have_saved(self):
        """True if a rank whose events cannot be seen here may have saved a checkpoint. No rank saves before
        all have started."""
        return len(self.ranks) < self.started and not any(rank.is_starting for rank in self.ranks)

    def verdict(self):
        return f": {judge(self.ranks).sentence}" if self.ranks else ""

    def look(self):
        """Reads the event files, and notes signs of life: new events of a starting rank, a new beat of any
        other."""
        for path in self.folder.glob("rank-*"):
            with contextlib.suppress(OSError, ValueError):
                if path.name not in self.files:
                    # The file stays open, because somebody may remove the folder of output.
                    self.files[path.name] = open_events(path)
        for name, file in self.files.items():
            # A file that cannot be read now keeps its last contents.
            with contextlib.suppress(OSError, ValueError):
                self.seen[name] = Rank(file)
        self.ranks = [self.seen[name] for name in sorted(self.seen)]
        self.has_seen_ranks = bool(self.ranks)
        life = [(rank.rank, rank.process, rank.is_starting or rank.beat) for rank in self.ranks]
        if life != self.life:
            self.life, self.alive_at = life, time.monotonic()

    def hangs(self):
        if time.monotonic() - self.alive_at <= self.options.deadline:
            return False
        # The ranks may keep no events, or run on machines whose files cannot be seen here.
        if not self.ranks and (not self.are_seen or self.has_rank_processes()):
            self.alive_at = time.monotonic()
            return False
        if self.options.survive and self.ranks and len(self.ranks) < self.started and not any(rank.has_ended or rank.process_state() for rank in self.ranks):
            self.alive_at = time.monotonic()  # the ranks that are not seen may have continued without these
            return False
        return True

    def forward(self, number):
        """Sends the signal to the ranks themselves, because mpirun would kill them after a few seconds. Sends
        it to all of them: a serving rank leaves a signal to the other ranks. If some ranks are not seen
        here, mpirun gets a signal instead that it only forwards (training/loop/signals.h)."""
        self.asked = meant_by(number)
        self.look()
        if self.has_hosts and len(self.ranks) < self.started:
            return self.mpirun.send_signal(PASSED_ON[self.asked])
        here = [rank for rank in self.ranks if rank.is_here and rank.process_state()]
        for rank in here:
            # A batch system may have sent it already, and a second one would end the ranks at once.
            if not rank.last(Kind.SIGNAL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank.process, self.asked)
        have_ended = self.ranks and all(rank.last(Kind.END) for rank in self.ranks)
        if not here and not have_ended:
            self.has_asked_mpirun = True
            self.mpirun.send_signal(self.asked)

    def kill(self):
        self.mpirun.kill()  # an mpirun that hangs ignores weaker signals
        self.mpirun.wait()
        self.look()
        self.leftovers.clean_up([self.mpirun.pid], self.ranks)
