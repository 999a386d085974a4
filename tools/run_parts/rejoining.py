"""When ranks that are missing are worth a new start of all, from a checkpoint that the others save for it."""

import math
import threading
import time

SETTLED = 0.5  # seconds without another death: what has killed one rank often kills the others of its host
CALM = 60  # seconds until spares that are used up are filled again, which nobody misses yet, or hosts are asked again
REST = 600  # seconds without a new start, where ranks come back only to die again


class Rejoining:
    """Lives as long as the run. `wanted`: all ranks, spares included. `limit`: how many starts may follow each other in which a rank
    dies within CALM of the first step. `places` tells how many ranks could be started now, which takes seconds where a host does not
    answer: it is called in a thread. `say` takes a sentence for the user."""

    def __init__(self, wanted, limit, places, say):
        self.wanted, self.limit, self.places, self.say = wanted, limit, places, say
        self.short_starts = 0  # in a row
        self.has_warned = False
        self.asking, self.found = None, 0

    def begin(self, started, spares):
        """To be called before each start, of so many ranks. No thread is left then, with which it would not be safe to fork."""
        if self.asking:
            self.asking.join()
        self.asking = None
        self.started = self.left = started
        self.spares, self.due_at = spares, time.monotonic() + CALM
        self.calm_at = math.inf  # known from the first step on
        self.rests_until = -math.inf

    def is_due(self, ranks, can_save):
        """To be asked again and again, with what the ranks tell. Those that go on after a death tell how many are left.
        `can_save`: whether there is a checkpoint, or a place for one."""
        now = time.monotonic()
        if any(rank.step for rank in ranks):
            self.calm_at = min(self.calm_at, now + CALM)
            self.warn_unless(can_save)
        left = min((rank.left for rank in ranks if rank.left), default=self.left)
        if self.left == self.started:
            self.judge_start(now, left)
        missing = self.wanted - left
        if left < self.left:
            self.left, self.due_at = left, now + (SETTLED if missing > self.spares else CALM)
        if not can_save or not missing or now < max(self.due_at, self.rests_until):
            return False
        return self.has_place_for_more(now)

    def warn_unless(self, can_save):
        if can_save or self.has_warned:
            return
        self.has_warned = True
        self.say("ranks that die do not come back before a checkpoint is saved, and this run keeps nothing in output.dir; name a folder there")

    def judge_start(self, now, left):
        """In which nobody had died before."""
        if now >= self.calm_at:
            self.short_starts = 0
        elif left < self.left:
            self.short_starts += 1
            if self.short_starts > self.limit:
                self.rests_until = now + REST
                starts = "start" if self.short_starts == 1 else "starts in a row"
                self.say(f"in {self.short_starts} {starts} a rank has died within {CALM} s of the first step; "
                         f"the others go on without it, and nobody comes back for {REST // 60} minutes")

    def has_place_for_more(self, now):
        if self.asking is None:
            self.asking, self.found = threading.Thread(target=self.ask, daemon=True), 0
            self.asking.start()
            self.asking.join(0.1)  # where no host has to answer it is known at once
        if self.asking.is_alive():
            return False
        self.asking = None
        self.due_at = now + CALM
        return self.found > self.left

    def ask(self):
        self.found = self.places()
