"""Attacks without a key: on the port and on the file of a parameter server whose clients are jobs of their
own."""

import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import unittest

import support
from visiting import ENDLESS, MLP, VisitTest

NOBODY = 65534
PYTHON = shutil.which("python3", path=os.defpath) or sys.executable  # a Python that other users may run, too
# The bytes that a client sends first. It sends more only after the other end has proven to know the key.
GREETING_BYTES = 36
# A letter in plain text, as clients of the first version sent it: sign, word, bytes of content, version,
# number, steps, two times.
HEAD = struct.Struct("<IIQqqqdd")
SIGN, ASK, REFUSED = 0x31786C70, 0, 7
# Listens at a port as soon as it is free, records what it receives, and answers with the given bytes.
IMPOSTOR = """
import socket, sys, time
port, log, answer = int(sys.argv[1]), sys.argv[2], bytes.fromhex(sys.argv[3])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
while True:
    try:
        listener.bind(("127.0.0.1", port))
        break
    except OSError:
        time.sleep(0.01)
listener.listen()
while True:
    connection, _ = listener.accept()
    connection.settimeout(1)
    connection.sendall(answer)
    came = b""
    try:
        while part := connection.recv(1 << 16):
            came += part
    except OSError:
        pass
    with open(log, "a") as file:
        print(came.hex(), file=file)
"""


class SiegeTest(VisitTest):
    def wait_until_served(self):
        """Returns port and key."""
        path = self.folder / "server"
        self.wait_for(lambda: path.is_file() and path.read_text().endswith("\n"))
        _, port, key = path.read_text().split()
        return int(port), key

    def limited(self, descriptors):
        return ("bash", "-c", f'ulimit -n {descriptors} && exec "$0" "$@"', MLP)

    def knock(self, port):
        return socket.create_connection(("127.0.0.1", port), timeout=30)


