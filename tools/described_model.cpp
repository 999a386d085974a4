#include "tools/described_model.h"

#include "tools/tool.h"

#include "app/data/open_data.h"
#include "app/model_settings.h"
#include "app/options/repeatable.h"
#include "app/options/run_config.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr std::int64_t any_number = 1 << 20;  // number of samples that is assumed if no data is read

// Throws UserError for a key that is misspelt or has no effect, like the programs do. The file may also
// describe a model alone.
void check_keys(const Config& config, std::int64_t samples, bool has_read_data) {
  const bool trains = config.root().has("training");
  if (trains) read_options(config, samples, 1);
  if (has_read_data && trains) return config.check_all_used();
  config.root().check_keys({"model", "data", "training", "distributed", "output"});
  config.section("model").check_all_used();
  if (trains) config.section("training").check_all_used();
}

}  // namespace

void declare(CLI::App& app, ModelSource& source) {
  app.add_option("FILE.yaml", source.file, "configuration of the model")->required();
  repeatable(app.add_option("--set", source.set, "overrides a key of the file: --set model.depth=18"))
      ->type_name("KEY=VALUE");
  app.add_option("--sample", source.sample,
                 "shape of a sample, such as 1,28,28; with --classes, no data is read")
      ->delimiter(',')
      ->check(whole_number(1));
  app.add_option("--classes", source.classes, "number of classes")->check(whole_number(1));
}

Shape DescribedModel::batch(std::int64_t samples) const {
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), model->sample_shape().begin(), model->sample_shape().end());
  return Shape(extents);
}

DescribedModel read_model(const ModelSource& source) {
  const Config config = Config::load(source.file, source.set);
  if (source.sample.empty() != (source.classes == 0))
    throw UserError("--sample and --classes need each other");
  DescribedModel described;
  if (!source.sample.empty()) {
    described.model = make_model(config, Shape(source.sample), source.classes);
    check_keys(config, any_number, false);
  } else {
    const RunData data = open_data(config);
    described.model = make_model(config.section("model"), data.sample().shape, data.output_count(),
                                 data.pixels, {}, data.trained.class_weights);
    check_keys(config, data.train->size(), true);
    if (!is_floating(data.sample().dtype)) described.samples = data.sample().dtype;
  }
  if (described.model->info().task == Task::language_model) described.samples = DType::int64;
  described.settings = config.values();
  keep_model_settings(described.settings, *described.model);
  if (config.root().has("output")) described.output = read_output_folder(config).string();
  return described;
}

}  // namespace plexaura
