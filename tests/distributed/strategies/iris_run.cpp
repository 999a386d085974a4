#include "tests/distributed/strategies/iris_run.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/data/open_data.h"
#include "app/data/sent_data.h"
#include "app/options/distributed_config.h"
#include "app/options/run_config.h"
#include "backends/registry.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/communicator/handshake.h"
#include "distributed/communicator/roles.h"
#include "models/zoo/model.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing {

namespace {

struct IrisSetup {
  RunData data;
  RunOptions options;
  std::unique_ptr<Model> model;
};

Config load_iris(const Settings& settings) {
  return Config::load(PLEXAURA_SOURCE "/models/iris.yaml", settings);
}

// A rank that is sent its samples has no data.
IrisSetup read_iris(const Settings& settings, Communicator& ranks) {
  const Config config = load_iris(settings);
  const bool is_sent = sends_data(read_distributed_alone(config).strategy.name) && ranks.size() > 1;
  const bool reads = !is_sent || ranks.rank() == 0;
  IrisSetup setup;
  if (reads) setup.data = open_data(config);
  if (is_sent) setup.data = share_data(ranks, std::move(setup.data));
  setup.model = make_model(config, setup.data.sample().shape, setup.data.output_count());
  setup.options = read_options(config, setup.data.train->size(), ranks.size());
  if (reads) config.check_all_used();
  return setup;
}

IrisEnd end_of(const ParameterStore& store, const TrainingResult& result) {
  IrisEnd end;
  end.steps = result.steps;
  for (const ParameterSpec& spec : store.specs()) {
    const Tensor value = store.read(spec.name);
    end.weights.append(reinterpret_cast<const char*>(value.data()), value.bytes());
    const std::vector<double> numbers = value.to_doubles();
    end.values.insert(end.values.end(), numbers.begin(), numbers.end());
  }
  if (!result.last_epoch) return end;
  end.accuracy = value_of("accuracy", result.last_epoch->val_metrics);
  end.exchange = result.last_epoch->exchange;
  return end;
}

IrisEnd train(const Roles& roles, Strategy* strategy, IrisSetup& setup, bool resume) {
  const auto backend = open_backend("cpu");
  std::vector<ParameterSpec> specs = specs_of(*setup.model, setup.options.types.values);
  for (const std::string& pattern : setup.options.freeze) freeze(specs, pattern);
  ParameterStore store(std::move(specs), 1);
  if (roles.serves()) {
    roles.serve(*strategy, store, *backend, setup.options.trainer.bucket_bytes);
    return {};
  }
  setup.options.trainer.replace = true;
  Trainer trainer({.model = builder_of(*setup.model),
                   .store = store,
                   .backend = *backend,
                   .train = setup.data.train,
                   .validation = setup.data.validation,
                   .collective = &roles.training(),
                   .strategy = strategy},
                  setup.options.trainer);
  if (resume && !trainer.resume()) throw InternalError("there is nothing to resume");
  check_agreement(roles.training(), trainer.facts());
  roles.share_parameters(store);
  return end_of(store, trainer.run());
}

std::vector<std::string> on_one_host(int ranks) {
  return std::vector<std::string>(static_cast<std::size_t>(ranks), this_place().host);
}

}  // namespace

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::vector<IrisEnd> train_iris(int ranks, Settings settings, std::optional<std::int64_t> steps,
                                bool resume) {
  return train_iris(on_one_host(ranks), std::move(settings), steps, resume);
}

std::vector<IrisEnd> train_iris(const std::vector<std::string>& hosts, Settings settings,
                                std::optional<std::int64_t> steps, bool resume) {
  settings.insert(settings.begin(), {"data.path=" PLEXAURA_SOURCE "/models/iris.csv", "output.dir="});
  const auto ranks = static_cast<int>(hosts.size());
  ThreadNetwork network(ranks);
  std::vector<std::optional<IrisEnd>> ends(hosts.size());
  const std::vector<std::string> said = endings(ranks, [&](int rank) {
    const bool shares = read_distributed_alone(load_iris(settings)).communicator.shared_memory;
    ProcessPlace place = this_place();
    place.host = hosts[static_cast<std::size_t>(rank)];
    GroupCommunicator all(network.transport(rank), {.deadline_seconds = 60, .shared_memory = shares}, nullptr,
                          place);
    IrisSetup setup = read_iris(settings, all);
    setup.options.trainer.steps = steps;
    const auto exchange = all.duplicate("the exchange of gradients");
    exchange->choose_algorithm(setup.options.algorithm);
    const auto strategy = make_strategy(setup.options.strategy, *exchange);
    const Roles roles(all, strategy.get());
    IrisEnd end = train(roles, strategy.get(), setup, resume);
    if (!roles.serves()) ends[static_cast<std::size_t>(rank)] = std::move(end);
    roles.share_status(0);
    all.leave(0);
  });
  for (const char* how : {"says", ""})
    for (const std::string& end : said)
      if (end != "fine" && end.starts_with(how))
        throw InternalError(fmt::format("test failed: a rank {}", end));
  std::vector<IrisEnd> of_trainers;
  for (std::optional<IrisEnd>& end : ends)
    if (end) of_trainers.push_back(std::move(*end));
  return of_trainers;
}

void check_learns(int ranks, const Settings& settings) {
  static const double alone = train_iris(1, {})[0].accuracy;
  const auto ends = train_iris(ranks, settings);
  const auto again = train_iris(ranks, settings);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CHECK(ends[rank].weights == ends[0].weights);
    CHECK(again[rank].weights == ends[0].weights);
  }
  CHECK(ends[0].accuracy >= alone - 0.04);  // 0.04 is a little more than one of 30 flowers
}

void check_resumes(const std::vector<std::string>& hosts, const Settings& settings, std::int64_t stop) {
  CAPTURE(stop);
  const TemporaryFolder folder;
  const Settings saving = with(settings, {"output.dir=" + folder.path().string()});
  const auto whole = train_iris(hosts, settings);
  train_iris(hosts, saving, stop);
  const auto resumed = train_iris(hosts, saving, {}, true);
  REQUIRE(resumed.size() == whole.size());
  for (std::size_t rank = 0; rank < whole.size(); ++rank) CHECK(resumed[rank].weights == whole[rank].weights);
}

void check_resumes(int ranks, const Settings& settings, std::int64_t stop) {
  check_resumes(on_one_host(ranks), settings, stop);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace plexaura::testing