class Strangers(SiegeTest):
    def besiege(self, descriptors, strangers):
        """Opens many connections. The server, which saves all the time, must go on, and a client must be able
        to join."""
        server = self.serve("output.every=1", program=self.limited(descriptors), options=("--clients", 2))
        port, _ = self.wait_until_served()
        client = self.join(ENDLESS)
        self.wait_until_said(server, "clients that are there: 1")
        with contextlib.ExitStack() as stack:
            for _ in range(strangers):
                with contextlib.suppress(OSError):
                    stack.enter_context(self.knock(port))
            self.wait_for_pushes(20)
            self.assertLess(len(os.listdir(f"/proc/{server.pid}/fd")), 64)
            self.end(self.join("training.epochs=2"), 0)
        self.stop(client)
        said = self.end(server, 0)
        self.assertLess(said.count("was turned away"), 4, said)

    def test_more_connections_than_the_server_may_have(self):
        self.besiege(descriptors=256, strangers=400)

    def test_with_few_descriptors(self):
        self.besiege(descriptors=40, strangers=100)

    def test_letters_of_other_programs(self):
        server = self.serve()
        port, _ = self.wait_until_served()
        before = self.memory(server)
        for letter in (b"GET / HTTP/1.1\r\n\r\n" * 10, bytes(1000), b"\xff" * 100_000, b"plx2" + bytes(32), b"plx2" + b"\x09" * 200):
            with self.knock(port) as stranger, contextlib.suppress(ConnectionError):
                stranger.sendall(letter)
                while stranger.recv(1 << 16):
                    pass
        self.assertLess(self.memory(server) - before, 20)
        self.end(self.join("training.epochs=2"), 0)
        self.end(server, 0)

    def memory(self, process):
        """Returns the memory in MB of a process that must still be running."""
        return int((pathlib.Path("/proc") / str(process.pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    def test_a_client_of_the_first_build(self):
        server = self.serve()
        port, _ = self.wait_until_served()
        with self.knock(port) as client:
            client.sendall(HEAD.pack(SIGN, ASK, 32, 0, 0, 0, 0, 0) + b"0" * 32)
            answer = b""
            while part := client.recv(1 << 12):
                answer += part
        head = HEAD.unpack_from(answer)
        self.assertEqual(head[:3], (SIGN, REFUSED, len(answer) - HEAD.size))
        self.assertIn(b"build this client from the same sources", answer)
        self.wait_until_said(server, "was turned away: it is of an earlier build of Plexaura; build it from the same sources as the server")
        self.end(self.join("training.epochs=2"), 0)
        self.end(server, 0)


class Impostors(SiegeTest):
    def take_the_port(self, port, answer=b""):
        """Starts an impostor at the port, as another user if possible."""
        log = self.folder / "impostor"
        log.touch()
        log.chmod(0o666)
        self.folder.chmod(0o755)
        user = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        impostor = subprocess.Popen([*user, PYTHON, "-c", IMPOSTOR, str(port), str(log), answer.hex()])
        self.addCleanup(lambda: (impostor.kill(), impostor.wait()))
        return log

    def test_the_port_of_a_killed_server_is_taken(self):
        """The impostor must get neither key nor weights, and clients must not accept its answers."""
        for answer in (b"", bytes(1 << 15), b"\x70\x6c\x78\x31" * 1000):
            with self.subTest(answer=answer[:4]):
                server = self.serve("output.every=1", options=("--replace",))
                port, key = self.wait_until_served()
                client = self.join(ENDLESS)
                self.wait_until_said(server, "clients that are there: 1")
                self.wait_for(lambda: self.newest() > 0)
                log = self.take_the_port(port, answer)
                server.kill()
                server.wait()
                self.wait_for(lambda: log.read_text())
                came = [bytes.fromhex(line) for line in log.read_text().split()]
                self.assertTrue(all(len(each) <= GREETING_BYTES and key.encode() not in each for each in came), came)
                self.assertIsNone(client.poll())
                server = self.serve("output.every=1", options=("--resume",))
                self.wait_until_said(client, "the server of server is back, and this is its client 1")
                self.wait_for_pushes(5)
                self.stop(client)
                self.end(server, 0)
                log.unlink()

    def test_it_stays(self):
        server = self.serve()
        port, _ = self.wait_until_served()
        client = self.join(ENDLESS, deadline=4)
        self.wait_until_said(server, "clients that are there: 1")
        self.take_the_port(port, bytes(range(256)))
        server.kill()
        server.wait()
        self.assertRegex(self.end(client, 1, within=60), r"--join: server names no server any more that answered within 4 s \(at 127\.0\.0\.1, port \d+: [^)]*\); see whether the server runs")


class Files(SiegeTest):
    def refuse(self, name, said):
        self.assertEqual(self.run_one("mlp", *self.settings_of_run(), "--serve", name, status=2).text, said)

    def test_links(self):
        target = self.write("target", "")
        target.chmod(0o600)
        (self.folder / "link").symlink_to(target)
        (self.folder / "second").hardlink_to(target)
        self.refuse("link", "--serve: 'link' is a link, and the key would be written to the file that it names; name a file that is not a link\n")
        self.refuse("second", "--serve: 'second' has a second name, by which others might read the key; remove it, or name another file\n")
        self.assertEqual(target.read_text(), "")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a file of another user")
    def test_a_file_of_another_user(self):
        path = self.write("server", "")
        path.chmod(0o666)
        os.chown(path, NOBODY, NOBODY)
        self.refuse("server", "--serve: 'server' belongs to another user, who could read the key; remove it, or name another file\n")
        self.assertEqual(path.read_text(), "")

    def test_a_file_that_others_may_read(self):
        """Another user may have opened the file already."""
        path = self.write("server", "")
        path.chmod(0o644)
        self.refuse("server", "--serve: 'server' is open to other users, who could read the key; remove it, or name another file\n")
        self.assertEqual(path.read_text(), "")

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_another_user_cannot_read_the_key(self):
        self.folder.chmod(0o755)
        server = self.serve()
        self.wait_until_served()
        read = subprocess.run(["setpriv", f"--reuid={NOBODY}", "--clear-groups", "cat", self.folder / "server"], capture_output=True, text=True)
        self.assertIn("Permission denied", read.stderr)
        self.assertEqual(read.stdout, "")
        self.end(self.join("training.epochs=2"), 0)
        self.end(server, 0)


class Addresses(SiegeTest):
    def listening(self, port):
        """Returns the addresses at which the port is listened to, in the form of /proc."""
        rows = [line.split()[1:4] for table in ("tcp", "tcp6") if os.path.exists(f"/proc/net/{table}")
                for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
        return {local.split(":")[0] for local, _, state in rows if state == "0A" and int(local.split(":")[1], 16) == port}

    def test_only_this_host_by_default(self):
        server = self.serve()
        port, _ = self.wait_until_served()
        self.assertEqual(self.listening(port), {"0100007F"})
        self.wait_until_said(server, f"serving at 127.0.0.1, port {port}; clients join with --join server")
        self.end(self.join("training.epochs=2"), 0)
        self.end(server, 0)

    def test_a_chosen_address_and_port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            chosen = probe.getsockname()[1]
        for address in ("127.0.0.2", "localhost", "0.0.0.0", "::1", "::"):
            if ":" in address and not os.path.exists("/proc/net/if_inet6"):
                continue
            with self.subTest(address=address):
                server = self.serve(options=("--address", address, "--port", chosen, "--replace"))
                port, _ = self.wait_until_served()
                self.assertEqual(port, chosen)
                self.end(self.join("training.epochs=2"), 0)
                self.end(server, 0)

    def test_what_cannot_be_had(self):
        arguments = self.settings_of_run()
        said = self.run_one("mlp", *arguments, "--serve", "server", "--address", "192.0.2.1", status=2).text
        self.assertEqual(said, "--serve cannot listen at 192.0.2.1: Cannot assign requested address; give --address an address of this host, and --port a port that is free\n")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            said = self.run_one("mlp", *arguments, "--serve", "server", "--port", port, status=2).text
        self.assertEqual(said, f"--serve cannot listen at 127.0.0.1, port {port}: Address already in use; give --address an address of this host, and --port a port that is free\n")
        self.assertFalse((self.folder / "server").exists())


if __name__ == "__main__":
    support.main()
