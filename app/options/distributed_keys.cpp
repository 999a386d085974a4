#include "app/data/sent_data.h"
#include "app/options/distributed_config.h"
#include "app/options/run_keys.h"
#include "distributed/choices/choose_compression.h"
#include "distributed/sums/sum_algorithms.h"

namespace plexaura {

namespace {

constexpr double shortest_deadline = 0.1;       // in seconds; much longer than a message between hosts takes
constexpr double longest_deadline = 1'000'000;  // in seconds: eleven days, which any clock can represent

// Returns the need of a key that has an effect only with the strategies for which `is_true` returns true.
template <class F>
Need strategies_where(F is_true, const std::string& why = {}) {
  Need need{.key = "strategy", .why = why};
  for (const std::string& name : strategy_names())
    if (is_true(name)) need.values.push_back(name);
  return need;
}

bool sums_gradients(const std::string& strategy) {
  return !keeps_own_weights(strategy) && !has_parameter_server(strategy);
}

bool sums_by_all(const std::string& strategy) {
  return strategy == "allreduce" || keeps_own_weights(strategy);
}

Need with_compression(std::vector<std::string> methods) {
  methods.emplace_back(automatic_compression);
  return {.key = "compression", .values = std::move(methods)};
}

std::vector<std::string> algorithm_words() {
  std::vector<std::string> names = sum_algorithm_names();
  names.emplace_back(device_algorithm);
  return names;
}

std::vector<Key> compression_keys(CompressionOptions& compression) {
  std::vector<std::string> of_gradients = compressions_of("allreduce");
  of_gradients.emplace_back(automatic_compression);
  return {
      {.name = "compression",
       .into = &compression.name,
       .words = std::move(of_gradients),
       .needs = {.key = "strategy", .values = {"allreduce"}},
       .meaning = "the form in which gradients are sent between ranks; `auto` chooses one by measurements, "
                  "see [compression.md](compression.md). Only with gradients of float32, and not with "
                  "`training.precision: float16`. No effect with one rank"},
      {.name = "compression",
       .into = &compression.name,
       .words = compressions_of("local"),
       .needs = strategies_where(keeps_own_weights),
       .meaning = "the form in which changes of the weights are sent between ranks"},
      {.name = "compression_ratio",
       .into = &compression.ratio,
       .range = {.maximum = 1, .above = 0},
       .needs = with_compression({"top-k"}),
       .meaning = "the share of a bucket's elements that each rank sends, or each host if hosts have "
                  "several ranks"},
      {.name = "compression_rank",
       .into = &compression.rank,
       .range = {.minimum = 1, .maximum = 1024},
       .needs = with_compression({"powersgd"}),
       .meaning = "the rank of the matrices that are sent: number of vectors of each factor"},
  };
}

std::vector<Key> summing_keys(RunOptions& run) {
  const Need alike =
      strategies_where([](const std::string& name) { return sums_gradients(name) && !sends_data(name); });
  return {
      {.name = "bucket_bytes",
       .into = &run.bucket_bytes,
       .range = {.minimum = 1},
       .word = "auto",
       .needs = strategies_where(sums_gradients, "which sums no gradients"),
       .meaning =
           "minimum size of a bucket, the piece in which gradients are exchanged. `auto` is 26,214,400, "
           "but with `allreduce` a smaller one if that is "
           "[measured](distributed.md#buckets-and-algorithm-by-measurement) to be faster"},
      {.name = "overlap",
       .into = one_of(run.strategy.overlap, {{"auto", Overlap::automatic},
                                             {"on", Overlap::on},
                                             {"both", Overlap::both},
                                             {"off", Overlap::off}}),
       .needs = strategies_where(can_overlap),
       .meaning =
           "whether buckets are sent while the gradients of others are computed; `both` is `on` and also "
           "sends while the next step begins, and `auto` is `on` between several hosts; not with the "
           "algorithm `mpi`, see [distributed.md](distributed.md#overlap)"},
      {.name = "rebroadcast_every",
       .into = &run.rebroadcast_every,
       .range = {.minimum = 1},
       .needs = alike,
       .meaning = "if the ranks run on different kinds of processors: number of steps between broadcasts of "
                  "the weights and the optimizer's state of rank 0"},
      {.name = "verify_every",
       .into = &run.trainer.verify_every,
       .range = {.minimum = 0},
       .needs = alike,
       .meaning = "number of steps between comparisons of the weights and the optimizer's state of all "
                  "ranks; these are also made before each checkpoint and at the end: see "
                  "[distributed.md](distributed.md#flipped-bits); `0`: never. Not on different kinds of "
                  "processors, whose weights may differ"},
  };
}

std::vector<Key> averaging_keys(RunOptions& run) {
  LocalOptions& local = run.strategy.local;
  const Need averages = strategies_where(keeps_own_weights);
  const Need is_local{.key = "strategy", .values = {"local"}};
  const Need is_elastic{.key = "strategy", .values = {"elastic"}};
  return {
      {.name = "every",
       .into = &local.every,
       .range = {.minimum = 1},
       .needs = averages,
       .meaning = "number of steps between two exchanges of the weights"},
      {.name = "report_seconds",
       .into = &run.trainer.report_seconds,
       .range = {.minimum = 0},
       .needs = averages,
       .meaning = "about how many seconds ranks make steps before they add up loss and accuracy, and "
                  "learn whether a rank has failed or was asked to stop; `0`: after each step"},
      {.name = "fragments",
       .into = &local.fragments,
       .range = {.minimum = 1},
       .most = [&local] { return static_cast<double>(local.every); },
       .needs = is_local,
       .meaning = "number of parts of about the same size that the weights are cut into, which are exchanged "
                  "in turn; a divisor of `every`. See [distributed.md](distributed.md#slow-links)"},
      {.name = "delay",
       .into = &local.delay,
       .range = {.minimum = 0},
       .most = [&local] { return static_cast<double>(local.every / local.fragments - 1); },
       .needs = is_local,
       .meaning = "number of steps that are made during an exchange; fewer than `every` / `fragments`. "
                  "`0`: ranks wait for it. Not with the algorithm `mpi`"},
      {.name = "first_epochs",
       .into = &local.first_epochs,
       .range = {.minimum = 0},
       .needs = is_local,
       .meaning = "number of epochs at the beginning in which every step is followed by a plain average; "
                  "fewer than `training.epochs`"},
      {.name = "outer.learning_rate",
       .into = &local.outer_learning_rate,
       .range = {.above = 0},
       .needs = is_local,
       .meaning = "after the first epochs: learning rate of the outer optimizer, whose gradient is the "
                  "average change of the weights"},
      {.name = "outer.momentum",
       .into = &local.outer_momentum,
       .range = {.minimum = 0, .below = 1},
       .needs = is_local,
       .meaning = "after the first epochs: Nesterov momentum of the outer optimizer"},
      {.name = "elasticity",
       .into = &run.strategy.elastic.elasticity,
       .range = {.maximum = 1, .above = 0},
       .needs = is_elastic,
       .meaning = "the share of the distance to the mean of all ranks that the centre moves at an exchange"},
  };
}

std::vector<Key> server_keys(AsyncServerOptions& server) {
  const Need serves = strategies_where(has_parameter_server);
  constexpr NumberRange share{.maximum = 1, .above = 0};
  return {
      {.name = "servers",
       .into = &server.servers,
       .range = {.minimum = 1},
       .needs = serves,
       .meaning = "how many ranks serve, the first ones, each with a [part of the "
                  "weights](parameter_servers.md#several-servers); fewer than there are ranks"},
      {.name = "group",
       .into = &server.group,
       .range = {.minimum = 1},
       .needs = serves,
       .meaning = "how many ranks are [one client](parameter_servers.md#clients-of-several-ranks), whose "
                  "gradients are summed in each step; a divisor of the number of ranks that train"},
      {.name = "push_every",
       .into = &server.push_every,
       .range = {.minimum = 1},
       .word = "epoch",
       .needs = serves,
       .meaning = "number of steps of a client between two pushes to the server; or `epoch`: it pushes at "
                  "the end of an epoch"},
      {.name = "mix",
       .into = &server.rule.mix,
       .range = share,
       .needs = {.key = "strategy", .values = {"async-server"}},
       .meaning = "the share of the distance to a client's weights that the server's weights move at a push"},
      {.name = "mix",
       .into = &server.rule.mix,
       .range = share,
       .late_default = {.shown = "1", .set = [&server] { server.rule.mix = 1; }},
       .needs = {.key = "strategy", .values = {"downpour"}},
       .meaning = "the share of a client's changes that is added"},
      {.name = "damping",
       .into = &server.rule.damping,
       .range = {.minimum = 0},
       .needs = serves,
       .meaning = "`mix` is multiplied by (1 + staleness)^−damping; the staleness is the number of "
                  "pushes since the client got its weights"},
      {.name = "push_limit",
       .into = &server.push_limit,
       .range = {.above = 1},
       .needs = serves,
       .meaning =
           "a push is refused, as from a client that [diverges](parameter_servers.md#how-it-works), if "
           "it changes the weights by more than this number times their norm, and by more than this "
           "number times the median of the last pushes"},
      {.name = "max_staleness",
       .into = &server.max_staleness,
       .range = {.minimum = 0},
       .needs = serves,
       .meaning = "a client that is more than this number of pushes ahead of the slowest one in this epoch "
                  "waits for it. Without this key no client waits for another within an epoch"},
      {.name = "client",
       .into = one_of(server.client, {{"serial", ClientKind::serial}, {"threaded", ClientKind::threaded}}),
       .needs = serves,
       .meaning = "whether a client waits for the answer to each push (`serial`), or continues to train "
                  "meanwhile (`threaded`), see [parameter_servers.md](parameter_servers.md#how-it-works)"},
  };
}

}  // namespace

std::vector<Key> distributed_keys(RunOptions& run) {
  std::vector<Key> keys{
      {.name = "strategy",
       .into = &run.strategy.name,
       .words = strategy_names(),
       .meaning = "see [distributed.md](distributed.md#strategies). No effect with one rank"},
      {.name = "algorithm",
       .into = &run.algorithm,
       .words = algorithm_words(),
       .needs = strategies_where(sums_by_all, "whose ranks make no sums together"),
       .meaning = "how ranks sum; `device` works only with `allreduce`; see "
                  "[distributed.md](distributed.md#algorithms)"},
  };
  for (auto part : {compression_keys(run.strategy.compression), summing_keys(run), averaging_keys(run),
                    server_keys(run.strategy.async_server)})
    keys.insert(keys.end(), part.begin(), part.end());
  const std::vector<Key> last{
      {.name = "on_loss",
       .into = one_of(run.on_loss, {{"drop", OnLoss::drop}, {"end", OnLoss::end}, {"exact", OnLoss::exact}}),
       .late_default = {.shown = "\"exact\"", .set = [&run] { run.on_loss = default_on_loss(run); }},
       .needs =
           strategies_where([](const std::string& name) { return name != "send-recv" && !sends_data(name); },
                            "which needs its rank 0"),
       .meaning =
           "what the other ranks do when one dies and the MPI lets them live, see "
           "[surviving.md](../guide/surviving.md). If `exact` is not possible, as with a compression, the "
           "default is `end` (with synchronised batch norm such a run is refused, with an error that names "
           "what to set); for `local`, `elastic`, `async-server` and `downpour` it is `drop`, but `end` with "
           "a "
           "`delay`, several `servers` or a `group`"},
      {.name = "deadline_seconds",
       .into = &run.communicator.deadline_seconds,
       .range = {.minimum = shortest_deadline, .maximum = longest_deadline},
       .meaning = "how long a rank waits for another before all ranks end with an error"},
      {.name = "shared_memory",
       .into = &run.communicator.shared_memory,
       .meaning = "ranks on one machine sum gradients in shared memory"},
  };
  keys.insert(keys.end(), last.begin(), last.end());
  return keys;
}

}  // namespace plexaura
