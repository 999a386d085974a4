"""Tests the files of tools/deploy: the batch files start ranks, and the recipes of containers name existing
files.

Neither Slurm nor containers are needed: a fake srun starts the ranks by mpirun.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import unittest.mock

import support
from support import BUILD, SOURCE, ProgramTest

DEPLOY = SOURCE / "tools/deploy"
BATCH_FILES = ("srun.sbatch", "mpirun.sbatch")
RECIPES = ("Dockerfile", "plexaura.def")
PACKAGES = ("Plexaura-0.1.0.eb", "conanfile.py")
SRUN = """#!/bin/bash
own=()
while [[ $1 == -* ]]; do own+=("$1"); shift; done
echo "${own[*]}" > srun_options
exec mpirun -n 2 "$@"
"""


class BatchFiles(ProgramTest):
    @unittest.skipUnless(support.HAS_MPI, "built without MPI")
    def test_they_start_the_ranks(self):
        srun = self.write("bin/srun", SRUN)
        srun.chmod(0o755)
        (self.folder / "tools").symlink_to(SOURCE / "tools")  # the folder in which the job is submitted
        environment = support.mpi_environment()
        environment.update(PATH=f"{srun.parent}:{environment['PATH']}", SLURM_NTASKS="2", SLURM_CPUS_PER_TASK="3")
        for name in BATCH_FILES:
            submit = [DEPLOY / name, BUILD / "models/mlp", *self.iris("training.epochs=2", f"output.dir={name}.run")]
            def says(*options):
                done = subprocess.run(list(map(str, [*submit, *options])), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"samples of 3 classes.*, 2 ranks\n", name)
                return done.stdout
            self.assertIn("starting afresh", says("--steps", "3"))
            self.assertIn("resumed from the newest checkpoint", says(), "submitted again")
            self.assertNotIn("resumed", says("--replace"))
        self.assertEqual((self.folder / "srun_options").read_text(), "--mpi=pmix --cpus-per-task=3 --cpu-bind=cores\n")

    def test_resume_is_added_to_what_trains(self):
        """--resume must not be added if the programs refuse it beside another option, or if the option begins
        a new run. All options in these files must be options of the programs."""
        (self.folder / "tools").symlink_to(SOURCE / "tools")
        for launcher in ("srun", "mpirun"):
            self.write(f"bin/{launcher}", "#!/bin/bash\nprintf '%s\\n' \"$@\"\n").chmod(0o755)
        environment = os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "SLURM_NTASKS": "2", "SLURM_CPUS_PER_TASK": "3"}
        values = self.values_of_options()
        refused = {option for option, value in values.items() if self.refuses_to_resume(option, value)}
        self.assertIn("--evaluate", refused)
        for name in BATCH_FILES:
            named = set(re.findall(r"--[a-z-]+", re.search(r"^case .*?^esac$", (DEPLOY / name).read_text(), re.M | re.S)[0]))
            self.assertLessEqual(named, set(values))
            self.assertLessEqual(refused, named)

            for option, value in values.items():
                for words in ([option, value], [f"{option}={value}"]) if value else ([option],):
                    command = ["bash", DEPLOY / name, "mlp", "iris.yaml", *words]
                    started = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
                    added = started[started.index("iris.yaml") + 1 + len(words):]
                    self.assertEqual(added, [] if option in named else ["--resume"], (name, words))

    def values_of_options(self):
        """Returns the options of the programs, each with a value, or with "" if it takes none."""
        text = subprocess.run([BUILD / "models/mlp", "--help"], capture_output=True, text=True, check=True).stdout
        return {option: value and "1" for option, value in re.findall(r"^  (--[a-z-]+)(?: ([A-Z]+)\S*)?", text, re.M)}

    def refuses_to_resume(self, option, value):
        words = [BUILD / "models/mlp", "missing.yaml", option, *value, "--resume"]
        return "leave out --resume" in subprocess.run(words, cwd=self.folder, capture_output=True, text=True).stderr

    def test_what_slurm_is_asked_for(self):
        # The signal goes to the ranks or to mpirun. mpirun gives the ranks its timeout twice, which must be
        # less than the remaining time.
        expected = {"srun.sbatch": ("TERM@180", []), "mpirun.sbatch": ("B:TERM@300", ["120"])}
        self.assertEqual(tuple(expected), BATCH_FILES)
        for name, (signal, seconds) in expected.items():
            text = (DEPLOY / name).read_text()
            asked = dict(line[len("#SBATCH --"):].split("=", 1) for line in text.splitlines() if line.startswith("#SBATCH"))
            self.assertEqual(set(asked), {"job-name", "output", "nodes", "ntasks-per-node", "cpus-per-task", "time", "signal", "open-mode"})
            self.assertEqual(asked["signal"], signal)
            self.assertEqual(asked["open-mode"], "append")
            self.assertEqual(re.findall(r"^export OMPI_MCA_odls_base_sigkill_timeout=\$\{OMPI_MCA_odls_base_sigkill_timeout:-(\d+)\}$", text, re.M), seconds)

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck_finds_nothing(self):
        done = subprocess.run(["shellcheck", "-x", *BATCH_FILES, "-P", SOURCE], cwd=DEPLOY, capture_output=True, text=True)
        self.assertEqual(done.stdout, "")


class Recipes(unittest.TestCase):
    def test_they_take_along_what_is_built(self):
        built = re.findall(r"^\s*add_subdirectory\((\w+)\)", (SOURCE / "CMakeLists.txt").read_text(), re.M)
        for name in RECIPES:
            text = (DEPLOY / name).read_text()
            taken = re.findall(r"^(?:COPY|   ) +(\w+) (?:\w+|/opt/plexaura/)$", text, re.M)
            self.assertEqual(set(built) - {"tests"} - set(taken), set(), name)
            self.assertEqual([path for path in taken if not (SOURCE / path).is_dir()], [], name)

    def test_their_commands_name_what_there_is(self):
        presets = [preset["name"] for preset in json.loads((SOURCE / "CMakePresets.json").read_text())["configurePresets"]]
        options = re.findall(r"^option\((\w+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)
        for name in RECIPES:
            text = (DEPLOY / name).read_text()
            self.assertLessEqual(set(re.findall(r"--preset (\S+)", text)), set(presets))
            self.assertLessEqual(set(re.findall(r"-D (\w+)=", text)), set(options))
            targets = re.search(r"--target (.+)", text)[1].split()
            self.assertEqual([target for target in targets if not (BUILD / "models" / target).is_file() and
                                                               f"add_custom_target({target} " not in (SOURCE / "app/CMakeLists.txt").read_text()], [])
            self.assertIn("tools/install_packages build", text)

    def test_packages_have_the_version_of_the_sources(self):
        version = re.search(r"^project\(\w+ VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
        for name in PACKAGES:
            self.assertEqual(re.findall(r"^ *version = ['\"](.+)['\"]$", (DEPLOY / name).read_text(), re.M), [version], name)
        self.assertTrue((DEPLOY / f"Plexaura-{version}.eb").is_file())
        self.assertIn(f"plexaura/{version}\n", (SOURCE / "tests/package/conanfile.txt").read_text())

    def test_packages_require_what_a_build_needs(self):
        """The packages require all that the build and the installed programs need, without the needs of tests and of the compiler's cache."""
        build = re.search(r'^build="(.*?)"$', (SOURCE / "tools/install_packages").read_text(), re.M | re.S)[1].split()
        for name in PACKAGES:
            required = re.search(r"(?:osdependencies = |install\()\[(.*?)\]", (DEPLOY / name).read_text(), re.S)[1]
            self.assertEqual(set(re.findall(r"['\"]([^'\"]+)['\"]", required)), set(build) - {"ccache", "doctest-dev", "python3-venv"}, name)

    def test_the_examples_name_what_there_is(self):
        """Checks the commands in the first lines of each file: their files must exist, and the programs must
        have their options."""
        options = re.findall(r"--[a-z-]+", subprocess.run([BUILD / "models/mlp", "--help"], capture_output=True, text=True).stdout)
        for path in DEPLOY.iterdir():
            examples = [shlex.split(line[1:]) for line in path.read_text().splitlines() if line.startswith("#   ")]
            self.assertTrue(examples, path)
            for words in examples:
                program = next((at for at, word in enumerate(words) if re.search(r"(^|/)(mlp|resnet)$", word)), len(words))
                self.assertLessEqual({word for word in words[program:] if word.startswith("--")}, set(options))
                for word in words:
                    file = word.split("=")[-1].removeprefix("/opt/plexaura/")
                    if re.match("(tools|models|build)/", file):
                        place = BUILD / file.removeprefix("build/") if file.startswith("build/") else SOURCE / file
                        self.assertTrue(place.is_file(), word)


@unittest.skipUnless(support.HAS_MPI, "built without MPI")
class Apart(ProgramTest):
    """Processes that a launcher has started as ranks, but that MPI does not connect."""

    def test_they_do_not_train_apart(self):
        for variables, source in (({"PMI_RANK": "1", "PMI_SIZE": "2"}, "PMI_SIZE"), ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "SLURM_STEP_NUM_TASKS")):
            with unittest.mock.patch.dict(os.environ, variables):
                said = self.run_one("mlp", *self.iris("output.dir=run", "training.epochs=1"), status=2).err
            self.assertIn(f"{source} says that 2 ranks were started, but MPI connects 1 of them (", said)
            self.assertFalse((self.folder / "run/checkpoint-000015").exists())


if __name__ == "__main__":
    support.main()
