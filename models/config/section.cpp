#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include "core/base/did_you_mean.h"
#include "models/config/config.h"
#include "models/config/home_folder.h"
#include "models/config/rules.h"
#include "models/config/section_state.h"

namespace plexaura {
namespace {

using Kind = YamlValue::Kind;

template <class T>
std::optional<T> parse_number(const YamlValue& value) {
  if (value.kind != Kind::scalar) return std::nullopt;
  std::string_view text = value.text;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_within(const YamlValue& value, const IntegerRange& range) {
  const auto number = parse_number<std::int64_t>(value);
  if (!number || *number < range.minimum || *number > range.maximum) return std::nullopt;
  return number;
}

std::optional<double> parse_within(const YamlValue& value, const NumberRange& range) {
  const auto number = parse_number<double>(value);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  const bool fits =
      *number >= range.minimum && *number <= range.maximum && *number > range.above && *number < range.below;
  return fits ? number : std::nullopt;
}

std::optional<bool> parse_flag(const YamlValue& value) {
  constexpr std::array words_for_true{"true", "True", "TRUE"};
  constexpr std::array words_for_false{"false", "False", "FALSE"};
  if (value.kind != Kind::scalar) return std::nullopt;
  if (std::ranges::find(words_for_true, value.text) != words_for_true.end()) return true;
  if (std::ranges::find(words_for_false, value.text) != words_for_false.end()) return false;
  return std::nullopt;
}

std::string list_rule(const IntegerRange& range) { return rule_of("a list of whole numbers", range); }
std::string list_rule(const NumberRange& range) { return rule_of("a list of numbers", range); }
std::string item_rule(const IntegerRange& range) { return rule_of("a whole number", range); }
std::string item_rule(const NumberRange& range) { return rule_of("a number", range); }

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case Kind::empty:
      return "empty";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a section of keys";
    case Kind::scalar:
      break;
  }
  return quoted_for_error(value.text);
}

template <class T, class Map>
T keep(Map& read, std::string_view key, T value) {
  read[std::string(key)].value = to_yaml(value);
  return value;
}

}  // namespace

UserError Section::error(std::string_view key, std::string_view what) const {
  return UserError(fmt::format("{}: {} {}", to_string(position(key)), state_->path_of(key), what));
}

UserError Section::wrong(std::string_view key, const YamlValue& value, std::string_view rule) const {
  return UserError(fmt::format("{}: {} is {}; it must be {}", to_string(value.position), state_->path_of(key),
                               describe(value), rule));
}

void Section::refuse(std::initializer_list<std::string_view> keys, std::string_view because) const {
  for (const std::string_view key : keys)
    if (state_->find(key) != nullptr)
      throw error(key, fmt::format("has no effect here, because {}; remove it", because));
}

const YamlValue& Section::require(std::string_view key, std::string_view rule) const {
  if (has(key)) return state_->find(key)->value;
  // The keys that were not read. One of them may be misspelt.
  std::vector<std::string> unread;
  for (const YamlMember& member : state_->written->members)
    if (!state_->asked.contains(member.key)) unread.push_back(member.key);
  for (const std::string& word : unread) {
    if (!nearest(word, std::array{std::string(key)}).empty())
      throw error(key, fmt::format("is missing; is {} at {} meant for it? it must be {}",
                                   quoted_for_error(word), to_string(state_->find(word)->position), rule));
  }
  throw error(key, fmt::format("is missing; it must be {}", rule));
}

bool Section::has(std::string_view key) const {
  state_->asked.emplace(key);
  return state_->find(key) != nullptr;
}

const YamlPosition& Section::position() const { return state_->position; }

const YamlPosition& Section::position(std::string_view key) const {
  const YamlMember* member = state_->find(key);
  return member ? member->value.position : state_->position;
}

const std::string& Section::path() const { return state_->path; }

std::int64_t Section::integer(std::string_view key, IntegerRange range) const {
  const std::string rule = item_rule(range);
  const YamlValue& value = require(key, rule);
  if (const auto number = parse_within(value, range)) return keep(state_->read, key, *number);
  throw wrong(key, value, rule);
}

std::optional<std::int64_t> Section::integer_or_word(std::string_view key, std::string_view word,
                                                     IntegerRange range) const {
  const std::string rule = fmt::format("{}, or {}", item_rule(range), word);
  const YamlValue& value = require(key, rule);
  if (value.kind == Kind::scalar && value.text == word) {
    keep(state_->read, key, value.text);
    return std::nullopt;
  }
  if (const auto number = parse_within(value, range)) return keep(state_->read, key, *number);
  throw wrong(key, value, rule);
}

double Section::number(std::string_view key, NumberRange range, std::string_view what) const {
  const std::string rule = rule_of(what, range);
  const YamlValue& value = require(key, rule);
  if (const auto number = parse_within(value, range)) return keep(state_->read, key, *number);
  throw wrong(key, value, rule);
}

