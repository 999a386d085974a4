"""The reader of tools/run's output may go away, be slow, or stop: the run continues."""

import shutil
import signal
import subprocess
import time

import support
from launching import ENDLESS, LaunchTest
from support import SOURCE

import events  # noqa: E402


class Reader(LaunchTest):

    def check_goes_on(self, redirection, ends=0):
        """Runs to the end, with this redirection of the output."""
        words = [SOURCE / "tools/run", "-n", 2, *self.command("mlp", *self.iris("output.dir=run", "training.epochs=100"))]
        script = f'"$@" {redirection}; exit ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", script, "-", *map(str, words)], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, ends, done.stdout + done.stderr)
        self.assertEqual(self.checkpoint("run").name, "checkpoint-001500")
        shutil.rmtree(self.folder / "run")
        return done

    def test_that_goes_away(self):
        self.assertEqual(len(self.check_goes_on("| head -1").stdout.splitlines()), 1)
        self.check_goes_on("2>&1 | head -1")
        self.check_goes_on("2>&1 | (sleep 0.5; true)")
        self.check_goes_on("> /dev/full 2>&1")
        self.check_goes_on(">&-")
        self.check_goes_on(">&- 2>&-")

    def test_that_takes_its_time(self):
        """In the end the reader gets everything."""
        run = self.start("-n", 1, "seq", 100_000)
        time.sleep(1)
        self.assertEqual(self.end(run, 0), [])
        self.assertEqual(self.all_output, "".join(f"{i}\n" for i in range(1, 100_001)))

    def test_that_has_stopped_reading_when_a_signal_comes(self):
        run = self.start("-n", 1, "bash", "-c", "seq 100000; touch printed; exec sleep 1000")
        time.sleep(1)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 143)

    def test_one_for_output_and_errors_that_has_stopped_reading_when_a_signal_comes(self):
        command = [SOURCE / "tools/run", "-n", "1", "bash", "-c", "seq 100000; exec sleep 1000"]
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True) as run:
            time.sleep(1)
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(timeout=60), 143)

    def test_one_for_output_and_errors(self):
        """Output and errors come in the order in which mpirun has written them."""
        self.stub("for i in {1..200}; do echo $i; echo $i >&2; done")
        done = subprocess.run([SOURCE / "tools/run", "-n", "1", "true"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)
        self.assertEqual(done.stdout.split(), [str(i) for i in range(1, 201) for _ in range(2)])

    def test_none(self):
        """The launcher is killed. mpirun is not affected, and lets the ranks save."""
        run = self.start("-n", 2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        run.kill()
        self.wait_for(lambda: self.processes() == [])
        self.assertEqual({rank.step for rank in self.ranks()}, {int(self.checkpoint("run").name.split("-")[1])})
        self.assertEqual({rank.last(events.Kind.SIGNAL).number for rank in self.ranks()}, {signal.SIGTERM})


if __name__ == "__main__":
    support.main()
