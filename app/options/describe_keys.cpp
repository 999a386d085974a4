#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "app/data/augmentation_keys.h"
#include "app/data/data_options.h"
#include "app/options/run_keys.h"
#include "core/base/did_you_mean.h"
#include "models/zoo/model.h"

namespace plexaura {

namespace {

// True if `path` is the key, or a section that contains it.
bool is_within(const std::string& key, const std::string& path) {
  return path.empty() || key == path || key.starts_with(path + '.') || key.starts_with(path + '[');
}

}  // namespace

std::vector<KeyText> all_key_texts() {
  DataOptions data;
  TrainingInput training;
  RunOptions run;
  ScheduleInput part;
  ParameterGroup group;
  OptimizerSpec of_group;
  std::vector<KeyText> texts = model_key_texts();
  const auto append = [&](const std::string& section, const std::vector<Key>& keys) {
    std::ranges::move(texts_of(section, keys), std::back_inserter(texts));
  };
  append("data", data_keys(data));
  append("data", reading_keys(run.trainer));
  std::ranges::move(augmentation_key_texts(), std::back_inserter(texts));
  append("training", training_keys(training, run));
  append("training.schedule.parts[]", schedule_part_keys(part));
  append("training.optimizer.groups[]", group_keys(group, &of_group));
  append("distributed", distributed_keys(run));
  append("output", output_keys(run.trainer));
  return texts;
}

std::string describe_keys(const std::string& path) {
  std::vector<KeyText> texts = all_key_texts();
  std::vector<std::string> names;
  for (const KeyText& text : texts) names.push_back(text.path);
  std::erase_if(texts, [&](const KeyText& text) { return !is_within(text.path, path); });
  if (texts.empty())
    throw UserError(fmt::format(
        "--describe: '{}' is not a key or section of model, data, training, distributed and output{}", path,
        did_you_mean(path, names)));
  return to_text(texts);
}

}  // namespace plexaura
