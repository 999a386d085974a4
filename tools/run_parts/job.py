"""One start of mpirun: watches its ranks, ends them where they hang, and removes what they leave."""

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
SURVIVING = ("--with-ft", "ulfm")  # of mpirun: the other ranks live on when one dies
TURN = 0.05  # seconds between looks at mpirun and at signals
LOOK = 0.25  # seconds between looks at what the ranks tell
LONG_TURN = 2  # seconds, by which is known that this process, or the machine, was stopped
PASSED_ON = {signal.SIGINT: signal.SIGUSR2, signal.SIGTERM: signal.SIGUSR1}  # what mpirun takes for the ranks, and not for itself
TO_END = 10  # seconds that mpirun has to end when ranks that went on without others have ended
GRACE = 3  # seconds in which the other ranks end by themselves, with a sentence of their own, where they know of a death


def mpi_environment():
    command = ["bash", "-c", '. "$0" && env -0', TOOLS / "mpi_environment"]
    sourced = subprocess.run(command, stdout=subprocess.PIPE, check=True, start_new_session=True).stdout  # Ctrl-C does not reach it
    return dict(entry.split("=", 1) for entry in os.fsdecode(sourced).split("\0") if entry)


def end_with_launcher():
    """In mpirun: the system sends it SIGTERM, on which it ends its ranks, when this script is killed."""
    set_signal_of_parents_death = 1
    ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGTERM)


