#include "app/data/describe_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <vector>

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

}  // namespace plexaura
