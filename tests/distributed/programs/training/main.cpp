// The scenarios that tests of strategies run under mpirun. `distributed_training equivalence` compares the
// strategies that sum gradients; `run` trains once and may be disturbed; `served` has a rank that serves;
// `regrouped` continues without a rank that dies. Exits like the programs do.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "core/base/error.h"
#include "distributed/communicator/roles.h"
#include "distributed/communicator/run_ranks.h"
#include "distributed/strategies/strategies.h"
#include "distributed/summing/all_reduce.h"
#include "distributed/summing/send_receive.h"
#include "tests/distributed/programs/training/equivalence.h"
#include "tests/distributed/programs/training/small_run.h"
#include "training/checkpoints/checkpoint_directory.h"

namespace plexaura::testing {
namespace {

// Options of the form --name value:
//   --model NAME  --backend NAME  --memory shared|private  --deadline SECONDS  --strategy NAME  --output DIR
//   --resume NAME        resumes from the checkpoint with this name, which must be the newest
//   --serving RANK       for `served`: this rank trains nothing, and sums for the others
//   --disturbed RANK     the rank that --raise and --other mean; by default the one with the number --servers
//   --raise SIGNAL       sent to that rank after step 20
//   --strike SIGNAL      sent to the last serving rank after step 20
//   --broken INDEX       a sample that cannot be read
//   --other seed|weights what that rank has different from the others
//   --client serial|threaded  for async-server; serial by default
//   --servers COUNT, --group COUNT  for a strategy with a parameter server; --servers is 1 by default
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 2; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }
  bool has(const std::string& name) const { return values_.contains("--" + name); }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    return has(name) ? values_.at("--" + name) : otherwise;
  }
  int number(const std::string& name, int otherwise = 0) const {
    return has(name) ? std::atoi(text(name).c_str()) : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

constexpr std::int64_t disturbed_step = 20;

void nudge(ParameterStore& store) {
  const std::string& name = store.specs().front().name;
  Tensor value = store.read(name);
  value.data()[0] ^= std::byte{1};
  store.write(name, value);
}

SmallRunOptions read_options(const Arguments& arguments, int rank) {
  SmallRunOptions options;
  const bool disturbed = rank == arguments.number("disturbed", arguments.number("servers", 1));
  options.model = arguments.text("model", "mlp");
  options.backend = arguments.text("backend", "cpu");
  options.output = arguments.text("output");
  options.resume = arguments.has("resume");
  if (arguments.has("broken")) {
    options.broken_sample = arguments.number("broken");
    options.shuffle = false;
  }
  if (disturbed && arguments.text("other") == "seed") options.seed = 7;
  if (disturbed && arguments.text("other") == "weights") options.change_weights = nudge;
  if (disturbed && arguments.has("raise"))
    options.after_step = [signal = arguments.number("raise"), raised = false](std::int64_t step) mutable {
      if (step >= disturbed_step && !std::exchange(raised, true)) std::raise(signal);
    };
  return options;
}

void check_newest(const Arguments& arguments) {
  const auto newest = newest_checkpoint(arguments.text("output"));
  const std::string name = newest ? newest->filename().string() : "none";
  if (name != arguments.text("resume")) throw InternalError("test failed: the newest checkpoint is " + name);
}

// Makes the lowest rank that trains send the signal to the last rank that serves.
void strike_server(const Arguments& arguments, Communicator& ranks, const Roles& roles,
                   SmallRunOptions& options) {
  const auto processes = ranks.gather_all(roles.serves() ? std::to_string(getpid()) : "", "the server");
  const auto server =
      std::find_if(processes.rbegin(), processes.rend(), [](const auto& each) { return !each.empty(); });
  if (!arguments.has("strike") || roles.serves() || roles.training().rank() != 0) return;
  options.after_step = [process = std::stoi(*server), signal = arguments.number("strike"),
                        struck = false](std::int64_t step) mutable {
    if (step >= disturbed_step && !std::exchange(struck, true)) kill(process, signal);
  };
}

// Does the work of a serving rank. Returns the first parameter at the end.
Tensor serve_small(const Roles& roles, Strategy& strategy, const SmallRunOptions& options) {
  ParameterStore store = make_small_store(options);
  const auto backend = open_backend(options.backend);
  roles.serve(strategy, store, *backend, options.bucket_bytes);
  return store.read(store.specs().front().name);
}

// Trains with a serving rank. The others must end with the same weights as without it.
int run_served(const Arguments& arguments, Communicator& ranks) {
  SendReceive strategy(ranks, arguments.number("serving"));
  const Roles roles(ranks, &strategy);
  if (roles.trainers() != ranks.size() - 1)
    throw InternalError("test failed: another number of ranks trains");
  SmallRunOptions options = read_options(arguments, ranks.rank());
  strike_server(arguments, ranks, roles, options);
  if (roles.serves()) {
    const Tensor first = serve_small(roles, strategy, options);
    ParameterStore begun_with = make_small_store(options);
    nudge(begun_with);
    if (begun_with.read(begun_with.specs().front().name) != first)
      throw InternalError("test failed: the rank that serves has not taken the weights of the others");
    return roles.share_status(0);
  }
  options.change_weights = nudge;  // on all ranks that train, as if they had resumed from a checkpoint
  options.before_training = [&](const ParameterStore& store) { roles.share_parameters(store); };
  const SmallRunResult result = run_small(roles.training(), &strategy, options);
  if (result.training.signal != 0) return roles.share_status(128 + result.training.signal);
  options.before_training = {};
  const auto plain = make_strategy({}, roles.training());
  const SmallRunResult without = run_small(roles.training(), plain.get(), options);
  if (result.weights != without.weights)
    throw InternalError("test failed: the weights differ from those of the same ranks without a server");
  return roles.share_status(0);
}

// A rank dies in the middle of the run. The others continue without it to the end.
int run_regrouped(const Arguments& arguments, Communicator& ranks) {
  const auto exchange = ranks.duplicate("the exchange of gradients");
  AllReduce before(*exchange, BucketSum::Update::by_step);
  std::unique_ptr<Communicator> left;
  std::unique_ptr<Communicator> new_exchange;
  std::unique_ptr<Strategy> after;
  SmallRunOptions options = read_options(arguments, ranks.rank());
  options.regroup = [&](const RankLost& loss) {
    left = ranks.without(loss.ranks());
    new_exchange = left->duplicate("the exchange of gradients");
    after = std::make_unique<AllReduce>(*new_exchange, BucketSum::Update::by_step);
    return std::pair<Collective*, Strategy*>(left.get(), after.get());
  };
  const SmallRunResult result = run_small(ranks, &before, options);
  if (!left || left->size() != ranks.size() - 1) throw InternalError("test failed: no rank was lost");
  std::string bits;
  for (const auto& [name, tensor] : result.weights)
    bits.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  for (const std::string& other : left->gather_all(bits, "the weights of those that are left"))
    if (other != bits) throw InternalError("test failed: the ranks that are left differ in their weights");
  if (result.training.steps != options.steps) throw InternalError("test failed: steps are missing");
  if (left->rank() == 0) fmt::print("{} ranks have ended the run\n", left->size());
  left->leave(0);
  std::fflush(nullptr);
  _exit(0);  // MPI cannot be closed without the lost rank
}

int run_once(const Arguments& arguments, Communicator& ranks) {
  if (arguments.has("resume")) check_newest(arguments);
  StrategyOptions chosen{.name = arguments.text("strategy", "allreduce")};
  chosen.local = {.every = 4, .first_epochs = 1, .outer_learning_rate = 0.7, .outer_momentum = 0.5};
  chosen.elastic = {.every = 4, .elasticity = 0.5};
  const bool is_threaded = arguments.text("client", "serial") == "threaded";
  chosen.async_server = {.servers = arguments.number("servers", 1),
                         .group = arguments.number("group", 1),
                         .push_every = 2,
                         .client = is_threaded ? ClientKind::threaded : ClientKind::serial};
  const auto strategy = make_strategy(chosen, ranks);
  const Roles roles(ranks, strategy.get());
  SmallRunOptions options = read_options(arguments, ranks.rank());
  strike_server(arguments, ranks, roles, options);
  if (roles.serves()) {
    serve_small(roles, *strategy, options);
    return roles.share_status(0);
  }
  options.before_training = [&](const ParameterStore& store) { roles.share_parameters(store); };
  Communicator& training = roles.training();
  const SmallRunResult result = run_small(training, strategy.get(), options);
  const std::string steps = std::to_string(result.training.steps);
  for (const std::string& other : training.gather_all(steps, "the steps of all ranks"))
    if (other != steps) throw InternalError("test failed: the ranks left after different steps");
  return roles.share_status(result.training.signal == 0 ? 0 : 128 + result.training.signal);
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const std::string scenario = argc > 1 ? argv[1] : "";
  const CommunicatorOptions options{.deadline_seconds = static_cast<double>(arguments.number("deadline", 60)),
                                    .shared_memory = arguments.text("memory", "shared") == "shared"};
  return run_ranks(options, [&](Communicator& ranks) {
    if (scenario == "run") return run_once(arguments, ranks);
    if (scenario == "regrouped") return run_regrouped(arguments, ranks);
    if (scenario == "served") return run_served(arguments, ranks);
    if (scenario != "equivalence") throw UserError("say equivalence, run, served or regrouped");
    check_equivalence(ranks, read_options(arguments, ranks.rank()));
    return 0;
  });
}

}  // namespace
}  // namespace plexaura::testing

int main(int argc, char** argv) { return plexaura::testing::run(argc, argv); }
