"""The signals that ask tools/run to end."""

import signal

INTERRUPTS = (signal.SIGINT, signal.SIGUSR2)  # end a run with the status of Ctrl-C, all others with that of SIGTERM
SENT_AGAIN = (signal.SIGHUP, signal.SIGXCPU)  # by the system itself, as when a terminal is closed
NUMBERS = (*INTERRUPTS, *SENT_AGAIN, signal.SIGTERM, signal.SIGUSR1, signal.SIGQUIT, signal.SIGALRM)


def set_handler(handler):
    for number in NUMBERS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # which nohup leaves ignored
            signal.signal(number, handler)


def meant_by(number):
    return signal.SIGINT if number in INTERRUPTS else signal.SIGTERM


def status_after(number):
    """Of a run that was asked to end by this signal."""
    return 128 + meant_by(number)


class Asked(list):
    """The numbers of those that have come, in their order. The first one counts."""

    @property
    def name(self):
        return signal.Signals(self[0]).name

    @property
    def status(self):
        return status_after(self[0])

    @property
    def are_to_end_at_once(self):
        """The same one has come twice. Another one may be a warning that is followed by an order, as Slurm sends them."""
        return any(self.count(number) > 1 for number in self if number not in SENT_AGAIN)

    def promise(self):
        """What is said when it is heard."""
        again = "" if self[0] in SENT_AGAIN else f"; a second {self.name} ends them at once"
        return f"{self.name}: the ranks finish their step and save{again}"
