"""Reads the list of a run's hosts and of their slots, and finds the hosts that answer."""

import concurrent.futures
import math
import pathlib
import re
import shlex
import socket
import subprocess

AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")  # for Open MPI 4 and Open MPI 5
SECONDS_TO_ANSWER = 10  # for one host


# The name of a host must not begin with "-": ssh would take it for an option.
NAME = re.compile(r"\w[\w.-]*", re.ASCII)


class Mistake(Exception):
    """A mistake of the user, described in one sentence."""


class Host:
    def __init__(self, name, slots):
        self.name, self.slots = name, slots

    def __str__(self):
        return f"{self.name}:{self.slots}"

    def answers(self, environment):
        if self.name in ("localhost", socket.gethostname(), socket.gethostname().split(".")[0]):
            return True
        agent = shlex.split(next((environment[name] for name in AGENTS if name in environment), "ssh"))
        try:
            return subprocess.run([*agent, self.name, "true"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=SECONDS_TO_ANSWER).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def hosts_of_list(text):
    """Parses 'node1:4,node2'. A host without a number has one slot."""
    hosts = [re.fullmatch(r"([^:\s]+)(?::([1-9]\d*))?", word) for word in text.split(",")]
    if not all(host and NAME.fullmatch(host[1]) for host in hosts):
        raise Mistake(f"--host: '{text}' is not a list of hosts; write NAME:SLOTS,NAME:SLOTS")
    return [Host(host[1], int(host[2] or 1)) for host in hosts]


def hosts_of_file(name):
    """Parses lines like 'node1 slots=4', as mpirun does."""
    hosts = []
    try:
        lines = pathlib.Path(name).read_text().splitlines()
    except OSError as error:
        raise Mistake(f"--hosts: cannot read '{name}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Mistake(f"--hosts: '{name}' is not text; write lines NAME slots=NUMBER") from error
    for number, line in enumerate(lines, 1):
        line = line.split("#")[0].strip()
        match = re.fullmatch(r"(\S+)(?:\s+slots\s*=\s*([1-9]\d*))?", line)
        if line and not (match and NAME.fullmatch(match[1])):
            raise Mistake(f"{name}:{number}: '{line}' is not a host; write NAME slots=NUMBER")
        if line:
            hosts.append(Host(match[1], int(match[2] or 1)))
    if not hosts:
        raise Mistake(f"--hosts: '{name}' names no host")
    return hosts


def without_answer(hosts, environment):
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(hosts) or 1) as pool:
        answers = list(pool.map(lambda host: host.answers(environment), hosts))
    return [host for host, answer in zip(hosts, answers) if not answer]


def ranks_without(gone, hosts, ranks):
    """Returns how many ranks fit without the hosts `gone`: at most as many as the remaining slots. If there
    were more ranks than slots, the number shrinks in proportion to the slots."""
    if not gone:
        return ranks
    slots = sum(host.slots for host in hosts)
    left = slots - sum(host.slots for host in gone)
    return min(ranks, left) if ranks <= slots else math.ceil(ranks * left / slots)
