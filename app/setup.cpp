#include "app/setup.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <utility>

#include "app/data/open_data.h"
#include "app/data/prediction_data.h"
#include "app/data/sent_data.h"
#include "app/data/text_data.h"
#include "app/model_settings.h"
#include "app/options/distributed_config.h"
#include "app/options/parameter_patterns.h"
#include "app/options/version.h"
#include "app/trials/overfit_samples.h"
#include "app/trials/read_samples.h"
#include "app/use_model.h"
#include "backends/registry.h"
#include "core/base/fnv.h"
#include "core/params/module.h"
#include "distributed/communicator/handshake.h"
#include "training/data/tables/categories.h"

namespace plexaura {

namespace {

const char* given(bool is_given) { return is_given ? "given" : "not given"; }

// Returns the settings of the configuration, and those of the section `data` from the rank that has read it.
Settings values_of(const Setup& setup) {
  Settings values = setup.config->values();
  values.insert(setup.data.keys.begin(), setup.data.keys.end());
  return values;
}

std::string text_of_vocabulary(const Vocabulary& vocabulary) {
  std::uint64_t hash = fnv_start;
  for (const std::string& token : vocabulary.tokens()) hash = fnv(token + '\0', hash);
  return fmt::format("{} {} ({:016x})", vocabulary.size(), name_of(vocabulary.kind()), hash);
}

// Returns the settings that define what weights mean: the model, the scaling of samples and targets, the
// noise, the named classes, the words of columns, and the vocabulary.
Settings settings_of(const Setup& setup) {
  const Settings values = values_of(setup);
  Settings settings = values;
  keep_model_settings(settings, *setup.model);
  settings.merge(data_settings_of_weights(values, setup.data.sample().dtype == DType::uint8));
  const std::vector<std::string>& classes = setup.data.trained.classes;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i))
      settings[fmt::format("class {}", i)] = fmt::format("'{}'", classes[i]);
  const TrainedData& trained = setup.data.trained;
  for (const auto& [column, words] : words_of_features(trained.columns, trained.categories))
    settings[fmt::format("the words of {}", column)] = fmt::format("{}", fmt::join(words, ", "));
  if (setup.data.trained.vocabulary)
    settings["the vocabulary"] = text_of_vocabulary(*setup.data.trained.vocabulary);
  return settings;
}

RunData read_data(const CommandLine& line, const Config& config, const Visit* visit) {
  if (visit != nullptr) return open_data(config, visit->samples(), DataUse::train);
  if (!uses_model(line))
    return open_data(config, std::nullopt, line.overfit > 0 ? DataUse::overfit : DataUse::train);
  const std::optional<TrainedData> trained = trained_data(line, config);
  if (line.generate.count > 0) return data_to_generate(config, trained);
  if (!line.predict.empty())
    if (std::optional<RunData> data = prediction_data(config, trained)) return *std::move(data);
  return open_data(config, trained);
}

// Reads one validation sample. So a fault that all of them have, such as masks with other numbers, is found before the first
// epoch and not after it.
void try_validation(const Setup& setup) {
  const SampleSource* const samples = setup.data.validation.get();
  if (samples == nullptr || setup.options.trainer.on_error == OnError::skip) return;
  bool has_read = false;
  read_samples(*samples, 0, 1, 0, OnError::fail, [&] { return std::exchange(has_read, true); });
}

// Builds the model and reads the options that depend on the data. Ranks that receive the data do not read the
// keys of the section `data`, so they do not check for unused keys. `trainers` is the number of ranks that
// may train.
void build_from_data(Setup& setup, const CommandLine& line, const Communicator& ranks, int trainers) {
  const std::vector<float>& units = setup.data.trained.target_scale.stddev;
  setup.model =
      make_model(setup.config->section("model"), setup.data.sample().shape, setup.data.output_count(),
                 setup.data.pixels, {units.begin(), units.end()}, setup.data.trained.class_weights);
  read_run_options(setup, line, trainers);
  if (setup.data_is_sent && ranks.rank() > 0) return;
  setup.config->check_all_used();
  if (!uses_model(line)) try_validation(setup);
}

// Refuses a stream in jobs where another rank or job reads the samples, where a spare may continue, or where samples are
// read again.
void check_stream(const Setup& setup, const CommandLine& line, int spares) {
  if (setup.data.stream == nullptr) return;
  const auto refuse = [&](const std::string& why) {
    throw setup.config->section("data").error("stream",
                                              fmt::format("is given, and {}; remove the key, or that", why));
  };
  if (setup.data_is_sent) refuse("with distributed.strategy scatter-gather rank 0 alone reads a table");
  if (setup.visit) refuse("with --join the server deals out the samples of a table");
  if (!line.serve.empty()) refuse("with --serve the clients read the samples, which a table has");
  if (spares > 0) refuse("a spare of --spares cannot continue the stream of a lost rank");
  if (const char* const trial = trial_of(line))
    refuse(fmt::format("{} reads the same samples again, which a stream does not have", trial));
}

// Returns the number of samples of an epoch; 0: it may have any.
std::int64_t samples_of_epoch(const Setup& setup, const CommandLine& line, int ranks) {
  // --find-lr and --overfit only use the highest rate of the schedule, so that its epochs need not fit the samples.
  if (line.find_lr || line.overfit > 0) return 0;
  if (setup.data.stream == nullptr) return setup.data.train->size();
  return setup.data.steps_per_epoch * read_options(*setup.config, 0, ranks).trainer.batch_size;
}

}  // namespace

