#include "core/compile/measure.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/device/transfer.h"

namespace plexaura {

namespace {

constexpr double shortest_span = 1e-4;  // seconds between two looks at the clock
constexpr int most_repeats = 1000;
constexpr int most_rounds = 20;
constexpr double enough = 0.05;  // seconds of runs
constexpr double noise = 1e-3;   // seconds by which a run may be slower because of other programs

std::unique_ptr<Memory> zeros(Backend& backend, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count);
  auto memory = backend.allocate(bytes, MemoryUse::device);
  const std::vector<std::byte> zero(bytes);
  copy_to_device(backend, memory->address(), zero.data(), bytes);
  return memory;
}

// A candidate's kernel with operands of its own.
class Trial {
 public:
  Trial(Backend& backend, const RegionQuery& query, const Candidate& candidate)
      : backend_(backend), done_(backend.make_event()) {
    const Region& region = query.region;
    Binding binding;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const bool read = candidate.reads.empty() || candidate.reads[i];
      binding.inputs.push_back(read ? hold(candidate.inputs[i].bytes(query.type(region.inputs[i])))
                                    : nullptr);
    }
    for (std::size_t i = 0; i < region.outputs.size(); ++i)
      binding.outputs.push_back(
          query.wanted[i] ? hold(candidate.outputs[i].bytes(query.type(region.outputs[i]))) : nullptr);
    const auto kernel = candidate.make();
    if (kernel->workspace() > 0) binding.workspace = hold(static_cast<std::int64_t>(kernel->workspace()));
    binding.name = &name_;
    launch_ = kernel->bind(binding);
  }

  double seconds(int repeats) {
    const double begin = seconds_now();
    for (int i = 0; i < repeats; ++i) launch_->run();
    done_->record(Stream::compute);
    done_->wait();
    return (seconds_now() - begin) / repeats;
  }

 private:
  Address hold(std::int64_t bytes) {
    held_.push_back(zeros(backend_, bytes));
    return held_.back()->address();
  }

  Backend& backend_;
  std::unique_ptr<Event> done_;
  std::vector<std::unique_ptr<Memory>> held_;
  std::string name_ = "a kernel that is being measured";
  std::unique_ptr<Launch> launch_;
};

// The candidates that still run, and the least seconds of each. One that fails is out, infinitely slow.
class Contest {
 public:
  Contest(Backend& backend, const RegionQuery& query, std::span<const Candidate> candidates)
      : trials_(candidates.size()), least_(candidates.size(), never) {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      attempt(i, [&] { trials_[i] = std::make_unique<Trial>(backend, query, candidates[i]); });
  }

  void run(int repeats) {
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trials_[i]) attempt(i, [&] { least_[i] = std::min(least_[i], trials_[i]->seconds(repeats)); });
  }

  // Those that no noise explains.
  void drop_slow() {
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (least_[i] > 2 * shortest() + noise) trials_[i].reset();
  }

  bool is_open() const {
    return std::ranges::count_if(trials_, [](const auto& trial) { return trial != nullptr; }) > 1;
  }
  double shortest() const { return std::max(*std::ranges::min_element(least_), 1e-9); }
  // Seconds of a round, as if nothing else had run.
  double seconds_of_round(int repeats) const {
    double seconds = 0;
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trials_[i]) seconds += least_[i] * repeats;
    return seconds;
  }

  // Throws the first failure where nothing else came of it.
  std::vector<double> result() && {
    if (failure_ && std::ranges::all_of(least_, [](double seconds) { return seconds == never; }))
      std::rethrow_exception(failure_);
    return std::move(least_);
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  template <class Work>
  void attempt(std::size_t index, Work&& work) {
    try {
      work();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      trials_[index].reset();
      least_[index] = never;
    }
  }

  std::vector<std::unique_ptr<Trial>> trials_;  // null: out
  std::vector<double> least_;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<double> measure(Backend& backend, const RegionQuery& query,
                            std::span<const Candidate> candidates) {
  Contest contest(backend, query, candidates);
  contest.run(1);  // slower than others
  contest.run(1);
  contest.drop_slow();
  const int repeats =
      static_cast<int>(std::clamp(shortest_span / contest.shortest(), 1.0, double{most_repeats}));
  double spent = contest.seconds_of_round(1);
  for (int round = 0; round < most_rounds && spent < enough && contest.is_open(); ++round) {
    contest.run(repeats);
    spent += contest.seconds_of_round(repeats);
  }
  return std::move(contest).result();
}

}  // namespace plexaura
