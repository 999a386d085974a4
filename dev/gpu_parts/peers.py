"""The stage `peers`: runs dev/compare_pytorch, in which PyTorch does the same work on the same GPU in turns
with ours."""

import json
import pathlib

from machine import modules_missing

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run_peers(stage, check):
    models = [model for model in check.sizes.peers if stage.wants(model)]
    missing = modules_missing(check.machine.python, "torch", "torchvision") if models else []
    if missing:
        stage.add("PyTorch", "skipped", detail=f"{check.machine.python} lacks {', '.join(missing)}; name another Python with --python")
        return
    for number, model in enumerate(models):
        if not stage.reaches(model):
            continue
        # Leaves time for the other models. The nets for digits come first and need little.
        limit = stage.left() - 5 if number + 1 == len(models) else stage.left() / 3
        found = check.data / f"peers-{model}.json"
        found.unlink(missing_ok=True)
        done = stage.run(model, [
            check.machine.python, SOURCE / "dev/compare_pytorch", "--device", check.peer_device, "--modes-of", "cuda", "--backend", check.backend,
            "--build", check.build, "--models", model, "--batch", check.sizes.peers[model], "--rounds", check.sizes.rounds, "--seconds",
            check.sizes.seconds, "--limit", limit, "--json", found])
        report(stage, model, found, done)


def report(stage, model, found, done):
    if not found.exists():
        stage.add(model, "FAILED", done.seconds, done.last_line())
        return
    result = json.loads(found.read_text(encoding="utf-8"))
    failed = [f"{name}: {entry['error']}" for name, entry in result["programs"].items() if "error" in entry]
    detail = f"{result['rounds']} rounds, PyTorch {result['torch']}"
    if done.timed_out or (done.status != 0 and not failed):
        failed.append("it was ended, for it took longer than it may" if done.timed_out else done.last_line())
    stage.add(model, "FAILED" if failed else "passed", done.seconds, "; ".join([detail, *failed]), result)
