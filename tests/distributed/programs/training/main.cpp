// What the tests of strategies run under mpirun: `distributed_training equivalence [OPTIONS]`, or
// `distributed_training run [OPTIONS]`, which trains once and may be disturbed; `measure` prints times. Ends
// as programs end.
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "distributed/run_ranks.h"
#include "distributed/strategies/strategies.h"
#include "tests/distributed/programs/training/equivalence.h"
#include "tests/distributed/programs/training/measure.h"
#include "tests/distributed/programs/training/small_run.h"
#include "training/checkpoint.h"

namespace plexaura::testing {
namespace {

// --name value ...
//   --model NAME  --backend NAME  --memory shared|private  --deadline SECONDS  --strategy NAME  --output DIR
//   --resume NAME    goes on from the checkpoint of this name, which must be the newest
//   --raise SIGNAL   on rank 1, after step 20
//   --broken INDEX   a sample that cannot be read
//   --other seed|weights   what rank 1 has otherwise than the rest
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

constexpr int kDisturbedRank = 1;
constexpr std::int64_t kDisturbedStep = 20;

void nudge(ParameterStore& store) {
  const std::string& name = store.specs().front().name;
  Tensor value = store.read(name);
  value.data()[0] ^= std::byte{1};
  store.write(name, value);
}

SmallRunOptions read_options(const Arguments& arguments, int rank) {
  SmallRunOptions options;
  const bool disturbed = rank == kDisturbedRank;
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
    options.after_step = [signal = arguments.number("raise")](std::int64_t step) {
      if (step == kDisturbedStep) std::raise(signal);
    };
  return options;
}

void check_newest(const Arguments& arguments) {
  const auto newest = newest_checkpoint(arguments.text("output"));
  const std::string name = newest ? newest->filename().string() : "none";
  if (name != arguments.text("resume")) throw InternalError("test failed: the newest checkpoint is " + name);
}

int run_once(const Arguments& arguments, Communicator& ranks) {
  if (arguments.has("resume")) check_newest(arguments);
  const auto strategy = make_strategy(arguments.text("strategy", "allreduce"), ranks);
  const SmallRunResult result = run_small(ranks, strategy.get(), read_options(arguments, ranks.rank()));
  const std::string steps = std::to_string(result.training.steps);
  for (const std::string& other : ranks.gather_all(steps, "the steps of all ranks"))
    if (other != steps) throw InternalError("test failed: the ranks left after different steps");
  return result.training.signal == 0 ? 0 : 128 + result.training.signal;
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const std::string scenario = argc > 1 ? argv[1] : "";
  const CommunicatorOptions options{.deadline_seconds = static_cast<double>(arguments.number("deadline", 60)),
                                    .shared_memory = arguments.text("memory", "shared") == "shared"};
  return run_ranks(options, [&](Communicator& ranks) {
    if (scenario == "run") return run_once(arguments, ranks);
    if (scenario == "equivalence") {
      check_equivalence(ranks, read_options(arguments, ranks.rank()));
    } else if (scenario == "measure") {
      measure_exchanges(ranks);
    } else {
      throw UserError("say equivalence, run or measure");
    }
    return 0;
  });
}

}  // namespace
}  // namespace plexaura::testing

int main(int argc, char** argv) { return plexaura::testing::run(argc, argv); }
