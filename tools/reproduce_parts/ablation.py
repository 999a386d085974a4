"""Lecture E (ResNet-50 on 2,048 GPUs): its mechanisms one after the other, on hosts with slow links, and the prediction for its machine."""

import csv

from lab import number, percent

HOSTS, RATE, RANKS = 2, "400mbit", 4
NOTE = (f"{RANKS} ranks on {HOSTS} hosts (network namespaces) with {RATE} each. Each variant keeps the mechanisms of those above it. Reading ahead "
        "(data.prefetch) is on in all rows.")
PREDICTION_NOTE = ("Published: 98.6 to 99.2 % at 1,024 GPUs, and 32 % (on a slide 18 %) more speed with twice as many, probably with the global "
                   "batch held. Nothing is fitted to these figures; examples/scaling names the assumptions.")


def run(lab):
    program = lab.program("convnet", "mnist_cnn", "training.epochs=1", *lab.choose(["data.limit=12800"], []))
    rows = lab.scale("variants", "--ranks", f"1,{RANKS}", "--variants", "examples/scaling/ablation.json", "--pace", str(lab.choose(2, 4)), "--trace-steps", "0",
                     program=program, hosts=(HOSTS, RATE, RANKS))
    cells = [None] if rows is None else [[row["strategy"], f"{row['samples_per_second']:,.0f}", percent(row["idle"], 1),
                                          "–" if row["sent"] is None else f"{row['sent'] / 1e6:,.0f}", percent(row["accuracy"])] for row in rows]
    lab.add_table("One mechanism after the other (MNIST CNN)", ["variant", "images/s", "idle", "MB sent by rank 0 in an epoch", "accuracy"], cells, NOTE)
    predict(lab)


def predict(lab):
    rows = []
    for ranks, batch in (("1024", []), ("2048", []), ("2048", ["--global-batch", "65536"])):
        folder = lab.out / "prediction"
        lab.run(["tools/scaling", "--predict", "examples/scaling/resnet50_gpu.json", "--links", "examples/scaling/hosts_of_8_gpus.json", "--ranks", ranks,
                 "--strategies", "allreduce/hierarchical", *batch, "--out", str(folder.resolve())], [], None)
        with open(folder / "scaling.csv", encoding="utf-8") as file:
            row = {key: number(value) for key, value in next(csv.DictReader(file)).items()}
        rows.append([ranks, "65,536 in all" if batch else "64 each", percent(row["efficiency"], 1), f"{row['samples_per_second']:,.0f}"])
    lab.add_table("The lecture's machine, predicted", ["GPUs", "samples of a step", "efficiency", "samples/s"], rows, PREDICTION_NOTE)
