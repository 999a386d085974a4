#include "app/data/open_arrays.h"

#include <fmt/format.h>
#include <memory>
#include <utility>
#include <vector>

#include "app/data/label_column.h"
#include "training/data/arrays/array_samples.h"
#include "training/data/arrays/hdf5_file.h"
#include "training/data/arrays/zip_file.h"

namespace plexaura {

namespace {

// Opens arrays by their names.
class ArrayOpener {
 public:
  explicit ArrayOpener(const DataOptions& options) : path_(options.path) {
    if (options.format() == "npz") archive_ = std::make_unique<ZipFile>(path_);
    if (options.format() == "hdf5") hdf5_ = std::make_unique<Hdf5File>(path_);
  }

  NpyArray open(const std::string& name) const {
    if (hdf5_) return hdf5_->open(name);
    return NpyArray(archive_ ? archive_->open(name + ".npy") : ByteRange(path_ / (name + ".npy")));
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<ZipFile> archive_;  // null unless the format is npz
  std::unique_ptr<Hdf5File> hdf5_;    // null unless the format is hdf5
};

std::vector<std::string> numbered(const std::string& name, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(count == 1 ? name : fmt::format("{} {}", name, i));
  return names;
}

// Throws unless every target is a label: 0 or 1.
void require_zero_or_one(const NpyArray& targets) {
  std::vector<float> row(static_cast<std::size_t>(targets.row_elements()));
  for (std::int64_t first = 0; first < targets.elements(); first += targets.row_elements()) {
    targets.read_floats(first, row);
    for (const float value : row)
      require_label(value, [&] {
        return fmt::format("{}: sample {}", targets.name(), first / targets.row_elements());
      });
  }
}

// Opens a set of samples with labels. `classes` are those of the training set, or empty.
DatasetPtr open_labelled(const NpyArray& samples, const NpyArray& labels, const DataOptions& options,
                         const std::vector<std::string>& classes) {
  std::optional<ChannelAxis> channels;
  if (options.channels) channels = *options.channels == "first" ? ChannelAxis::first : ChannelAxis::last;
  ArrayLabels read = read_labels(labels, classes);
  if (has_image_bytes(samples)) return std::make_shared<ArrayImages>(samples, std::move(read), channels);
  return std::make_shared<ArrayNumbers>(samples, std::move(read), channels);
}

}  // namespace

UnsplitSamples open_arrays(const Section& data, const DataOptions& options, Task task,
                           const std::optional<TrainedData>& trained) {
  const ArrayOpener arrays(options);
  const ArrayNames& names = options.arrays;
  const NpyArray samples = arrays.open(names.samples);
  const NpyArray labels = arrays.open(names.labels);
  const bool has_targets = task != Task::classification;
  const bool are_rows = samples.extents().size() == 2;
  if (!has_image_bytes(samples) || has_targets)
    data.refuse({"mean", "stddev"}, fmt::format("the samples in {} are not images of bytes", samples.name()));
  if (!are_rows)
    data.refuse({"standardise"}, fmt::format("the samples in {} are not rows of numbers", samples.name()));
  UnsplitSamples found;
  if (are_rows) found.columns = numbered("column", samples.row_elements());
  const auto open = [&](const NpyArray& of, const NpyArray& with) -> DatasetPtr {
    if (task == Task::multi_label) require_zero_or_one(with);
    if (has_targets) return std::make_shared<ArrayNumbers>(of, with);
    return open_labelled(of, with, options,
                         trained         ? trained->classes
                         : found.samples ? found.samples->class_names()
                                         : std::vector<std::string>{});
  };
  if (has_targets) {
    data.refuse({"channels"},
                fmt::format("model.task is {}, whose samples are rows of numbers", name_of(task)));
    found.targets = numbered(names.labels, labels.row_elements());
  }
  found.samples = open(samples, labels);
  if (!names.validation_samples || !options.validates()) return found;
  const NpyArray validation = arrays.open(*names.validation_samples);
  if (has_image_bytes(validation) != has_image_bytes(samples))
    throw UserError(
        fmt::format("{}: its elements are '{}', but those of {} are '{}'; save both with the same type",
                    validation.name(), validation.type().descr, samples.name(), samples.type().descr));
  found.validation = open(validation, arrays.open(*names.validation_labels));
  check_same_shape(*found.samples, samples.name(), *found.validation, validation.name());
  return found;
}

}  // namespace plexaura
