#include "app/data/open_pixels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "training/data/idx.h"
#include "training/data/images/cifar.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

// Returns a file with one of MNIST's names, plain or gzipped.
fs::path idx_file(const fs::path& directory, const std::string& name) {
  const fs::path plain = directory / name;
  const fs::path zipped = directory / (name + ".gz");
  // A folder that cannot be read counts as one without the file. The code that opens the file reports the reason.
  std::error_code ignored;
  const bool is_zipped = fs::exists(zipped, ignored);
  if (is_zipped && fs::exists(plain, ignored))
    throw UserError(
        fmt::format("{}: both this file and {}.gz are there, which may differ; remove one of them",
                    plain.string(), name));
  return is_zipped ? zipped : plain;
}

// Returns the images of a file of --predict, which must have the shape of the training images.
NamedSamples images_in(const std::string& file, const Shape& shape) {
  Tensor images = read_idx_images(file);
  const Shape found(
      std::vector<std::int64_t>(images.shape().extents().begin() + 1, images.shape().extents().end()));
  if (found != shape)
    throw UserError(fmt::format("{}: has images {} and the model takes {}; give images of this size", file,
                                to_string(found), to_string(shape)));
  NamedSamples samples{{}, std::move(images)};
  for (std::int64_t i = 0; i < samples.samples.shape()[0]; ++i)
    samples.names.push_back(fmt::format("{} image {}", file, i + 1));
  return samples;
}

}  // namespace

std::string normalisation_text(const PixelScale& pixels) {
  const auto text = [](const std::vector<double>& numbers) {
    return numbers.size() == 1 ? fmt::format("{}", numbers[0]) : fmt::format("{}", numbers);
  };
  return fmt::format("(value / 255 - {}) / {}", text(pixels.mean), text(pixels.stddev));
}

DataPair open_idx(const Section& data, const DataOptions& options) {
  const auto images = [&](const std::string& part) {
    return idx_file(options.path, part + "-images-idx3-ubyte");
  };
  const auto open = [&](const std::string& part) {
    return std::make_shared<IdxDataset>(images(part), idx_file(options.path, part + "-labels-idx1-ubyte"),
                                        options.idx);
  };
  DataPair pair{.train = open("train")};
  pair.read_samples = [shape = pair.train->sample_shape()](const std::string& file) {
    return images_in(file, shape);
  };
  pair.origin = label_hash(*pair.train);
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = normalisation_text(pair.pixels);
  if (!options.validates()) return pair;
  pair.validation = open("t10k");
  check_same_shape(*pair.train, images("train").string(), *pair.validation, images("t10k").string());
  return pair;
}

DataPair open_cifar(const Section& data, const DataOptions& options) {
  DataPair pair{.train =
                    std::make_shared<CifarDataset>(options.path, CifarPart::train, options.cifar_labels)};
  pair.origin = label_hash(*pair.train);
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = normalisation_text(pair.pixels);
  if (options.validates())
    pair.validation = std::make_shared<CifarDataset>(options.path, CifarPart::test, options.cifar_labels);
  return pair;
}

}  // namespace plexaura
