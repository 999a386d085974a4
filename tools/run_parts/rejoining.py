"""Decides when missing ranks are worth a restart of all ranks, from a checkpoint that the others save for it.
"""

import math
import threading
import time

SETTLED = 0.5  # seconds to wait after a death: its cause often kills other ranks of the same host, too
CALM = 60  # seconds before used spares are replaced, which is not urgent, or hosts are asked again
REST = 600  # seconds without a restart, if ranks come back only to die again


class Rejoining:
    """Lives as long as the run. `wanted` is the number of all ranks, spares included. `limit` is the largest
    number of starts in a row in which a rank dies within CALM of the first step. `places` returns how many
    ranks could be started now; it runs in a thread, because it takes seconds if a host does not answer.
    `say` prints a sentence for the user."""

    def __init__(self, wanted, limit, places, say):
        self.wanted, self.limit, self.places, self.say = wanted, limit, places, say
        self.short_starts = 0  # number of short starts in a row
        self.has_warned = False
        self.asking, self.found = None, 0

    def begin(self, started, spares):
        """Call it before each start, with its number of ranks. Joins the thread, because a fork with running
        threads is not safe."""
        if self.asking:
            self.asking.join()
        self.asking = None
        self.started = self.left = started
        self.spares, self.due_at = spares, time.monotonic() + CALM
        self.calm_at = math.inf  # set at the first step
        self.rests_until = -math.inf

    def is_due(self, ranks, can_save):
        """Returns true if all ranks should restart now. Call it regularly. `ranks` are the ranks as read from
        their events; those that survived a death report how many are left. `can_save` is true if there is
        a checkpoint or a folder for one."""
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
        """Counts starts in which a rank dies soon after the first step. Called as long as no rank of this
        start has died."""
        if now >= self.calm_at:
            self.short_starts = 0
        elif left < self.left:
            self.short_starts += 1
            if self.short_starts > self.limit:
                self.rests_until = now + REST
                starts = "start" if self.short_starts == 1 else "starts in a row"
                self.say(f"in {self.short_starts} {starts} a rank has died within {CALM} s of the first step; "
                         f"the others continue without it, and no rank is started again for {REST // 60} minutes")

    def has_place_for_more(self, now):
        if self.asking is None:
            self.asking, self.found = threading.Thread(target=self.ask, daemon=True), 0
            self.asking.start()
            self.asking.join(0.1)  # without hosts to ask, the answer comes at once
        if self.asking.is_alive():
            return False
        self.asking = None
        self.due_at = now + CALM
        return self.found > self.left

    def ask(self):
        self.found = self.places()
