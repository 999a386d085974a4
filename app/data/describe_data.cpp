#include "app/data/describe_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string_view>
#include <vector>

#include "app/data/open_pixels.h"
#include "models/config/yaml_tree.h"

namespace plexaura {

namespace {

std::vector<std::int64_t> samples_of_classes(const Dataset& dataset) {
  std::vector<std::int64_t> counts(dataset.class_names().size());
  for (const std::int64_t label : labels_of(dataset)) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

std::string others_text(std::span<const std::int64_t> counts) {
  const auto [least, most] = std::ranges::minmax(counts);
  const std::string number = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  return fmt::format(" and {} more ({} each)", counts.size(), number);
}

}  // namespace

std::string counted(std::int64_t number, const char* one, const char* several) {
  return fmt::format("{} {}", number, number == 1 ? one : several);
}

std::string classes_text(const Dataset& dataset) {
  constexpr std::size_t most_shown = 12;
  const std::vector<std::int64_t> counts = samples_of_classes(dataset);
  const std::size_t shown = std::min(counts.size(), most_shown);
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < shown; ++i)
    classes.push_back(fmt::format("{} ({})", quoted_for_error(dataset.class_names()[i]), counts[i]));
  return fmt::format("{}{}", fmt::join(classes, ", "),
                     shown == counts.size() ? "" : others_text(std::span(counts).subspan(shown)));
}

std::string ignored_text(const IgnoredFiles& ignored) {
  std::vector<std::string> parts;
  for (const auto& [format, count] : ignored.pictures)
    parts.push_back(fmt::format("{} in {}", count, format));
  if (ignored.others > 0)
    parts.push_back(counted(ignored.others, "file that is not an image", "files that are not images"));
  if (ignored.beside_classes > 0)
    parts.push_back(
        counted(ignored.beside_classes, "image in no folder of a class", "images in no folder of a class"));
  if (parts.empty()) return "";
  return fmt::format(" (ignored: {}{})", fmt::join(parts, ", "),
                     ignored.pictures.empty() ? "" : "; only JPEG and PNG are read");
}

std::string preparation_text(const ImageFolderOptions& train, const ImageFolderOptions& validation,
                             const PixelScale& pixels) {
  const std::int64_t side = validation.image_size;
  const std::string centre = fmt::format("shorter side scaled to {}, {}x{} from the centre",
                                         shorter_side_of(validation), side, side);
  const std::string random = fmt::format(
      "random crop of {:g} to 1 of the area, scaled to {}x{}{}; validation: ", train.min_crop_scale, side,
      side, train.horizontal_flip ? ", half of them flipped" : "");
  std::vector<std::string_view> names;
  for (const auto& operation : train.operations) names.push_back(operation->name());
  const std::string listed = fmt::format("{}; validation: ", fmt::join(names, ", "));
  return fmt::format("{}{}; {}",
                     !train.augment  ? ""
                     : names.empty() ? random
                                     : listed,
                     centre, normalisation_text(pixels));
}

}  // namespace plexaura
