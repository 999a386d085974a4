#include "app/visiting.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "app/options/distributed_config.h"
#include "app/options/outputs.h"
#include "core/base/events.h"
#include "core/base/print.h"
#include "distributed/seal/seal.h"
#include "distributed/servers/jobs/visited_server.h"
#include "distributed/servers/jobs/visiting.h"
#include "distributed/strategies/strategies.h"
#include "training/checkpoints/checkpoint.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/folder_lock.h"
#include "training/loop/signals.h"

namespace plexaura {

namespace {

// Number of pushes between two checkpoints if output.every is not given.
constexpr std::int64_t pushes_between_saves = 100;
// Keys in the metadata of a server's weights.
const std::string account_key = "server.account";
const std::string held_key = "server.held";  // key of the numbers of checkpoints that are never removed

ServerRule rule_of(const RunOptions& options) {
  ServerRule rule = options.strategy.async_server.rule;
  rule.push = options.strategy.name == "downpour" ? ServerRule::Push::changes : ServerRule::Push::weights;
  return rule;
}

ListenAt listen_of(const CommandLine& line) {
  ListenAt at{.port = line.port};
  if (!line.address.empty()) at.address = line.address;
  return at;
}

VisitFacts facts_of_run(const RunOptions& options) {
  VisitFacts facts = options.trainer.settings;
  facts.insert(options.trainer.notes.begin(), options.trainer.notes.end());
  const AsyncServerOptions& server = options.strategy.async_server;
  facts["distributed.strategy"] = options.strategy.name;
  facts["distributed.mix"] = fmt::format("{}", server.rule.mix);
  facts["distributed.damping"] = fmt::format("{}", server.rule.damping);
  facts["distributed.push_limit"] = fmt::format("{}", server.push_limit);
  return facts;
}

// Chooses the checkpoints that are kept in addition to the newest ones. A checkpoint is identified by its
// version: the number of pushes in its weights. `trusted_` contains no push whose client may still turn out
// to diverge. `next_` replaces it as soon as the same is true for `next_`. The checkpoints in `kept_` are
// never removed: each was saved before the pushes of a client whose training diverged.
class HeldCheckpoints {
 public:
  // `version` is that of the loaded checkpoint. `earlier` has checkpoints that an earlier server has kept for
  // ever.
  void begin_with(std::int64_t version, const std::set<std::int64_t>& earlier) {
    next_ = version;
    kept_ = earlier;
  }
  // Returns the checkpoints that are never removed.
  const std::set<std::int64_t>& kept() const { return kept_; }
  // Called before the checkpoint of this version is saved. Returns the checkpoints that must stay.
  const std::set<std::int64_t>& hold(std::int64_t version, std::int64_t doubted_since) {
    if (next_ && *next_ <= doubted_since) trusted_ = std::exchange(next_, std::nullopt);
    if (!next_) next_ = version;
    held_ = kept_;
    held_.insert({*next_, version});
    if (trusted_) held_.insert(*trusted_);
    return held_;
  }
  // Returns the newest held checkpoint whose version is not above this one, and keeps it for ever.
  std::optional<std::int64_t> keep_before(std::int64_t version) {
    const auto behind = held_.upper_bound(version);
    if (behind == held_.begin()) return std::nullopt;
    return *kept_.insert(*std::prev(behind)).first;
  }

 private:
  std::optional<std::int64_t> trusted_;
  std::optional<std::int64_t> next_;
  std::set<std::int64_t> kept_;
  std::set<std::int64_t> held_;
};

// The saved state of a server: its weights in a checkpoint, whose number is the number of pushes, and its
// clients in the metadata.
class Snapshots {
 public:
  Snapshots(const RunOptions& options, ParameterStore& store, const LogicalWeights& form)
      : options_(options.trainer), store_(store), form_(form) {
    state_.optimizer = "that of each client of " + options.strategy.name;
    state_.settings = options_.settings;
    state_.data_origin = options_.data_origin;
    if (are_kept()) lock_.emplace(options_.output);
  }

  // Loads the newest checkpoint into the store. Returns its version and the account of its clients. Returns
  // nothing if there is no checkpoint.
  std::optional<std::pair<std::int64_t, std::string>> load() {
    const auto state = load_checkpoint(options_.output, store_, state_.optimizer, state_.settings);
    if (!state) return std::nullopt;
    const Metadata metadata =
        read_safetensors_header(*newest_checkpoint(options_.output) / "weights.safetensors").metadata;
    held_.begin_with(state->step, earlier_ones(metadata));
    return std::pair(state->step, metadata.at(account_key));
  }

  // Returns the checkpoints that an earlier server has kept and that still exist.
  std::set<std::int64_t> earlier_ones(const Metadata& metadata) const {
    std::set<std::int64_t> held;
    const auto found = metadata.find(held_key);
    std::istringstream numbers(found == metadata.end() ? "" : found->second);
    for (std::int64_t number = 0; numbers >> number;)
      if (std::filesystem::exists(checkpoint_folder(options_.output, number))) held.insert(number);
    return held;
  }

  bool are_kept() const { return !options_.output.empty(); }

  void save_if_due(const VisitedServer& server) {
    if (server.version() % options_.save_every.value_or(pushes_between_saves) == 0) save(server);
  }

