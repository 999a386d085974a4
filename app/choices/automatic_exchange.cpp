#include "app/choices/automatic_exchange.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>

#include "app/choices/device_exchange.h"
#include "app/choices/exchanged_gradients.h"
#include "app/choices/kernel_choice.h"
#include "app/report/report.h"
#include "backends/cpu/threads.h"
#include "backends/registry.h"
#include "core/base/clock.h"
#include "core/base/fnv.h"
#include "distributed/choices/choose_exchange.h"
#include "distributed/strategies/strategies.h"
#include "training/checkpoints/kept_choices.h"
#include "training/files/cache_file.h"

namespace plexaura {
namespace {

constexpr std::string_view choosing = "the choice of buckets for gradients";
// Sums of fewer bytes take the same time with each algorithm.
constexpr std::int64_t few_bytes = std::int64_t{1} << 20;

// Returns the algorithms and the sizes of buckets that may be measured. Adds no alternative that would change
// the bits of the weights.
ExchangeQuestion question_of(const Communicator& exchange, const RunOptions& options) {
  ExchangeQuestion question{.algorithms = {options.algorithm},
                            .bucket_bytes = {options.trainer.bucket_bytes},
                            .overlaps = overlaps(options.strategy, exchange),
                            .threads = threads_in_use()};
  const bool may_sum = options.strategy.name == "allreduce" && options.strategy.compression.name == "none";
  if (exchange.size() == 1 || !may_sum || !exchange.keeps_order()) return question;
  // Without overlap, smaller buckets only cost more calls.
  if (options.finds_buckets && question.overlaps && !buckets_change_bits(exchange, options))
    question.bucket_bytes = bucket_sizes_from(options.trainer.bucket_bytes);
  // The algorithm `tree` cannot add the parts of lost ranks.
  if (options.algorithm == "auto" && !options.trainer.parts_may_move)
    question.algorithms.emplace_back("tree");
  return question;
}

bool shares_memory(Communicator& exchange) { return exchange.allocate_shared(1, choosing).shared(); }

// Returns the algorithm for which `auto` stands, for the report. Collective for `auto`.
std::string algorithm_of(Communicator& exchange, const std::string& name) {
  if (name != "auto") return name;
  return shares_memory(exchange) && exchange.place().count == 1 ? "window" : "hierarchical";
}

// Chooses the algorithm and the size of buckets for the gradients of `allreduce`.
class AutomaticExchange final : public RankChoice<ExchangeWay> {
 public:
  AutomaticExchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters, RunOptions& options)
      : exchange_(exchange),
        options_(options),
        question_(question_of(exchange, options)),
        gradients_(exchanged_gradients(parameters, options.types)) {}

 private:
  std::vector<ExchangeWay> candidates() override {
    const std::int64_t bytes =
        gradients_.bytes_before(ArenaKind::gradient, gradients_.count(ParameterRole::trainable));
    if (question_.ways().size() < 2 || bytes < few_bytes) return {};
    tuning_ = tuning_of_rank_0(exchange_, options_.tuning, choosing);
    return tuning_ == Tuning::off ? std::vector<ExchangeWay>() : question_.ways();
  }

  std::string name_of(const ExchangeWay& way) const override {
    return fmt::format("{} {}", way.bucket_bytes, way.algorithm);
  }

  // Returns the stored choice. Returns an empty text if there is none, if the caches of the ranks differ, or
  // if the tuning is not `cached`.
  std::string kept_name() override {
    key_ = key();
    if (tuning_ != Tuning::cached) return {};
    const std::string mine = kept_choice(cache_file("exchanges"), key_);
    const std::vector<std::string> all = exchange_.gather_all(mine, choosing);
    return std::ranges::count(all, all.front()) == exchange_.size() ? all.front() : "";
  }

  // Hashes all known facts on which a measurement depends.
  std::uint64_t key() {
    const std::string mine = fmt::format("{} {}", exchange_.place().index, open_backend("cpu")->info().kind);
    const std::vector<std::string> processors = exchange_.gather_all(mine, choosing);
    return fnv(fmt::format("{}{}\n{}\n{}\n{}\n{}\n{}", fmt::join(processors, "\n"), message_passing_library(),
                           shares_memory(exchange_), question_.overlaps, fmt::join(question_.algorithms, " "),
                           fmt::join(question_.bucket_bytes, " "), to_text(gradients_)));
  }

  ExchangeWay judge() override {
    const double begin = seconds_now();
    ExchangeWay way = choose_exchange(question_, gradients_, exchange_);
    seconds_ = seconds_now() - begin;
    return way;
  }

  void take(const ExchangeWay& way) override {
    exchange_.choose_algorithm(way.algorithm);
    options_.algorithm = way.algorithm;
    options_.trainer.bucket_bytes = way.bucket_bytes;
  }

  // Stores the choice in the cache of each host, by one rank of the host.
  void keep(const std::string& name) override {
    const std::filesystem::path file = cache_file("exchanges");
    const std::string failure = exchange_.place().rank == 0 ? keep_choice(file, key_, name) : "";
    how_ = fmt::format("as measured in {:.1f} s; {}", seconds_,
                       failure.empty() ? fmt::format("this is kept in '{}'", file.string()) : failure);
  }

  ChoiceReport report(const ExchangeWay& taken) override {
    const std::string algorithm = algorithm_of(exchange_, taken.algorithm);
    return {fmt::format("gradients cross in buckets of {} by {}, {}",
                        bytes_text(static_cast<double>(taken.bucket_bytes)), algorithm, how_),
            {{"event", "exchange"},
             {"algorithm", algorithm},
             {"bucket_bytes", taken.bucket_bytes},
             {"measured", seconds_ > 0}}};
  }

  Communicator& exchange_;
  RunOptions& options_;
  ExchangeQuestion question_;
  Placement gradients_;
  Tuning tuning_ = Tuning::off;
  std::uint64_t key_ = 0;
  double seconds_ = 0;  // seconds that judge() took; 0 if it was not called
  std::string how_ = "as measured before";
};

}  // namespace

bool keeps_order(const Communicator& exchange, const RunOptions& options) {
  return exchange.keeps_order() && (options.algorithm != device_algorithm || exchange.size() == 1);
}

bool buckets_change_bits(const Communicator& exchange, const RunOptions& options) {
  return options.trainer.optimizer.max_gradient_norm > 0 || options.types.scales_loss() ||
         options.strategy.compression.name != "none" || !keeps_order(exchange, options);
}

ChoiceReport decide_exchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                             RunOptions& options) {
  return AutomaticExchange(exchange, parameters, options).make();
}

}  // namespace plexaura
