#include "app/data/trained_data.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::string column_key(std::size_t index) { return fmt::format("data.column {}", index); }
std::string class_key(std::size_t index) { return fmt::format("data.class {}", index); }

// Removes a number and the blank after it from the beginning of a text. Returns false if there is none.
bool take_number(std::string_view& text, float& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return std::isfinite(number);
}

}  // namespace

bool operator==(const TrainedData& a, const TrainedData& b) {
  return a.columns == b.columns && a.scale.mean == b.scale.mean && a.scale.stddev == b.scale.stddev &&
         a.classes == b.classes;
}

Metadata to_metadata(const TrainedData& data) {
  Metadata metadata;
  for (std::size_t i = 0; i < data.columns.size(); ++i)
    metadata[column_key(i)] =
        fmt::format("{} {} {}", data.scale.mean[i], data.scale.stddev[i], data.columns[i]);
  for (std::size_t i = 0; i < data.classes.size(); ++i) metadata[class_key(i)] = data.classes[i];
  return metadata;
}

std::optional<TrainedData> trained_data_in(const Metadata& metadata, const std::filesystem::path& path) {
  TrainedData data;
  for (auto found = metadata.find(column_key(0)); found != metadata.end();
       found = metadata.find(column_key(data.columns.size()))) {
    std::string_view text = found->second;
    float mean = 0;
    float stddev = 0;
    if (!take_number(text, mean) || !take_number(text, stddev) || !(stddev > 0))
      throw UserError(fmt::format(
          "{}: its metadata has {} '{}', which is not a mean, a deviation above 0 and a name; name another "
          "file of weights",
          path.string(), found->first, found->second));
    data.scale.mean.push_back(mean);
    data.scale.stddev.push_back(stddev);
    data.columns.emplace_back(text);
  }
  for (auto found = metadata.find(class_key(0)); found != metadata.end();
       found = metadata.find(class_key(data.classes.size())))
    data.classes.push_back(found->second);
  if (data.classes.empty()) return std::nullopt;
  return data;
}

}  // namespace plexaura