  void save(const VisitedServer& server) {
    if (!are_kept()) return;
    form_.write(server.weights(),
                [&](std::string_view name, const Tensor& value) { store_.write(name, value); });
    state_.step = server.version();
    state_.notes = options_.notes;
    state_.notes[account_key] = server.account();
    state_.notes[held_key] = fmt::format("{}", fmt::join(held_.kept(), " "));
    save_checkpoint(options_.output, store_, state_, options_.keep,
                    held_.hold(state_.step, server.doubted_since()));
    report_event(EventKind::saved, state_.step);
  }

  // Keeps, for ever, the newest checkpoint whose number is not above `version`, and returns its folder; see
  // VisitedServerHost.
  std::string keep_before(std::int64_t version) {
    const auto kept = held_.keep_before(version);
    return kept ? checkpoint_folder(options_.output, *kept).string() : "";
  }

 private:
  const TrainerOptions& options_;
  ParameterStore& store_;
  const LogicalWeights& form_;
  RunState state_;
  HeldCheckpoints held_;
  std::optional<FolderLock> lock_;
};

// Prints a sentence. Ignores errors of printing, so that they end no run.
void say(const std::string& sentence) noexcept {
  try {
    print_output(printable(sentence) + "\n");
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace

void check_visiting(const CommandLine& line, const Communicator& ranks, const Config& config) {
  if (line.serve.empty() && line.join.empty()) return;
  const char* const option = line.serve.empty() ? "--join" : "--serve";
  check_sealing(option);
  if (ranks.size() > 1)
    throw UserError(
        fmt::format("{} is for a job of one rank, and there are {}; start it with -n 1, and each client "
                    "as a job of its own",
                    option, ranks.size()));
  const Section distributed = config.section("distributed");
  if (const std::string name = read_distributed_alone(config).strategy.name; !has_parameter_server(name))
    throw distributed.error("strategy",
                            fmt::format("is '{}', which has no parameter server, and {} is given; choose "
                                        "async-server or downpour, or leave the option out",
                                        name, option));
  if (const Section training = config.section("training");
      training.has("precision") && training.text("precision") == "auto")
    throw training.error(
        "precision", fmt::format("is 'auto', and with {} the server and its clients must have the same one; "
                                 "give float32 or bfloat16",
                                 option));
  distributed.refuse({"servers", "group", "max_staleness", "client", "on_loss"},
                     fmt::format("with {} each client is a job of its own", option));
}

int serve_visitors(const CommandLine& line, const RunOptions& options, ParameterStore store,
                   double deadline_seconds) {
  const LogicalWeights form(store.specs());
  prepare_outputs(line, options.trainer.output.string(), std::numeric_limits<std::int64_t>::max());
  Snapshots snapshots(options, store, form);
  if (!line.weights.empty())
    check_vocabulary(load_weights(line.weights, store, line.skip), line.weights, options.trainer.notes);
  const auto former = line.resume ? snapshots.load() : std::nullopt;
  std::vector<std::byte> weights(form.bytes());
  form.read([&](std::string_view name) { return store.read(name); }, weights);
  const StopSignals signals;
  VisitedServer server(line.serve, form, std::move(weights),
                       {.rule = rule_of(options),
                        .push_limit = options.strategy.async_server.push_limit,
                        .clients = line.clients,
                        .listen = listen_of(line),
                        .deadline_seconds = deadline_seconds,
                        .samples = options.trainer.notes,
                        .facts = facts_of_run(options)},
                       {.is_to_end = [] { return StopSignals::received() != 0; },
                        .pushed = [&](const VisitedServer& pushed) { snapshots.save_if_due(pushed); },
                        .keep_before = [&](std::int64_t version) { return snapshots.keep_before(version); },
                        .say = say,
                        .warn = [](const std::string& sentence) { print_error(printable(sentence)); }});
  if (former) server.continue_from(former->first, former->second);
  say(fmt::format(
      "{} at {}, port {}; clients join with --join {}",
      former ? fmt::format("serving from the checkpoint after push {}", former->first) : "serving",
      server.place().host, server.place().port, line.serve));
  say(push_limit_sentence(options.strategy.async_server));
  const bool is_over = server.serve();
  snapshots.save(server);
  print_output("clients of the parameter server\n" + server.table().to_text("client"));
  return is_over ? 0 : 128 + StopSignals::received();
}

Visit::Visit(const CommandLine& line, double deadline_seconds)
    : file_(line.join), visitor_(line.join, deadline_seconds) {}

std::optional<TrainedData> Visit::samples() const { return trained_data_in(visitor_.samples(), file_); }

std::string Visit::join(RunOptions& options, ParameterStore& store) {
  const LogicalWeights form(store.specs());
  VisitFacts facts = facts_of_run(options);
  facts.merge(form.facts());
  const std::vector<std::byte> weights = visitor_.join(std::move(facts), form.bytes());
  form.write(weights, [&](std::string_view name, const Tensor& value) { store.write(name, value); });
  options.trainer.seed += visitor_.number() - 1;
  return fmt::format("joined the server of {} as client {}", file_, visitor_.number());
}

std::unique_ptr<Strategy> Visit::strategy(const RunOptions& options) {
  return std::make_unique<Visiting>(visitor_, rule_of(options), options.strategy.async_server.push_every);
}

}  // namespace plexaura
