#include "models/config/config.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "core/base/did_you_mean.h"
#include "models/config/section_state.h"
#include "training/files/file.h"

namespace plexaura {

namespace {
constexpr std::uint64_t largest_file = std::uint64_t{1} << 20;
}

// Functions that visit all sections that were read. They need the private state of Section.
struct Section::Walk {
  using Read = State::Read;

  [[noreturn]] static void refuse(const State& section, const YamlMember& member) {
    const std::string place = section.path.empty() ? "at the top" : "in " + section.path;
    if (section.asked.contains(member.key))
      throw UserError(fmt::format("{}: the key {} {} has no effect here; remove it",
                                  to_string(member.position), quoted_for_error(member.key), place));
    const std::vector<std::string> known(section.asked.begin(), section.asked.end());
    throw UserError(fmt::format("{}: unknown key {} {}{} (known keys: {})", to_string(member.position),
                                quoted_for_error(member.key), place, did_you_mean(member.key, known),
                                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }

  static void check_used(const State& section) {
    for (const YamlMember& member : section.written->members) {
      const auto read = section.read.find(member.key);
      if (read == section.read.end()) refuse(section, member);
      for (const auto& below : read->second.sections) check_used(*below);
    }
  }

  static void collect(const State& section, std::map<std::string, std::string>& values) {
    for (const auto& [key, read] : section.read) {
      if (read.kind == Read::Kind::value) values.emplace(section.path_of(key), read.value);
      for (const auto& below : read.sections) collect(*below, values);
    }
  }
};

Config Config::load(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse(read_text_file(path, largest_file), path.string(), overrides);
}

Config Config::parse(const std::string& text, const std::string& name,
                     const std::vector<std::string>& overrides) {
  if (text.size() > largest_file)
    throw UserError(fmt::format("{}: the configuration has {} bytes; at most {} are read", name, text.size(),
                                largest_file));
  auto written = std::make_shared<YamlValue>(parse_yaml(text, name));
  if (written->kind == YamlValue::Kind::empty)
    throw UserError(fmt::format("{}: the configuration is empty; it must be a map of sections", name));
  if (written->kind != YamlValue::Kind::map)
    throw UserError(fmt::format("{}: the configuration must be a map of sections such as 'training:'",
                                to_string(written->position)));
  for (const std::string& override_text : overrides) apply_override(*written, override_text);
  auto root = std::make_shared<Section::State>();
  root->position = written->position;
  root->written = std::move(written);
  return Config(Section(std::move(root)));
}

void Section::check_keys(const std::vector<std::string>& known) const {
  state_->asked.insert(known.begin(), known.end());
  for (const YamlMember& member : state_->written->members)
    if (std::ranges::find(known, member.key) == known.end()) Walk::refuse(*state_, member);
}

void Section::check_all_used() const { Walk::check_used(*state_); }

std::map<std::string, std::string> Config::values() const {
  std::map<std::string, std::string> values;
  Section::Walk::collect(*root_.state_, values);
  return values;
}

}  // namespace plexaura
