#include "training/checkpoints/settings.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr std::string_view setting_prefix = "setting.";  // precedes the key of a setting in the metadata

// A key of the section `data` on which the meaning of weights depends. The defaults of the members suit most
// keys.
struct DataSetting {
  std::string_view key;
  std::string_view no_effect = {};  // a value that is not stored, because it changes nothing
  bool images_only = false;         // stored only if samples are images of bytes
  // True: the value is stored in quotes, as the default is. The YAML file may give the word without quotes.
  bool in_quotes = false;
  bool some_formats =
      false;             // only some formats have the key, and weights may be used on data of another format
  bool in_files = true;  // true: the key also matters for files that are predicted
  // The value if the key is not given. Empty: there is none.
  std::string_view absent = {};
  // If not empty: `absent` holds only where this other key is given.
  std::string_view needs = {};
};

constexpr DataSetting data_settings[]{
    {.key = "data.standardise"},
    {.key = "data.standardise_targets", .some_formats = true},
    {.key = "data.mean", .images_only = true, .absent = "0"},
    {.key = "data.stddev", .images_only = true, .absent = "1"},
    {.key = "data.missing", .in_quotes = true, .some_formats = true},
    {.key = "data.missing_value",
     .no_effect = "0",
     .some_formats = true,
     .absent = "0",
     .needs = "data.missing"},
    {.key = "data.noise", .no_effect = "0", .in_files = false},
};

// Returns the row of a key. A key without a row, such as that of a model, has the defaults of a row.
DataSetting row_of(std::string_view key) {
  const auto* const found = std::ranges::find(data_settings, key, &DataSetting::key);
  return found == std::end(data_settings) ? DataSetting{.key = key} : *found;
}

Settings settings_in(const Metadata& metadata) {
  Settings settings;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(setting_prefix)) settings.emplace(key.substr(setting_prefix.size()), value);
  return settings;
}

// Returns the numbers of a list, or one number if all are equal: a single number for grey images equals three
// for colours.
std::string shortest_list(std::string_view text) {
  std::vector<double> numbers;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    double number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? end : at + 1;
  }
  const bool are_same = std::ranges::adjacent_find(numbers, std::ranges::not_equal_to()) == numbers.end();
  if (are_same && !numbers.empty()) numbers.resize(1);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

// Returns the value by which a setting is compared. Returns nothing if the setting is not given and has no
// default.
std::optional<std::string> compared_value(const Settings& settings, const DataSetting& row) {
  const auto found = settings.find(std::string(row.key));
  std::string value(row.absent);
  if (found != settings.end())
    value = found->second;
  else if (value.empty() || (!row.needs.empty() && !settings.contains(std::string(row.needs))))
    return std::nullopt;
  return row.images_only ? shortest_list(value) : value;
}

bool is_same(const Settings& then, const Settings& now, const DataSetting& row) {
  const std::optional<std::string> before = compared_value(then, row);
  const std::optional<std::string> after = compared_value(now, row);
  return before == after || (row.some_formats && (!before || !after));
}

std::string value_text(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "not given" : found->second;
}

}  // namespace

Settings data_settings_of_weights(const Settings& settings, bool has_images) {
  Settings kept;
  for (const DataSetting& row : data_settings) {
    const auto found = settings.find(std::string(row.key));
    if (found == settings.end() || (row.images_only && !has_images)) continue;
    const auto& [key, value] = *found;
    if (!row.no_effect.empty() && value == row.no_effect) continue;
    kept[key] = row.in_quotes && !value.starts_with('"') ? fmt::format("\"{}\"", value) : value;
  }
  return kept;
}

void add_settings(Metadata& metadata, const Settings& settings) {
  for (const auto& [key, value] : settings) metadata[std::string(setting_prefix) + key] = value;
}

bool has_settings(const Metadata& metadata) { return !settings_in(metadata).empty(); }

void check_settings(const std::filesystem::path& path, const Metadata& metadata, const Settings& now,
                    std::string_view advice, WeightsUse use) {
  const Settings then = settings_in(metadata);
  if (then.empty() || now.empty()) return;
  Settings all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [key, value] : all) {
    const DataSetting row = row_of(key);
    if ((use == WeightsUse::files && !row.in_files) || is_same(then, now, row)) continue;
    throw UserError(fmt::format("{} was made with {} {} and now it is {}; {}", path.string(), key,
                                value_text(then, key), value_text(now, key), advice));
  }
}

}  // namespace plexaura
