"""Report C (mpi4py): a perceptron with one hidden layer, ten steps over all samples; rank 0 deals the samples out, and trains, too."""

from lab import percent, times

# Published: seconds over the number of ranks.
STRONG = {1: 43.67, 2: 23.79, 4: 14.81, 6: 12.17, 8: 11.01}
WEAK = {1: 4.3, 2: 4.97, 4: 5.65, 6: 6.51, 8: 7.68}
NOTE = "A rank computes for a part of its time and sleeps for the rest (--pace), so that two cores can run eight ranks."


def run(lab):
    ranks = lab.choose("1,2,4", "1,2,4,6,8")
    common = ("--strategies", "scatter-gather", "--trace-steps", "0")
    limit = lab.choose(["data.limit=10000", "training.batch_size=10000"], [])
    strong = lab.scale("strong", "--ranks", ranks, *common, "--pace", "8", program=lab.program("mlp", "mnist_full_batch", *limit))
    add(lab, "Strong scaling", strong, lambda row: STRONG[1] / STRONG[int(row["ranks"])])
    weak = lab.scale("weak", "--ranks", ranks, *common, "--pace", "20", "--batch", "5000", "--samples", "5000", program=lab.program("mlp", "mnist_full_batch"))
    add(lab, "Weak scaling: 5,000 samples for each rank", weak, lambda row: row["ranks"] * WEAK[1] / WEAK[int(row["ranks"])])


def add(lab, title, rows, published):
    lab.add_table(title, ["ranks", "samples/s", "times one rank", "published", "efficiency", "published", "validation loss", "accuracy"],
                  [[f"{row['ranks']:.0f}", f"{row['samples_per_second']:,.0f}", times(row["speed_up"]), times(published(row)), percent(row["efficiency"], 1),
                    percent(published(row) / row["ranks"], 1), f"{row['validation_loss']:.6f}", percent(row["accuracy"])] for row in rows], NOTE)
    lab.add_picture(title.split()[0].lower(), title, "times one rank", {"here": [(row["ranks"], row["speed_up"]) for row in rows],
                                                                        "published": [(row["ranks"], published(row)) for row in rows]})
