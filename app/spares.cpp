#include "app/spares.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/distributed_config.h"
#include "app/use_model.h"
#include "distributed/choices/choose_compression.h"
#include "distributed/communicator/handshake.h"
#include "distributed/strategies/strategies.h"

namespace plexaura {
namespace {

int parse_spares(std::string_view text, int ranks) {
  int spares = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, spares);
  const bool is_number = error == std::errc() && rest == end;
  if (is_number && (spares == 0 || (spares > 0 && spares <= ranks - 2))) return spares;
  throw UserError(fmt::format(
      "the variable PLEXAURA_SPARES is '{}', of {} ranks; it must be a number of spares that leaves "
      "two ranks or more to train, or 0",
      text, ranks));
}

}  // namespace

int read_spares(Communicator& all) {
  const int spares = together(all, "reading the number of spares", [&] {
    const char* const variable = std::getenv("PLEXAURA_SPARES");
    return variable == nullptr ? 0 : parse_spares(variable, all.size());
  });
  check_agreement(all, {{"PLEXAURA_SPARES", std::to_string(spares)}});
  return spares;
}

void check_spares(int spares, const CommandLine& line, const Communicator& all, const Config& config,
                  const RunOptions& options) {
  if (spares == 0) return;
  if (uses_model(line) || line.dry_run || trial_of(line) != nullptr)
    throw UserError(
        "a spare takes over from a rank that trains, and --dry-run, --evaluate, --predict, --find-lr, "
        "--overfit and --check keep nothing; leave --spares out");
  if (!all.could_outlive_ranks())
    throw UserError(fmt::format(
        "a spare takes over from a rank that dies, and this job of {} ends then; start it with tools/run "
        "--survive --spares and Open MPI 5, or leave --spares out",
        message_passing_library()));
  if (keeps_own_weights(options.strategy.name))
    throw UserError(fmt::format(
        "a spare takes over the weights that all ranks have in common, and with distributed.strategy {} each "
        "has its own; leave --spares out, or choose allreduce",
        options.strategy.name));
  if (has_parameter_server(options.strategy.name))
    throw config.section("distributed")
        .error("strategy",
               fmt::format("is '{}', whose clients draw the parts of one that dies, and no spare takes over; "
                           "start more ranks instead, and leave --spares out",
                           options.strategy.name));
  if (options.on_loss == OnLoss::end)
    throw UserError(
        fmt::format("no spare can take over: {}, or leave --spares out", why_others_end(config, options)));
  if (options.strategy.compression.name == automatic_compression)
    throw config.section("distributed")
        .error("compression",
               "is 'auto', which the ranks that train choose without the spares; name the compression, or "
               "leave --spares out");
}

int ranks_that_compute_here(Communicator& all, int spares) {
  const std::string node = std::to_string(all.place().index);
  const std::vector<std::string> nodes = all.gather_all(node, "where the ranks are");
  const auto training = std::count(nodes.begin(), nodes.end() - spares, node);
  return training > 0 ? static_cast<int>(training) : all.place().size;
}

}  // namespace plexaura
