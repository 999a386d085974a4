#include "app/data/prediction_data.h"

#include <fmt/format.h>
#include <span>
#include <utility>

#include "app/data/data_options.h"

namespace plexaura {

namespace {

// A dataset that has types and classes, and no samples.
class NoSamples final : public Dataset {
 public:
  NoSamples(TensorType sample, std::vector<std::string> class_names)
      : sample_(std::move(sample)), class_names_(std::move(class_names)) {}

  std::int64_t size() const override { return 0; }
  Shape sample_shape() const override { return sample_.shape; }
  DType sample_dtype() const override { return sample_.dtype; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t /*index*/) const override { throw Error("there is no sample"); }
  void read_sample(std::int64_t /*index*/, const SampleContext& /*context*/, std::span<std::byte> /*sample*/,
                   std::int64_t& /*label*/) const override {
    throw Error("there is no sample");
  }

 private:
  TensorType sample_;
  std::vector<std::string> class_names_;
};

NamedSamples read_rows(const std::string& file, const CsvOptions& options, std::int64_t columns,
                       const std::optional<Standardisation>& scale) {
  std::shared_ptr<const Dataset> rows = std::make_shared<CsvDataset>(file, options);
  const std::int64_t width = rows->sample_shape()[0];
  if (width != columns)
    throw UserError(
        fmt::format("{}: a row has {} columns and the model takes {}; leave out the label's column", file,
                    width, columns));
  if (scale) rows = std::make_shared<StandardisedDataset>(rows, *scale);
  NamedSamples found{{}, Tensor(TensorType{DType::float32, {rows->size(), width}})};
  const std::span<float> values = found.samples.as<float>();
  for (std::int64_t row = 0; row < rows->size(); ++row) {
    std::int64_t none = 0;
    const auto sample =
        values.subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
    rows->read_sample(row, {}, std::as_writable_bytes(sample), none);
    found.names.push_back(fmt::format("{} row {}", file, row + 1));
  }
  return found;
}

RunData without_samples(TensorType sample, const TrainedData& trained, ReadSamples read_samples) {
  RunData data;
  data.train = std::make_shared<NoSamples>(std::move(sample), trained.classes);
  data.validation = data.train;
  data.read_samples = std::move(read_samples);
  data.trained = trained;
  return data;
}

RunData open_rows(const DataOptions& options, const TrainedData& trained) {
  const TensorType row{DType::float32, {static_cast<std::int64_t>(trained.columns.size())}};
  return without_samples(row, trained, row_reader(options.csv, trained, options.standardise));
}

RunData open_images(const Section& data, const DataOptions& options, const TrainedData& trained) {
  const std::int64_t side = options.images.image_size;
  const TensorType image{DType::uint8, {3, side, side}};
  RunData found = without_samples(image, trained, image_reader(without_augmentation(options.images)));
  found.pixels = pixel_scale_of(options.pixels, data);
  return found;
}

}  // namespace

ImageFolderOptions without_augmentation(ImageFolderOptions options) {
  options.augment = false;
  return options;
}

ReadSamples row_reader(CsvOptions options, const TrainedData& trained, bool standardise) {
  options.labelled = false;
  if (options.header) options.features.assign(trained.columns.begin(), trained.columns.end());
  const auto columns = static_cast<std::int64_t>(trained.columns.size());
  const auto scale = standardise ? std::optional(trained.scale) : std::nullopt;
  return [=](const std::string& file) { return read_rows(file, options, columns, scale); };
}

ReadSamples image_reader(const ImageFolderOptions& options) {
  return [options](const std::string& file) {
    const Shape batch{1, 3, options.image_size, options.image_size};
    return NamedSamples{{file}, read_image(file, options).reshaped(batch)};
  };
}

void require_table(const Section& data, const TrainedData& trained) {
  if (trained.columns.empty())
    throw data.error(
        "format",
        "is csv, and the weights are of a model that was not trained on a table; name weights of "
        "one that was, or the data.format of their training");
}

std::optional<RunData> prediction_data(const Config& config, const std::optional<TrainedData>& trained) {
  const Section data = config.section("data");
  const DataOptions options = read_data_options(data, DataUse::predict);
  if (options.format() == "idx")
    throw data.error("format", "is idx, and --predict reads tables (csv) and images (image_folder)");
  if (!trained) return std::nullopt;
  if (options.format() == "csv") require_table(data, *trained);
  return options.format() == "csv" ? open_rows(options, *trained) : open_images(data, options, *trained);
}

}  // namespace plexaura
