"""Report A (Go and MPI, 2022): all ranks train and add up (allreduce), or rank 0 only collects (send-recv).

Its three-layer perceptron is trained on Iris (4-30-20-3) and on photos of 150x150 (67,500-40-10-classes).
"""

from lab import percent, times

# Published: seconds over the number of ranks.
IRIS_ALLREDUCE = {1: 1.40, 2: 0.91, 3: 0.90, 4: 0.84, 5: 0.86, 6: 0.79, 7: 0.92, 8: 1.32}
IRIS_SEND_RECV = {2: 1.59, 3: 1.27, 4: 1.12, 5: 1.05, 6: 1.08, 7: 1.28, 8: 2.06}
NOTE = ("N ranks of allreduce and N + 1 ranks of send-recv train alike, because rank 0 of send-recv does not train. Published speeds are "
        "those of N ranks.")


def run(lab):
    trainers = lab.choose("1,2,4", "1,2,3,4,5,6,7,8")
    strategies = ("--strategies", "allreduce,send-recv", "--trace-steps", "0")
    rows = lab.scale("iris", "--trainers", trainers, *strategies, "--rounds", str(lab.choose(1, 3)), program=lab.program("mlp", "iris"))
    add(lab, "Iris", rows, {"allreduce": IRIS_ALLREDUCE, "send-recv": IRIS_SEND_RECV})
    photos = lab.program("mlp", "photos_mlp", *lab.choose(["training.epochs=3"], []))
    rows = lab.scale("photos", "--trainers", lab.choose("1,2", "1,2,4,7"), *strategies, program=photos)
    add(lab, "Photos", rows, {})
    rows = lab.scale("batch", "--ranks", "1,2", "--global-batch", "4,16,60", "--trace-steps", "0", program=lab.program("mlp", "iris"))
    lab.add_table("The batch size as the lever on communication (Iris)", ["samples of a step", "ranks", "samples/s", "bytes of a rank in an epoch", "accuracy"],
                  [[f"{row['batch']:.0f}", f"{row['ranks']:.0f}", f"{row['samples_per_second']:,.0f}",
                    "–" if row["exchanged"] is None else f"{row['exchanged']:,.0f}", percent(row["accuracy"])] for row in rows])


def add(lab, name, rows, published):
    """Adds the table and the picture of one data set."""
    alone = rows[0]["samples_per_second"]

    def published_speed(row):
        seconds = published.get(row["strategy"], {})
        return times(IRIS_ALLREDUCE[1] / seconds[int(row["ranks"])]) if int(row["ranks"]) in seconds else "–"

    lab.add_table(name, ["strategy", "ranks", "samples/s", "times one rank", "published", "validation loss", "accuracy"],
                  [[row["strategy"], f"{row['ranks']:.0f}", f"{row['samples_per_second']:,.0f}", times(row["samples_per_second"] / alone),
                    published_speed(row), f"{row['validation_loss']:.6f}", percent(row["accuracy"])] for row in rows], NOTE if published else "")
    curves = {strategy: [(row["ranks"], row["samples_per_second"] / alone) for row in rows if row["strategy"] in (strategy, "one rank")]
              for strategy in ("allreduce", "send-recv")}
    lab.add_picture(name.lower(), f"{name}: speed over ranks", "times one rank", curves)
