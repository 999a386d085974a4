"""Defines the signals that ask tools/run to end, and what they mean."""

import signal

# After these the exit status is that of Ctrl-C, after all others that of SIGTERM.
INTERRUPTS = (signal.SIGINT, signal.SIGUSR2)
# The system itself may send these twice, for example when a terminal is closed.
SENT_AGAIN = (signal.SIGHUP, signal.SIGXCPU)
NUMBERS = (*INTERRUPTS, *SENT_AGAIN, signal.SIGTERM, signal.SIGUSR1, signal.SIGQUIT, signal.SIGALRM)


def set_handler(handler):
    for number in NUMBERS:
        # nohup makes processes ignore SIGHUP, and that stays so
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def meant_by(number):
    return signal.SIGINT if number in INTERRUPTS else signal.SIGTERM


def status_after(number):
    """Returns the exit status of a run that this signal asked to end."""
    return 128 + meant_by(number)


class Asked(list):
    """The signals that have arrived, in this order. The first one determines the exit status."""

    @property
    def name(self):
        return signal.Signals(self[0]).name

    @property
    def status(self):
        return status_after(self[0])

    @property
    def are_to_end_at_once(self):
        """True if the same signal has arrived twice. Two different ones may be a warning and the order to
        end, as Slurm sends them."""
        return any(self.count(number) > 1 for number in self if number not in SENT_AGAIN)

    def promise(self):
        """Returns the line that tools/run prints when a signal arrives."""
        again = "" if self[0] in SENT_AGAIN else f"; a second {self.name} ends them at once"
        return f"{self.name}: the ranks finish their step and save{again}"
