"""The links of mpirun to its daemons on other hosts."""

import contextlib
import ctypes
import os
import pathlib
import socket

PIDFD_GETFD = 438  # the system call, on all processors
AS_LONG_AS_CAN_BE = (1 << 31) - 1  # milliseconds, 24 days


def files_of(process):
    """Copies of those open files of a child that are connections."""
    pidfd = os.pidfd_open(process)
    try:
        for path in pathlib.Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.readlink(path).startswith("socket:"):
                    file = ctypes.CDLL(None).syscall(PIDFD_GETFD, pidfd, int(path.name), 0)
                    if file >= 0:
                        yield socket.socket(fileno=file)
    finally:
        os.close(pidfd)


def keep_waiting(process):
    """Lets mpirun wait for a host that is cut off. It would end the whole job when the system tells it, 8 minutes after the last word from
    there, or a quarter of an hour after it has sent something. Where the system forbids this, as some containers do, it does."""
    with contextlib.suppress(OSError):
        for link in files_of(process):
            with link, contextlib.suppress(OSError):  # not of TCP
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, AS_LONG_AS_CAN_BE)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)
