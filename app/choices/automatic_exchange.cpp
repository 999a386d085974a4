#include "app/choices/automatic_exchange.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>

#include "app/choices/device_exchange.h"
#include "app/choices/exchanged_gradients.h"
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
constexpr std::int64_t few_bytes = std::int64_t{1} << 20;  // which cross as fast one way or another

ExchangeQuestion question_of(const Communicator& exchange, const RunOptions& options) {
  ExchangeQuestion question{.algorithms = {options.algorithm},
                            .bucket_bytes = {options.trainer.bucket_bytes},
                            .overlaps = overlaps(options.strategy, exchange),
                            .threads = threads_in_use()};
  const bool may_sum = options.strategy.name == "allreduce" && options.strategy.compression.name == "none";
  if (exchange.size() == 1 || !may_sum || !exchange.keeps_order()) return question;
  // Where nothing overlaps, smaller ones only cost more calls.
  if (options.finds_buckets && question.overlaps && !buckets_change_bits(exchange, options))
    question.bucket_bytes = bucket_sizes_from(options.trainer.bucket_bytes);
  // A tree adds no parts of lost ranks.
  if (options.algorithm == "auto" && !options.trainer.parts_may_move)
    question.algorithms.emplace_back("tree");
  return question;
}

bool shares_memory(Communicator& exchange) { return exchange.allocate_shared(1, choosing).shared(); }

// What a person calls it: `auto` stands for one of two.
std::string algorithm_of(Communicator& exchange, const std::string& name) {
  if (name != "auto") return name;
  return shares_memory(exchange) && exchange.place().count == 1 ? "window" : "hierarchical";
}

// Of all that a measurement depends on and that is known.
std::uint64_t key_of(Communicator& exchange, const ExchangeQuestion& question, const Placement& gradients) {
  const std::string mine = fmt::format("{} {}", exchange.place().index, open_backend("cpu")->info().kind);
  std::uint64_t key = fnv(fmt::format("{}", fmt::join(exchange.gather_all(mine, choosing), "\n")));
  key =
      fnv(fmt::format("{}\n{}\n{}\n", message_passing_library(), shares_memory(exchange), question.overlaps),
          key);
  key =
      fnv(fmt::format("{}\n{}\n", fmt::join(question.algorithms, " "), fmt::join(question.bucket_bytes, " ")),
          key);
  return fnv(to_text(gradients), key);
}

std::string way_text(const ExchangeWay& way) { return fmt::format("{} {}", way.bucket_bytes, way.algorithm); }

// Nothing where it is none of those to choose from.
std::optional<ExchangeWay> parse_way(const std::string& text, const ExchangeQuestion& question) {
  for (const std::string& algorithm : question.algorithms)
    for (const std::int64_t bytes : question.bucket_bytes)
      if (const ExchangeWay way{algorithm, bytes}; text == way_text(way)) return way;
  return std::nullopt;
}

// What all ranks have kept.
std::optional<ExchangeWay> kept_way(Communicator& exchange, const ExchangeQuestion& question,
                                    std::uint64_t key) {
  const std::string mine = kept_choice(cache_file("exchanges"), key);
  const std::vector<std::string> all = exchange.gather_all(mine, choosing);
  const bool agree = std::ranges::count(all, all.front()) == exchange.size();
  return agree ? parse_way(all.front(), question) : std::nullopt;
}

// One rank of each host, for that. Returns a sentence where it cannot be kept.
std::string keep_way(const Communicator& exchange, const ExchangeWay& way, std::uint64_t key) {
  return exchange.place().rank == 0 ? keep_choice(cache_file("exchanges"), key, way_text(way)) : "";
}

struct Found {
  ExchangeWay way;
  bool measured;
  std::string how;  // it was found
};

Found find_way(Communicator& exchange, const ExchangeQuestion& question, const Placement& gradients,
               Tuning tuning) {
  const std::uint64_t key = key_of(exchange, question, gradients);
  if (tuning == Tuning::cached)
    if (const auto kept = kept_way(exchange, question, key)) return {*kept, false, "as measured before"};
  const double begin = seconds_now();
  const ExchangeWay way = choose_exchange(question, gradients, exchange);
  const double seconds = seconds_now() - begin;
  const std::string failure = keep_way(exchange, way, key);
  return {way, true,
          fmt::format("as measured in {:.1f} s; {}", seconds,
                      failure.empty() ? fmt::format("this is kept in '{}'", cache_file("exchanges").string())
                                      : failure)};
}

// That of rank 0 counts.
Tuning exchange_tuning(Communicator& exchange, const RunOptions& options) {
  const std::string mine = std::to_string(static_cast<int>(options.tuning));
  return static_cast<Tuning>(std::stoi(exchange.gather_all(mine, choosing).front()));
}

}  // namespace

bool keeps_order(const Communicator& exchange, const RunOptions& options) {
  return exchange.keeps_order() && (options.algorithm != device_algorithm || exchange.size() == 1);
}

bool buckets_change_bits(const Communicator& exchange, const RunOptions& options) {
  return options.trainer.optimizer.max_gradient_norm > 0 || options.types.scales_loss() ||
         options.strategy.compression.name != "none" || !keeps_order(exchange, options);
}

ToldChoice settle_exchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                           RunOptions& options) {
  const ExchangeQuestion question = question_of(exchange, options);
  const Placement gradients = exchanged_gradients(parameters, options.types);
  const std::int64_t bytes =
      gradients.bytes_before(ArenaKind::gradient, gradients.count(ParameterRole::trainable));
  if (!question.is_open() || bytes < few_bytes) return {};
  const Tuning tuning = exchange_tuning(exchange, options);
  if (tuning == Tuning::off) return {};
  const Found found = find_way(exchange, question, gradients, tuning);
  exchange.choose_algorithm(found.way.algorithm);
  options.algorithm = found.way.algorithm;
  options.trainer.bucket_bytes = found.way.bucket_bytes;
  const std::string algorithm = algorithm_of(exchange, found.way.algorithm);
  return {fmt::format("gradients cross in buckets of {} by {}, {}",
                      bytes_text(static_cast<double>(found.way.bucket_bytes)), algorithm, found.how),
          {{"event", "exchange"},
           {"algorithm", algorithm},
           {"bucket_bytes", found.way.bucket_bytes},
           {"measured", found.measured}}};
}

}  // namespace plexaura
