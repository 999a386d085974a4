#include "app/use/predicted_images.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/data/images/image.h"
#include "training/data/images/image_list.h"
#include "training/files/file.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t colours = 3;

// Converts `values` [channels, height, width], from 0 to 1, to an image.
Image image_of(const Shape& shape, std::span<const double> values) {
  const std::int64_t pixels = shape[1] * shape[2];
  Image image{shape[2], shape[1], std::vector<std::uint8_t>(static_cast<std::size_t>(colours * pixels))};
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
    for (std::int64_t colour = 0; colour < colours; ++colour) {
      const std::int64_t channel = std::min(colour, shape[0] - 1);
      const double value = std::clamp(values[static_cast<std::size_t>(channel * pixels + pixel)], 0.0, 1.0);
      image.pixels[static_cast<std::size_t>(colours * pixel + colour)] =
          static_cast<std::uint8_t>(255 * value + 0.5);
    }
  return image;
}

[[noreturn]] void fail_of_clash(const fs::path& path) {
  throw UserError(
      fmt::format("{}: two images to predict would be written to this file; predict each of them in a "
                  "run of its own, with another folder for --images",
                  path.string()));
}

// Throws if writing results to the folder might replace `file`, which is an image in it.
void refuse_folder_of(const std::string& file, const fs::path& folder) {
  const fs::path above = fs::path(file).parent_path();
  std::error_code error;
  if (fs::equivalent(above.empty() ? "." : above, folder, error))
    throw UserError(fmt::format(
        "{}: contains the image to predict {}, and results would replace images with their names; "
        "name another folder with --images",
        folder.string(), file));
}

}  // namespace

PredictedImages::PredictedImages(fs::path folder, const Shape& image)
    : folder_(std::move(folder)), image_(image) {
  if (image.rank() != 3 || (image[0] != 1 && image[0] != colours))
    throw UserError(fmt::format(
        "--images writes images [C, H, W] with 1 or 3 channels, and the model's are {}; leave it out",
        to_string(image)));
}

void PredictedImages::check_names(const std::vector<std::string>& files) const {
  std::set<fs::path> names;
  for (const std::string& file : files) {
    if (has_image_extension(file)) refuse_folder_of(file, folder_);
    if (const fs::path path = path_of(file); !names.insert(path).second) fail_of_clash(path);
  }
}

fs::path PredictedImages::path_of(const std::string& name) const {
  const fs::path file = fs::path(name).filename();
  return folder_ / ((has_image_extension(file.string()) ? file.stem() : file).string() + ".png");
}

std::string PredictedImages::write_file(const std::string& name, std::span<const std::uint8_t> png) {
  const fs::path path = path_of(name);
  if (!written_.insert(path).second) fail_of_clash(path);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw_create_folder_error(folder_, error.value());
  AtomicFile file(path);
  file.write(std::as_bytes(png));
  file.commit();
  return path.string();
}

std::string PredictedImages::write(const std::string& name, std::span<const double> values) {
  return write_file(name, encode_png(image_of(image_, values)));
}

std::string PredictedImages::write_classes(const std::string& name, std::span<const std::uint8_t> classes) {
  return write_file(name, encode_grey_png(image_[2], image_[1], classes));
}

}  // namespace plexaura