class Job:
    """One start of mpirun, in a session of its own: Ctrl-C reaches this script alone, which tells the ranks."""

    def __init__(self, options, starts, folder, signals, rejoining):
        self.options, self.folder, self.signals, self.started = options, folder, signals, starts.ranks
        self.are_seen = starts.are_seen  # so that a job of which nothing is seen does not live
        self.rejoining = rejoining
        if rejoining:
            rejoining.begin(starts.ranks, starts.spares)
        self.makes_room = self.has_made_room = False  # whether the ranks were asked to end for a start of all, and have
        self.files, self.seen, self.ranks, self.life, self.alive_at = {}, {}, [], None, time.monotonic()
        self.lost_at = None  # when a rank was missed before all had started
        self.program, self.begun, self.has_hosts = starts.program, time.time_ns(), bool(starts.hosts)
        self.has_seen_ranks = False  # while they were at work
        self.asked = 0  # the signal that was sent to the ranks
        self.has_asked_mpirun = False  # to end, for there was no rank to be asked
        self.is_asked = False  # whether the ranks were asked to end for a signal
        self.keeps_waiting = False  # mpirun, for hosts that are cut off
        self.ended_at = None  # when all ranks that went on without others were seen to have ended
        self.cause = ""
        for path in folder.iterdir():
            path.unlink()
        self.leftovers = Leftovers(folder)
        values = {"PLEXAURA_RUN": str(folder), "PLEXAURA_SHARED": self.leftovers.make_shared_folder(), "PLEXAURA_SPARES": str(starts.spares)}
        self.environment = dict(mpi_environment(), **values)
        places = ["--host", ",".join(map(str, starts.hosts_left))] if starts.hosts else []
        # The value that nothing reads marks the daemons of this job, too.
        surviving = SURVIVING if options.survive else ()
        exported = [word for name in values for word in ("-x", name)]
        command = ["mpirun", *surviving, "-n", str(starts.ranks), *exported, "--mca", "plexaura_run", str(folder), *places, *starts.program]
        self.output = Output(signals)
        self.mpirun = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_launcher, **self.output.of_child())
        self.output.has_started()

    def run(self):
        """Returns the exit status."""
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
                return self.give_up(f"no rank has shown a sign of life for {self.options.deadline:g} s while mpirun went on")
        self.look()
        self.leftovers.clean_up([self.mpirun.pid], self.ranks)
        if self.has_hosts:
            self.ranks += read_others(self.folder.glob("rank-*"), self.program, self.ranks, self.mpirun.pid, self.begun)
        status = self.status_by_mpirun()
        self.cause = f"mpirun returned {status}" + self.verdict()
        return status

    def take_turn(self):
        """Returns the exit status where it ends the job."""
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
        """Before all ranks have come together in MPI_Init."""
        if self.ranks or self.has_hosts:
            return any(rank.is_starting and rank.is_here for rank in self.ranks)
        return not self.is_asked and not self.has_rank_processes()

    def has_rank_processes(self):
        return any(b"OMPI_COMM_WORLD_RANK=" in environ for _, environ in self.leftovers.processes())

    def end_at_once(self):
        self.kill()
        return self.signals.status

    def ask_to_end(self):
        """Once."""
        if not self.signals or self.is_asked:
            return
        self.is_asked = True
        if not self.makes_room:  # they were told, and one more would end them before they have saved
            self.forward(self.signals[0])
        say(self.signals.promise())

    def give_up(self, cause):
        self.cause = cause + self.verdict()
        say(f"{self.cause}; the job is killed")
        self.kill()
        return self.status_of_ranks()

    def make_room(self):
        """Asks the ranks to end where that lets those which are missing come back."""
        if not self.rejoining or self.makes_room or self.signals or not self.rejoining.is_due(self.ranks, self.can_save()):
            return
        self.makes_room = True
        say(f"{judge(self.ranks).sentence}; the ranks finish their step and save, and all start again from there")
        self.forward(signal.SIGTERM)

    def can_save(self):
        """Whether there is an output.dir: the ranks keep their events there, or have told of a checkpoint."""
        return any(path.is_symlink() for path in self.folder.glob("rank-*")) or any(rank.saved for rank in self.ranks)

    def has_lost_one_at_start(self):
        """The others would wait for it in MPI_Init, and mpirun, which is to let them live on, would not end them."""
        is_lost = any(rank.is_starting and rank.is_here and not rank.process_state() and not rank.has_ended for rank in self.ranks)
        if not is_lost or not self.options.survive:
            self.lost_at = None
        elif self.lost_at is None:
            self.lost_at = time.monotonic()
        return self.lost_at is not None and time.monotonic() - self.lost_at > GRACE

    def went_on(self):
        """Without ranks that were lost, perhaps with their host."""
        return self.has_hosts and any(rank.survived for rank in self.ranks)

    def let_mpirun_wait(self):
        if self.went_on() and not self.keeps_waiting:
            self.keeps_waiting = True
            keep_waiting(self.mpirun.pid)

    def waits_in_vain(self):
        """mpirun never hears of the end of ranks that are cut off."""
        have_ended = all(rank.last(Kind.END) or not rank.process_state() for rank in self.ranks)
        if not self.went_on() or not have_ended or not those_cut_off(self.ranks):
            self.ended_at = None
        elif self.ended_at is None:
            self.ended_at = time.monotonic()
        return self.ended_at is not None and time.monotonic() - self.ended_at > TO_END

    def status_by_mpirun(self):
        """What mpirun has returned, unless the ranks or a signal tell more."""
        status = self.mpirun.returncode if self.mpirun.returncode >= 0 else 128 - self.mpirun.returncode
        is_told = status != 0 or not self.options.survive
        is_of_signal = self.asked and (not is_told or status == 128 + PASSED_ON[self.asked] or self.has_asked_mpirun and status != 0)
        if is_of_signal and not any(rank.last(Kind.END) for rank in self.ranks):
            return 128 + self.asked  # it came before the ranks could note it
        return status if is_told else self.status_of_those_that_ended()

    def status_of_ranks(self):
        """That of the ranks which have come to their end. Where none may be missing, all must have."""
        cut_off = those_cut_off(self.ranks)
        ends = [rank.last(Kind.END) for rank in self.ranks if rank not in cut_off]
        if not self.options.survive and (len(ends) < max([self.started, *(rank.ranks for rank in self.ranks)]) or None in ends):
            return 1
        return max((end.number for end in ends if end), default=1)

    def status_of_those_that_ended(self):
        """It is of no account to mpirun how ranks have ended that a signal has killed. What nobody has seen is as mpirun says."""
        are_all_seen = len(self.ranks) >= self.started if self.has_hosts else self.ranks
        if are_all_seen or any(rank.last(Kind.END) for rank in self.ranks):
            return self.status_of_ranks()
        if self.has_hosts:
            say(f"mpirun returned 0, as it also does where a signal has killed all ranks; {len(self.ranks)} of {self.started} are seen from here, and none that has come to its end")
        return 0

    def may_have_saved(self):
        """A checkpoint of which the ranks that are seen here do not tell. Nobody saves before all have started."""
        return len(self.ranks) < self.started and not any(rank.is_starting for rank in self.ranks)

    def verdict(self):
        return f": {judge(self.ranks).sentence}" if self.ranks else ""

    def look(self):
        """A rank that starts lives by what it tells, any other one by its beat."""
        for path in self.folder.glob("rank-*"):
            with contextlib.suppress(OSError, ValueError):
                if path.name not in self.files:
                    self.files[path.name] = open_events(path)  # kept open: somebody may remove the folder of output
        for name, file in self.files.items():
            with contextlib.suppress(OSError, ValueError):  # where it cannot be read now, what it said before counts
                self.seen[name] = Rank(file)
        self.ranks = [self.seen[name] for name in sorted(self.seen)]
        self.has_seen_ranks = bool(self.ranks)
        life = [(rank.rank, rank.process, rank.is_starting or rank.beat) for rank in self.ranks]
        if life != self.life:
            self.life, self.alive_at = life, time.monotonic()

    def hangs(self):
        if time.monotonic() - self.alive_at <= self.options.deadline:
            return False
        # They may be on machines whose files are not seen here, or keep no events.
        if not self.ranks and (not self.are_seen or self.has_rank_processes()):
            self.alive_at = time.monotonic()
            return False
        if self.options.survive and self.ranks and len(self.ranks) < self.started and not any(rank.has_ended or rank.process_state() for rank in self.ranks):
            self.alive_at = time.monotonic()  # the others may go on without these
            return False
        return True

    def forward(self, number):
        """To the ranks themselves: mpirun would give them no more than a few seconds. To all, for one that serves leaves it to the others.
        Those that are not seen here get it from mpirun, which passes on signals that mean nothing to itself (training/loop/signals.h)."""
        self.asked = meant_by(number)
        self.look()
        if self.has_hosts and len(self.ranks) < self.started:
            return self.mpirun.send_signal(PASSED_ON[self.asked])
        here = [rank for rank in self.ranks if rank.is_here and rank.process_state()]
        for rank in here:
            if not rank.last(Kind.SIGNAL):  # a batch system may have told them, and the same signal again would end them at once
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank.process, self.asked)
        have_ended = self.ranks and all(rank.last(Kind.END) for rank in self.ranks)
        if not here and not have_ended:
            self.has_asked_mpirun = True
            self.mpirun.send_signal(self.asked)

    def kill(self):
        self.mpirun.kill()  # one that hangs does not answer to less
        self.mpirun.wait()
        self.look()
        self.leftovers.clean_up([self.mpirun.pid], self.ranks)
