#include "tests/distributed/programs/training/equivalence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <vector>

#include "core/base/error.h"
#include "distributed/strategies/strategies.h"

namespace plexaura::testing {
namespace {

using Weights = std::map<std::string, Tensor>;

// The largest max|a - b| / max|a| over all tensors, and the name of that tensor.
struct Difference {
  double value = 0;
  std::string name = "none";
};

double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.to_doubles();
  const std::vector<double> right = b.to_doubles();
  double largest = 0;
  double apart = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    largest = std::max(largest, std::abs(left[i]));
    const double distance = std::abs(left[i] - right[i]);
    apart = std::isfinite(distance) ? std::max(apart, distance) : INFINITY;
  }
  return apart / std::max(largest, 1e-300);
}

Difference difference(const Weights& wanted, const Weights& got) {
  Difference largest;
  for (const auto& [name, tensor] : wanted) {
    const double value = difference(tensor, got.at(name));
    if (!(value <= largest.value)) largest = {value, name};
  }
  return largest;
}

bool same_bits(const Weights& a, const Weights& b) {
  return std::ranges::all_of(a, [&](const auto& entry) {
    const Tensor& other = b.at(entry.first);
    return std::memcmp(entry.second.data(), other.data(), other.bytes()) == 0;
  });
}

// The weights of one precision with each summing strategy, and the reference for them.
class Comparison {
 public:
  Comparison(Communicator& ranks, const SmallRunOptions& options, DType dtype)
      : ranks_(ranks), dtype_(dtype), limit_(dtype == DType::float64 ? 1e-10 : 1e-5), options_(options) {
    options_.dtype = dtype;
  }

  void run() {
    SingleProcess alone;
    if (ranks_.rank() == 0) reference_ = run_small(alone, nullptr, options_).weights;
    expect_trained(alone);
    Weights first;
    for (const std::string& strategy : summing_strategies) {
      const Weights weights = train(strategy, options_);
      expect_near(weights, strategy);
      if (first.empty()) first = weights;
      expect_same(first, weights, strategy + " and " + summing_strategies.front());
      expect_same(weights, train(strategy, options_), strategy + ", run twice");
      SmallRunOptions one_bucket = options_;
      one_bucket.bucket_bytes = 1 << 30;
      expect_same(weights, train(strategy, one_bucket), strategy + " in several buckets and in one");
    }
    SmallRunOptions micro_batches = options_;
    micro_batches.micro_batches = 4;
    expect_near(train("allreduce", micro_batches), "four micro-batches");
  }

 private:
  Weights train(const std::string& strategy, const SmallRunOptions& options) {
    const std::unique_ptr<Strategy> made = make_strategy({.name = strategy}, ranks_);
    return run_small(ranks_, made.get(), options).weights;
  }

  // Checks that the weights have changed. If they had not, their equality would mean nothing.
  void expect_trained(Collective& alone) {
    if (ranks_.rank() != 0) return agree(nullptr);
    SmallRunOptions one_step = options_;
    one_step.steps = 1;
    const double moved = difference(reference_, run_small(alone, nullptr, one_step).weights).value;
    agree(moved > 0.1 ? nullptr : failure("one rank", "are nearly those after a single step"));
  }

  // Checks and reports on rank 0, because only rank 0 has the reference.
  void expect_near(const Weights& weights, const std::string& what) {
    if (ranks_.rank() != 0) return agree(nullptr);
    const Difference found = difference(reference_, weights);
    fmt::print("{} {} ranks {} {}: {:.2e} ({})\n", options_.model, ranks_.size(), name_of(dtype_), what,
               found.value, found.name);
    agree(found.value < limit_ ? nullptr : failure(what, "differ from those of one rank"));
  }

  void expect_same(const Weights& a, const Weights& b, const std::string& what) {
    agree(same_bits(a, b) ? nullptr : failure(what, "differ in their bits"));
    const std::vector<std::string> all = ranks_.gather_all(bits_of(b), "the weights of all ranks");
    const bool equal = std::ranges::all_of(all, [&](const std::string& bits) { return bits == all[0]; });
    agree(equal ? nullptr : failure(what, "differ between ranks"));
  }

  static std::string bits_of(const Weights& weights) {
    std::string bits;
    for (const auto& [name, tensor] : weights)
      bits.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
    return bits;
  }

  std::exception_ptr failure(const std::string& what, const char* how) const {
    const std::string text =
        fmt::format("test failed: {} {}, {}: weights {}", options_.model, name_of(dtype_), what, how);
    return std::make_exception_ptr(InternalError(text));
  }

  void agree(const std::exception_ptr& error) { agree_on_error(ranks_, error, "a check of the test"); }

  Communicator& ranks_;
  DType dtype_;
  double limit_;
  SmallRunOptions options_;
  Weights reference_;
};

}  // namespace

void check_equivalence(Communicator& ranks, const SmallRunOptions& options) {
  for (const DType dtype : {DType::float64, DType::float32}) Comparison(ranks, options, dtype).run();
}

}  // namespace plexaura::testing
