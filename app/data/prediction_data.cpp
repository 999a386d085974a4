#include "app/data/prediction_data.h"

#include <fmt/format.h>
#include <span>
#include <utility>

#include "app/data/open_image_pairs.h"
#include "app/data/open_table.h"

namespace plexaura {

namespace {

// A source that has the type of samples, and no samples.
class NoSamples final : public SampleSource {
 public:
  explicit NoSamples(TensorType sample) : sample_(std::move(sample)) {}

  std::int64_t size() const override { return 0; }
  std::vector<Field> fields() const override { return {{"samples", sample_}}; }
  void read_fields(std::int64_t /*index*/, const SampleContext& /*context*/,
                   std::span<const std::span<std::byte>> /*values*/) const override {
    throw InternalError("there is no sample to read");
  }

 private:
  TensorType sample_;
};

NamedSamples read_rows(const std::string& file, const CsvOptions& options, std::int64_t columns,
                       const std::optional<Standardisation>& scale) {
  std::shared_ptr<const Dataset> rows = std::make_shared<CsvDataset>(file, options);
  const std::int64_t width = rows->sample_shape()[0];
  if (width != columns)
    throw UserError(
        fmt::format("{}: a row has {} columns and the model takes {}; leave out the label's column", file,
                    width, columns));
  if (scale)
    rows = std::make_shared<StandardisedDataset>(rows, *scale, options.missing == MissingCells::mean);
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

RunData open_rows(const DataOptions& options, const TrainedData& trained) {
  const TensorType row{DType::float32, {static_cast<std::int64_t>(trained.columns.size())}};
  return data_without_samples(row, trained, row_reader(options.csv, trained, options.standardise));
}

RunData open_images(const Section& data, const DataOptions& options, const TrainedData& trained) {
  require_mask_classes(data, options, trained);
  const std::int64_t side = options.images.image_size;
  const TensorType image{DType::uint8, {3, side, side}};
  RunData found = data_without_samples(image, trained, image_reader(without_augmentation(options.images)));
  found.pixels = pixel_scale_of(options.pixels, data);
  return found;
}

}  // namespace

RunData data_without_samples(TensorType sample, const TrainedData& trained, ReadSamples read_samples) {
  RunData data;
  data.train = std::make_shared<NoSamples>(std::move(sample));
  data.validation = data.train;
  data.read_samples = std::move(read_samples);
  data.trained = trained;
  return data;
}

ImageFolderOptions without_augmentation(ImageFolderOptions options) {
  options.augment = false;
  return options;
}

ReadSamples row_reader(CsvOptions options, const TrainedData& trained, bool standardise) {
  options.labelled = false;
  options.targets.clear();
  use_columns_of(trained, options);
  // Each row gets a line of the output, so none may be left out.
  if (options.missing == MissingCells::drop) options.missing = MissingCells::error;
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

std::optional<RunData> prediction_data(const Config& config, const std::optional<TrainedData>& trained) {
  const Section data = config.section("data");
  const DataOptions options = read_data_options(data, DataUse::predict, read_task(config.section("model")));
  if (options.format() == "text")
    throw data.error("format",
                     "is text, and --predict reads tables (csv) and images (image_folder, idx); --generate "
                     "continues a text");
  if (options.format() != "csv" && options.format() != "image_folder" && options.format() != "idx")
    throw data.error("format",
                     fmt::format("is {}, and --predict reads tables (csv) and images (image_folder, idx)",
                                 options.format()));
  if (!trained || options.format() == "idx") return std::nullopt;
  if (options.format() == "csv") require_table(data, options, *trained);
  return options.format() == "csv" ? open_rows(options, *trained) : open_images(data, options, *trained);
}

}  // namespace plexaura
