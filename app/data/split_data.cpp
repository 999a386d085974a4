#include "app/data/split_data.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

#include "app/data/label_column.h"
#include "training/data/subset.h"
#include "training/data/tables/categories.h"
#include "training/data/tables/standardise.h"

namespace plexaura {

namespace {

// Returns mean 0 and deviation 1, for columns that are not scaled.
Standardisation no_scale(std::size_t columns) {
  return {std::vector<float>(columns, 0), std::vector<float>(columns, 1)};
}

// Excludes the features of words from the scale, so that they stay 0 or 1.
Standardisation without_words(Standardisation scale, const TrainedData& trained) {
  for (std::size_t i = 0; i < trained.columns.size(); ++i)
    if (category_of(trained.columns[i], trained.categories) != nullptr) {
      scale.mean[i] = 0;
      scale.stddev[i] = 1;
    }
  return scale;
}

// Returns the scale of `count` columns from `first` on.
Standardisation part_of(const Standardisation& scale, std::size_t first, std::size_t count) {
  const auto part = [&](const std::vector<float>& numbers) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  return {part(scale.mean), part(scale.stddev)};
}

// Measures the samples, and stores the scale of the columns and targets that are to be scaled.
void measure(const Dataset& train, const DataOptions& options, TrainedData& trained) {
  const std::size_t columns = trained.columns.size();
  const std::size_t targets = trained.targets.size();
  const Standardisation measured = measure_standardisation(train, options.on_error);
  if (options.standardise) trained.scale = without_words(part_of(measured, 0, columns), trained);
  if (options.standardise_targets) trained.target_scale = part_of(measured, columns, targets);
}

std::string scaling_text(const DataOptions& options, bool has_columns, bool has_targets) {
  if (!has_columns) return "the numbers as they are";
  const bool of_columns = options.standardise;
  const bool of_targets = has_targets && options.standardise_targets;
  if (!of_columns && !of_targets) return "the columns as they are";
  const char* const which = !of_columns       ? "every target"
                            : of_targets      ? "every column and target"
                            : options.targets ? "every column, but no target,"
                                              : "every column";
  return fmt::format("{} less its mean, by its deviation, both of the training rows", which);
}

}  // namespace

Standardisation joined(Standardisation scale, const Standardisation& after) {
  scale.mean.insert(scale.mean.end(), after.mean.begin(), after.mean.end());
  scale.stddev.insert(scale.stddev.end(), after.stddev.begin(), after.stddev.end());
  return scale;
}

DatasetPtr subset_of(const DatasetPtr& whole, std::vector<std::int64_t> indices) {
  return std::make_shared<SubsetDataset>(whole, std::move(indices));
}

void require_each_class(const Section& data, const char* key, const std::string& value, const Dataset& part,
                        const Dataset& whole, std::string_view remedy) {
  const bool has_classes = whole.class_names().size() > 1;
  if (!has_classes && part.size() == 0)
    throw data.error(key, fmt::format("is {}, which leaves none of the {} samples to train on; {}", value,
                                      whole.size(), remedy));
  const std::vector<std::int64_t> labels = labels_of(part);
  const std::set<std::int64_t> left(labels.begin(), labels.end());
  for (const std::int64_t label : labels_of(whole))
    if (!left.contains(label))
      throw data.error(
          key,
          fmt::format("is {}, which leaves {} of the {} samples to train on and none of the class '{}'; {}",
                      value, part.size(), whole.size(), whole.class_names()[static_cast<std::size_t>(label)],
                      remedy_for_classes(whole, remedy)));
}

DataPair divide_samples(const Section& data, const DataOptions& options, const DatasetPtr& whole,
                        const DatasetPtr& unchanged, bool trains) {
  const auto seed = static_cast<std::uint64_t>(options.split_seed);
  const std::vector<std::int64_t> labels = labels_of(*whole);
  if (options.folds) {
    const std::int64_t count = *options.folds;
    if (count > whole->size())
      throw data.error("folds", fmt::format("is {} and there are {} samples; give at most one part a sample",
                                            count, whole->size()));
    const std::int64_t fold = options.fold;
    const auto folds = stratified_folds(labels, count, seed);
    const DatasetPtr train = subset_of(whole, without_fold(folds, fold));
    if (trains)
      require_each_class(data, "fold", std::to_string(fold), *train, *whole,
                         "give that class more samples, or leave it out");
    return {train, subset_of(unchanged, folds[static_cast<std::size_t>(fold)]),
            fnv(fmt::format("fold {} of {}, seed {}", fold, count, seed), label_hash(*whole))};
  }
  const double share = options.validation_share;
  auto parts = stratified_split(labels, std::array{1 - share, share}, seed);
  const DatasetPtr train = subset_of(whole, std::move(parts[0]));
  if (trains)
    require_each_class(data, "validation_share", fmt::format("{}", share), *train, *whole,
                       "give a smaller share");
  return {train, subset_of(unchanged, std::move(parts[1])),
          fnv(fmt::format("share {}, seed {}", share, seed), label_hash(*whole))};
}

DataPair split_and_scale(const Section& data, const DataOptions& options, const UnsplitSamples& raw,
                         const std::optional<TrainedData>& trained) {
  DataPair pair = raw.validation
                      ? DataPair{raw.samples, raw.validation, fnv("arrays", label_hash(*raw.samples))}
                      : divide_samples(data, options, raw.samples, raw.samples, !trained);
  pair.is_cut = !raw.validation && pair.train->size() > 0;
  const bool has_columns = !raw.columns.empty();
  const bool has_targets = !raw.targets.empty();
  pair.preparation = scaling_text(options, has_columns, has_targets);
  if (!raw.categories.empty())
    pair.preparation += fmt::format("; 1 or 0 for each word of {}", fmt::join(raw.categories, ", "));
  pair.trained = trained ? *trained
                         : TrainedData{has_targets ? std::vector<std::string>{} : raw.samples->class_names(),
                                       raw.columns, no_scale(raw.columns.size()), raw.targets,
                                       no_scale(raw.targets.size())};
  if (!trained) pair.trained.categories = raw.categories;
  if (has_columns && (options.standardise || (has_targets && options.standardise_targets))) {
    pair.is_measured = !trained;
    if (pair.is_measured) measure(*pair.train, options, pair.trained);
    const Standardisation scale = joined(pair.trained.scale, pair.trained.target_scale);
    const bool fills = options.csv.missing == MissingCells::mean;
    pair.train = std::make_shared<StandardisedDataset>(pair.train, scale, fills);
    pair.validation = std::make_shared<StandardisedDataset>(pair.validation, scale, fills);
  }
  return pair;
}

}  // namespace plexaura
