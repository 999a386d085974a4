// Tests a trainer on a faulty GPU, which the simulated CUDA runtime provides: the run ends with one error
// that says what happened. Each run has a process of its own, because a device that has failed cannot be used
// again.

#include <cstdlib>
#include <doctest/doctest.h>
#include <optional>
#include <regex>
#include <string>

#include "backends/registry.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/own_process.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::trainer_faults_test {

namespace {

struct Fault {
  std::string kind;  // the last part of the variable's name
  std::string value;
};
const std::optional<Fault> no_fault;

void set(const std::optional<Fault>& fault) {
  if (fault) setenv(("PLEXAURA_SIMULATED_CUDA_" + fault->kind).c_str(), fault->value.c_str(), 1);
}

std::string train(const std::optional<Fault>& fault, const TrainerOptions& options = momentum()) {
  return what_ends([&] {
    set(fault);
    const auto backend = open_backend("simulated_cuda");
    ParameterStore store = small_store();
    Recorder seen;
    Trainer({small_model, store, *backend, points(options.batch_size * 2)}, options).run(seen);
  });
}

// Trains on two ranks whose backends share the device.
std::string train_on_two_ranks(const std::optional<Fault>& fault) {
  return what_ends([&] {
    set(fault);
    ThreadRanks(2).run([&](Collective& collective) {
      const auto backend = open_backend("simulated_cuda");
      ParameterStore store = small_store();
      SummingStrategy strategy(collective);
      Recorder seen;
      Trainer({small_model, store, *backend, points(64), {}, &collective, &strategy}, momentum()).run(seen);
    });
  });
}

void check_has(const std::string& text, const char* part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
}

constexpr auto refused = "CUDA: too many resources requested for launch";
constexpr auto dead = "CUDA: an illegal memory access was encountered";

}  // namespace

TEST_CASE("a trainer's GPU without a fault ends well") {
  if (!has_simulated_cuda()) return;
  CHECK(train(no_fault) == "");
  CHECK(train_on_two_ranks(no_fault) == "");
}

TEST_CASE(
    "a GPU with too little memory for a trainer is told with what is planned, and what makes it smaller") {
  if (!has_simulated_cuda()) return;
  TrainerOptions options = momentum();
  options.batch_size = 4096;
  const std::string text = train(Fault{"MEMORY", "200000"}, options);
  check_has(text, "the GPU was asked for ");
  check_has(text, " of its 200000 bytes left: ");
  check_has(text, " bytes of intermediate values are planned for 4096 samples at a time, in addition to ");
  check_has(text, " bytes of parameters, gradients and the optimizer's state; lower training.batch_size, ");
  check_has(text,
            "raise training.micro_batches, set training.precision to bfloat16, or set training.memory, ");
}

TEST_CASE("a launch that a trainer's GPU refuses ends the run, with the name of the op") {
  if (!has_simulated_cuda()) return;
  for (const int launch : {1, 7, 13, 25}) {  // in the first step, and in the second, which is recorded
    const std::string text = train(Fault{"REFUSES", std::to_string(launch)});
    check_has(text, refused);
    CHECK(std::regex_search(text, std::regex(" %[0-9]+ of ")));
  }
  check_has(train_on_two_ranks(Fault{"REFUSES", "20"}), refused);
}

TEST_CASE("a trainer's GPU that dies ends the run, whatever it was doing") {
  if (!has_simulated_cuda()) return;
  for (int work = 1; work < 100; work += 11) {
    CAPTURE(work);
    check_has(train(Fault{"DIES_IN", std::to_string(work)}), dead);
  }
  for (const int work : {1, 40, 100})
    check_has(train_on_two_ranks(Fault{"DIES_IN", std::to_string(work)}), dead);
}

}  // namespace plexaura::testing::trainer_faults_test
