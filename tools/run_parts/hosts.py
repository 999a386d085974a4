"""The hosts of a run, and how many ranks each may have."""

import concurrent.futures
import math
import pathlib
import re
import shlex
import socket
import subprocess

AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")  # of Open MPI 4 and 5
SECONDS_TO_ANSWER = 10  # of a host that is there


# What begins with "-" would be an option of ssh.
NAME = re.compile(r"\w[\w.-]*", re.ASCII)


class Mistake(Exception):
    """Of the user, in one sentence."""


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
    """'node1:4,node2': a host has one slot where it does not say more."""
    hosts = [re.fullmatch(r"([^:\s]+)(?::([1-9]\d*))?", word) for word in text.split(",")]
    if not all(host and NAME.fullmatch(host[1]) for host in hosts):
        raise Mistake(f"--host: '{text}' is no list of hosts; write NAME:SLOTS,NAME:SLOTS")
    return [Host(host[1], int(host[2] or 1)) for host in hosts]


def hosts_of_file(name):
    """Lines 'node1 slots=4', as mpirun reads them."""
    hosts = []
    try:
        lines = pathlib.Path(name).read_text().splitlines()
    except OSError as error:
        raise Mistake(f"--hosts: cannot read '{name}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Mistake(f"--hosts: '{name}' is no text; write lines NAME slots=NUMBER") from error
    for number, line in enumerate(lines, 1):
        line = line.split("#")[0].strip()
        match = re.fullmatch(r"(\S+)(?:\s+slots\s*=\s*([1-9]\d*))?", line)
        if line and not (match and NAME.fullmatch(match[1])):
            raise Mistake(f"{name}:{number}: '{line}' is no host; write NAME slots=NUMBER")
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
    """As many ranks as the slots that are left can take. Where there are more ranks than slots, a host that is gone costs its share."""
    if not gone:
        return ranks
    slots = sum(host.slots for host in hosts)
    left = slots - sum(host.slots for host in gone)
    return min(ranks, left) if ranks <= slots else math.ceil(ranks * left / slots)