void read_run_options(Setup& setup, const CommandLine& line, int ranks) {
  setup.options = read_options(*setup.config, samples_of_epoch(setup, line, ranks), ranks);
  setup.options.trainer.steps_per_epoch = setup.data.steps_per_epoch;
  setup.options.trainer.shuffle_buffer = setup.data.shuffle_buffer;
  setup.options.trainer.steps = line.steps;
  setup.options.trainer.data_origin = setup.data.origin;
  setup.options.trainer.older_data_origin = setup.data.older_origin;
  setup.options.trainer.settings = settings_of(setup);
  setup.options.trainer.weights = setup.data.sample_weights;
  setup.options.trainer.notes = to_metadata(setup.data.trained);
  if ((line.resume || line.replace) && setup.options.trainer.output.empty())
    throw UserError(fmt::format("{}: {} needs output.dir, the folder of checkpoints", line.config,
                                line.resume ? "--resume" : "--replace"));
  setup.options.trainer.replace = true;  // prepare_outputs() refuses to replace the files of others
  if (line.dry_run || trial_of(line) != nullptr || setup.visit)
    setup.options.trainer.output.clear();  // these jobs save nothing; for a client, the server saves
}

namespace {

Config load(const CommandLine& line) {
  Config config = Config::load(line.config, line.set);
  if (line.overfit == 0) return config;
  std::vector<std::string> settings = line.set;
  std::ranges::copy(settings_of_overfit(config, line.overfit), std::back_inserter(settings));
  return Config::load(line.config, settings);
}

}  // namespace

Setup read_setup(const std::string& kind, const CommandLine& line, Communicator& ranks, int spares) {
  constexpr const char* what = "reading the configuration";
  Setup setup;
  const std::string strategy = together(ranks, what, [&] {
    setup.config = std::make_unique<Config>(load(line));
    const Section model = setup.config->section("model");
    if (const std::string name = read_model_keys(model).name; name != kind)
      throw model.error("name",
                        fmt::format("is '{}', but this program trains only {}; run {}", name, kind, name));
    check_visiting(line, ranks, *setup.config);
    if (!line.join.empty()) setup.visit = std::make_unique<Visit>(line, ranks.deadline_seconds());
    return read_distributed_alone(*setup.config).strategy.name;
  });
  check_agreement(ranks, {{"the build", build_id()},
                          {"distributed.strategy", strategy},
                          {"--evaluate", given(line.evaluate)},
                          {"--predict", given(!line.predict.empty())},
                          {"--generate", given(line.generate.count > 0)}});
  setup.data_is_sent = sends_data(strategy) && ranks.size() > 1 && !uses_model(line);
  together(ranks, what, [&] {
    if (!setup.data_is_sent || ranks.rank() == 0)
      setup.data = read_data(line, *setup.config, setup.visit.get());
    check_stream(setup, line, spares);
  });
  if (setup.data_is_sent) setup.data = share_data(ranks, std::move(setup.data));
  together(ranks, what, [&] { build_from_data(setup, line, ranks, ranks.size() - spares); });
  return setup;
}

std::vector<ParameterSpec> parameters_of(const Setup& setup) {
  std::vector<ParameterSpec> specs = specs_of(*setup.model, setup.options.types.values);
  apply_patterns(*setup.config, setup.options, specs);
  return specs;
}

ParameterStore make_store_of(const Setup& setup) {
  ParameterStore store(parameters_of(setup), static_cast<std::uint64_t>(setup.options.trainer.seed));
  store.set_types(setup.options.types);
  return store;
}

std::map<std::string, std::string> facts_of(const Setup& setup, const CommandLine& line) {
  std::map<std::string, std::string> facts = values_of(setup);
  facts.erase("data.path");
  facts.erase("data.validation_path");
  // Other ranks may have the folder of targets at another path, as with data.path.
  if (setup.data.sample().dtype == DType::uint8) facts.erase("data.targets");
  // Ranks that form one client draw data together. The number of parts that they read ahead depends on their
  // workers.
  if (setup.options.strategy.async_server.group == 1) facts.erase("data.workers");
  facts["output.dir"] = given(!setup.options.trainer.output.empty());
  facts.erase("training.tuning");  // rank 0 decides for all ranks
  facts["the number of samples"] =
      fmt::format("{} and {}", setup.data.train->size(), setup.data.validation->size());
  facts["the samples or their split"] = fmt::format("{:016x}", setup.data.origin);
  facts["--steps"] = line.steps ? std::to_string(*line.steps) : "none";
  facts["--backend"] = name_of_backend(line.backend);  // each rank may use a different device
  facts["--resume"] = given(line.resume);
  facts["--replace"] = given(line.replace);
  facts["--dry-run"] = given(line.dry_run);
  facts["--find-lr"] = given(line.find_lr);
  facts["--overfit"] = std::to_string(line.overfit);
  facts["--check"] = given(line.check);
  facts["--device"] = line.device.empty() ? "not given" : line.device;
  facts["--weights"] = given(!line.weights.empty());
  facts["--skip"] = fmt::format("{}", fmt::join(line.skip, " "));
  facts["--log"] = given(!line.log.empty());
  facts["--tensorboard"] = given(!line.tensorboard.empty());
  facts["--report"] = given(!line.report.empty());
  facts["--profile"] = given(!line.profile.empty());
  return facts;
}

}  // namespace plexaura