std::string Section::text(std::string_view key, std::string_view rule) const {
  const YamlValue& value = require(key, rule);
  if (value.kind != Kind::scalar) throw wrong(key, value, rule);
  return keep(state_->read, key, value.text);
}

std::filesystem::path Section::location(std::string_view key) const {
  const std::string written = text(key);
  try {
    return keep(state_->read, key, expand_home(written).string());
  } catch (const UserError& wrong) {
    throw error(key, wrong.what());
  }
}

bool Section::flag(std::string_view key) const {
  const YamlValue& value = require(key, "true or false");
  if (const auto flag = parse_flag(value)) return keep(state_->read, key, *flag);
  throw wrong(key, value, "true or false");
}

std::string Section::choice(std::string_view key, const std::vector<std::string>& words) const {
  std::string rule = fmt::format("one of {}", fmt::join(words, ", "));
  const YamlValue& value = require(key, rule);
  if (value.kind == Kind::scalar) {
    if (std::ranges::find(words, value.text) != words.end()) return keep(state_->read, key, value.text);
    if (const std::string meant = nearest(value.text, words); !meant.empty())
      rule += fmt::format(" (did you mean '{}'?)", meant);
  }
  throw wrong(key, value, rule);
}

template <class T, class Range>
std::vector<T> Section::list(std::string_view key, const Range& range, const std::string& rule) const {
  const YamlValue& value = require(key, rule);
  if (value.kind != Kind::list) throw wrong(key, value, rule);
  std::vector<T> numbers;
  for (const YamlValue& item : value.items) {
    const auto number = parse_within(item, range);
    if (!number) throw wrong(fmt::format("{}[{}]", key, numbers.size()), item, item_rule(range));
    numbers.push_back(*number);
  }
  return keep(state_->read, key, std::move(numbers));
}

std::vector<std::int64_t> Section::integers(std::string_view key, IntegerRange range) const {
  return list<std::int64_t>(key, range, list_rule(range));
}

std::vector<double> Section::numbers(std::string_view key, NumberRange range) const {
  return list<double>(key, range, list_rule(range));
}

std::optional<std::vector<double>> Section::numbers_or_word(std::string_view key, std::string_view word,
                                                            NumberRange range) const {
  const std::string rule = fmt::format("{}, or {}", list_rule(range), word);
  const YamlValue& value = require(key, rule);
  if (value.kind != Kind::scalar || value.text != word) return list<double>(key, range, rule);
  keep(state_->read, key, value.text);
  return std::nullopt;
}

std::vector<std::string> Section::texts(std::string_view key) const {
  constexpr std::string_view rule = "a list of texts";
  const YamlValue& value = require(key, rule);
  if (value.kind != Kind::list) throw wrong(key, value, rule);
  std::vector<std::string> texts;
  for (const YamlValue& item : value.items) {
    if (item.kind != Kind::scalar) throw wrong(fmt::format("{}[{}]", key, texts.size()), item, "a text");
    texts.push_back(item.text);
  }
  return keep(state_->read, key, std::move(texts));
}

void Section::note(std::string_view key, std::string yaml) const {
  state_->read[std::string(key)].value = std::move(yaml);
}

Section Section::section(std::string_view key) const {
  const bool is_written = has(key);
  const auto known = state_->read.find(key);
  if (known != state_->read.end() && known->second.kind == State::Read::Kind::section)
    return Section(known->second.sections.front());
  auto made = std::make_shared<State>();
  if (is_written) {
    const YamlMember& member = *state_->find(key);
    if (member.value.kind != Kind::map && member.value.kind != Kind::empty)
      throw wrong(key, member.value, "a section of keys");
    made->written = std::shared_ptr<const YamlValue>(state_->written, &member.value);
    made->position = member.position;
  } else {
    made->written = std::make_shared<const YamlValue>();
    made->position = state_->position;
  }
  made->path = state_->path_of(key);
  state_->read[std::string(key)] = {"", {made}, State::Read::Kind::section};
  return Section(made);
}

std::vector<Section> Section::sections(std::string_view key) const {
  constexpr std::string_view rule = "a list of sections";
  const YamlValue& value = require(key, rule);
  if (value.kind != Kind::list) throw wrong(key, value, rule);
  State::Read& read = state_->read[std::string(key)];
  read.kind = State::Read::Kind::list_of_sections;
  std::vector<Section> sections;
  for (std::size_t index = 0; index < value.items.size(); ++index) {
    const YamlValue& item = value.items[index];
    const std::string name = fmt::format("{}[{}]", key, index);
    if (item.kind != Kind::map) throw wrong(name, item, "a section of keys");
    if (read.sections.size() == index) {
      auto made = std::make_shared<State>();
      made->written = std::shared_ptr<const YamlValue>(state_->written, &item);
      made->position = item.position;
      made->path = state_->path_of(name);
      read.sections.push_back(std::move(made));
    }
    sections.push_back(Section(read.sections[index]));
  }
  return sections;
}

}  // namespace plexaura
