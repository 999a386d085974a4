"""Changes the TCP connections from mpirun to its daemons on other hosts."""

import contextlib
import ctypes
import os
import pathlib
import socket

PIDFD_GETFD = 438  # number of the system call, the same on all processors
AS_LONG_AS_CAN_BE = (1 << 31) - 1  # the longest possible timeout in milliseconds, 24 days


def files_of(process):
    """Yields copies of the open sockets of a child process."""
    pidfd = os.pidfd_open(process)
    try:
        for path in pathlib.Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):  # the file was closed meanwhile
                if os.readlink(path).startswith("socket:"):
                    file = ctypes.CDLL(None).syscall(PIDFD_GETFD, pidfd, int(path.name), 0)
                    if file >= 0:
                        yield socket.socket(fileno=file)
    finally:
        os.close(pidfd)


def keep_waiting(process):
    """Makes mpirun wait for a host that is cut off. Otherwise the system would report the lost connection 8
    minutes after the last message from there, or a quarter of an hour after one sent there, and mpirun
    would end the whole job. This is what still happens where the system forbids the change, as in some
    containers."""
    with contextlib.suppress(OSError):
        for link in files_of(process):
            with link, contextlib.suppress(OSError):  # fails for sockets that are not TCP
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, AS_LONG_AS_CAN_BE)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)
