#include "core/compile/measure.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/splitmix.h"
#include "core/device/transfer.h"
#include "core/tensor/tensor.h"

namespace plexaura {

namespace {

constexpr double shortest_span = 1e-4;  // seconds between two readings of the clock
// Seconds between two readings for a device with its own memory: longer than on a CPU, since the host starts and awaits a
// run more slowly.
constexpr double shortest_span_of_a_device = 1e-3;
constexpr int most_repeats = 1000;
constexpr int most_rounds = 20;
constexpr double enough = 0.05;  // measuring ends when all runs together have taken this many seconds
constexpr double noise = 1e-3;   // seconds by which a run may be slower because of other programs

// Returns `count` numbers from -1 to 1, which are the same in every process.
Tensor numbers(DType dtype, std::int64_t count) {
  Tensor numbers({DType::float32, {count}});
  std::uint64_t seed = 0;
  for (float& number : numbers.as<float>())
    number =
        static_cast<float>(static_cast<std::int64_t>(splitmix_scatter(seed += splitmix_step))) * 0x1p-63F;
  return numbers.cast(dtype);
}

void write_numbers(Backend& backend, Address dst, DType dtype, std::size_t bytes) {
  constexpr std::size_t bytes_from_host = 1 << 16;
  const Tensor some = numbers(dtype, static_cast<std::int64_t>(bytes_from_host / size_of(dtype)));
  std::size_t done = std::min(bytes, bytes_from_host);
  copy_to_device(backend, dst, some.data(), done);
  for (std::size_t more = 0; done < bytes; done += more) {
    more = std::min(done, bytes - done);
    backend.copy(Stream::compute, dst + done, dst, more);
  }
  wait_for(backend);
}

// Memory for the kernels of all candidates, which run one after the other. Kernels may overwrite outputs and
// scratch memory, but not inputs.
class Operands {
 public:
  explicit Operands(Backend& backend) : backend_(backend) {}

  // Returns the memory with this name and number. Allocates a new, zeroed piece if the present one is too
  // small.
  Address at(std::string_view name, std::size_t number, std::size_t bytes) {
    return at(name, number, bytes, [&](Address address) { write_zeros(backend_, address, bytes); });
  }
  // Returns the memory of an input. Floating inputs on a GPU are not zero: with zeros a GPU needs less power
  // and runs faster.
  Address input(std::size_t number, DType dtype, std::size_t bytes) {
    if (backend_.info().host_memory || !is_floating(dtype)) return at("input", number, bytes);
    return at("input", number, bytes,
              [&](Address address) { write_numbers(backend_, address, dtype, bytes); });
  }

 private:
  Address at(std::string_view name, std::size_t number, std::size_t bytes,
             const std::function<void(Address address)>& write) {
    auto& pieces = pieces_[{name, number}];
    if (pieces.empty() || pieces.back()->bytes() < bytes) {
      auto memory = backend_.allocate(bytes, MemoryUse::device);
      write(memory->address());
      pieces.push_back(std::move(memory));
    }
    return pieces.back()->address();
  }

  Backend& backend_;
  std::map<std::pair<std::string_view, std::size_t>, std::vector<std::unique_ptr<Memory>>> pieces_;
};

// The kernel of a candidate, with its memory.
class Trial {
 public:
  Trial(Backend& backend, Operands& operands, const RegionQuery& query, const Candidate& candidate)
      : backend_(backend), done_(backend.make_event()) {
    const Region& region = query.region;
    const auto bytes = [&](Value value, const Layout& layout) {
      return static_cast<std::size_t>(layout.bytes(query.type(value)));
    };
    Binding binding;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const bool read = candidate.reads.empty() || candidate.reads[i];
      const Value input = region.inputs[i];
      binding.inputs.push_back(
          read ? operands.input(i, query.type(input).dtype, bytes(input, candidate.inputs[i])) : nullptr);
    }
    for (std::size_t i = 0; i < region.outputs.size(); ++i)
      binding.outputs.push_back(query.wanted[i]
                                    ? operands.at("output", i, bytes(region.outputs[i], candidate.outputs[i]))
                                    : nullptr);
    const auto kernel = candidate.make();
    if (kernel->workspace() > 0) binding.workspace = operands.at("workspace", 0, kernel->workspace());
    binding.name = &name_;
    launch_ = kernel->bind(binding);
  }

  double seconds(int repeats) {
    if (repeats > 1 && repeats != recorded_) record(repeats);
    const double begin = seconds_now();
    if (recording_)
      recording_->replay();
    else
      run(repeats);
    done_->record(Stream::compute);
    done_->wait();
    return (seconds_now() - begin) / repeats;
  }

 private:
  void run(int repeats) {
    for (int i = 0; i < repeats; ++i) launch_->run();
  }
  // Records the runs of the kernel. A recorded run does not include the host's time to launch the kernel.
  void record(int repeats) {
    recording_ = backend_.record([&] { run(repeats); });
    recorded_ = repeats;
  }

  Backend& backend_;
  std::unique_ptr<Event> done_;
  std::string name_ = "a kernel that is being measured";
  std::unique_ptr<Launch> launch_;
  std::unique_ptr<Recording> recording_;  // null if nothing was recorded
  int recorded_ = 0;                      // number of runs in the recording
};

// The candidates that are still measured, and the shortest time of each. A candidate that fails is dropped,
// with infinite seconds.
class Contest {
 public:
  Contest(Backend& backend, const RegionQuery& query, std::span<const Candidate> candidates)
      : operands_(backend), trials_(candidates.size()), least_(candidates.size(), never) {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      attempt(i, [&] { trials_[i] = std::make_unique<Trial>(backend, operands_, query, candidates[i]); });
  }

  void run(int repeats) {
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trials_[i]) attempt(i, [&] { least_[i] = std::min(least_[i], trials_[i]->seconds(repeats)); });
  }

  // Drops candidates that are slower than twice the best one plus the noise.
  void drop_slow() {
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (least_[i] > 2 * shortest() + noise) trials_[i].reset();
  }

  bool is_open() const {
    return std::ranges::count_if(trials_, [](const auto& trial) { return trial != nullptr; }) > 1;
  }
  double shortest() const { return std::max(*std::ranges::min_element(least_), 1e-9); }
  // Returns the seconds that one round of the candidates that are left would take on an idle machine.
  double seconds_of_round(int repeats) const {
    double seconds = 0;
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (trials_[i]) seconds += least_[i] * repeats;
    return seconds;
  }

  // Throws the first error if all candidates failed.
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

  Operands operands_;
  std::vector<std::unique_ptr<Trial>> trials_;  // null: the candidate was dropped
  std::vector<double> least_;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<double> measure(Backend& backend, const RegionQuery& query,
                            std::span<const Candidate> candidates) {
  Contest contest(backend, query, candidates);
  contest.run(1);  // the first run is slower, since it warms up caches
  contest.run(1);
  contest.drop_slow();
  const double span = backend.info().host_memory ? shortest_span : shortest_span_of_a_device;
  const int repeats = static_cast<int>(std::clamp(span / contest.shortest(), 1.0, double{most_repeats}));
  double spent = contest.seconds_of_round(1);
  for (int round = 0; round < most_rounds && spent < enough && contest.is_open(); ++round) {
    contest.run(repeats);
    spent += contest.seconds_of_round(repeats);
  }
  return std::move(contest).result();
}

}  // namespace plexaura
