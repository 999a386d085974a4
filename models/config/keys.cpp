#include "models/config/keys.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <string_view>
#include <type_traits>

#include "models/config/rules.h"

namespace plexaura {
namespace {

// The keys before the present one whose needs are met, by name, with their values.
using InForce = std::map<std::string, std::string>;

NumberRange range_of(const Key& key) {
  NumberRange range = key.range;
  if (key.most) range.maximum = std::min(range.maximum, key.most());
  return range;
}

IntegerRange whole_range_of(const Key& key) {
  const NumberRange range = range_of(key);
  IntegerRange whole;
  if (std::holds_alternative<int*>(key.into)) whole.maximum = std::numeric_limits<int>::max();
  if (std::isfinite(range.minimum)) whole.minimum = static_cast<std::int64_t>(range.minimum);
  if (std::isfinite(range.maximum)) whole.maximum = static_cast<std::int64_t>(range.maximum);
  return whole;
}

// Reads a key of each type into its target. `name` is the last part of the key's name.
class Reader {
 public:
  Reader(const Section& section, const Key& key, const std::string& name)
      : section_(section), key_(key), name_(name) {}

  void operator()(bool* into) const { *into = section_.flag(name_); }
  void operator()(int* into) const {
    *into = static_cast<int>(section_.integer(name_, whole_range_of(key_)));
  }
  void operator()(std::int64_t* into) const { *into = section_.integer(name_, whole_range_of(key_)); }
  void operator()(double* into) const {
    *into = section_.number(name_, range_of(key_), key_.rule.empty() ? "a number" : key_.rule);
  }
  void operator()(std::string* into) const { *into = text(); }
  void operator()(std::filesystem::path* into) const { *into = section_.location(name_); }
  void operator()(std::vector<std::int64_t>* into) const {
    *into = section_.integers(name_, whole_range_of(key_));
  }
  void operator()(std::vector<double>* into) const { *into = section_.numbers(name_, range_of(key_)); }
  void operator()(std::vector<std::string>* into) const { *into = section_.texts(name_); }
  void operator()(std::optional<std::int64_t>* into) const {
    *into = key_.word.empty() ? section_.integer(name_, whole_range_of(key_))
                              : section_.integer_or_word(name_, key_.word, whole_range_of(key_));
  }
  void operator()(std::optional<double>* into) const { *into = section_.number(name_, range_of(key_)); }
  void operator()(std::optional<std::string>* into) const { *into = text(); }
  void operator()(std::optional<std::vector<std::int64_t>>* into) const {
    *into = section_.integers(name_, whole_range_of(key_));
  }
  void operator()(std::optional<std::vector<double>>* into) const {
    *into = key_.word.empty() ? section_.numbers(name_, range_of(key_))
                              : section_.numbers_or_word(name_, key_.word, range_of(key_));
  }
  void operator()(std::optional<std::vector<std::string>>* into) const { *into = section_.texts(name_); }
  void operator()(const Words& into) const {
    const std::string word = section_.choice(name_, into.words);
    into.choose(static_cast<std::size_t>(std::ranges::find(into.words, word) - into.words.begin()));
  }
  void operator()(std::vector<Section>* into) const { *into = section_.sections(name_); }

 private:
  std::string text() const {
    if (!key_.words.empty()) return section_.choice(name_, key_.words);
    return section_.text(name_, key_.rule.empty() ? "a text" : key_.rule);
  }

  const Section& section_;
  const Key& key_;
  const std::string& name_;
};

// Returns the present value of a key of each type as YAML; an empty text if it has none.
struct Writer {
  const Key& key;

  std::string operator()(const int* value) const { return to_yaml(std::int64_t{*value}); }
  std::string operator()(const std::filesystem::path* value) const { return to_yaml(value->string()); }
  std::string operator()(const Words& value) const { return to_yaml(value.words.at(value.chosen())); }
  std::string operator()(const std::vector<Section>* /*value*/) const { return {}; }
  template <class T>
  std::string operator()(const T* value) const {
    return to_yaml(*value);
  }
  template <class T>
  std::string operator()(const std::optional<T>* value) const {
    if (*value) return to_yaml(**value);
    return key.word.empty() ? "" : to_yaml(key.word);
  }
};

// Returns a YAML text without quotes, as Need::values has it.
std::string without_quotes(std::string yaml) {
  return yaml.starts_with('"') ? yaml.substr(1, yaml.size() - 2) : yaml;
}

// Returns a key's section and the last part of its name. If the name has a dot, the section is an inner one
// of the table's section.
std::pair<Section, std::string> place_of(const Section& section, const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {section, name};
  return {section.section(name.substr(0, dot)), name.substr(dot + 1)};
}

// True if the key is given. Also marks it as known.
bool is_written(const Section& section, const std::string& name) {
  if (!section.has(name.substr(0, name.find('.')))) return false;
  const auto [within, last] = place_of(section, name);
  return within.has(last);
}

bool is_met(const Need& need, const InForce& in_force) {
  if (need.key.empty()) return true;
  const auto found = in_force.find(need.key);
  return found != in_force.end() &&
         (need.values.empty() || std::ranges::find(need.values, found->second) != need.values.end());
}

std::string path_in(const Section& section, const std::string& name) {
  return section.path().empty() ? name : section.path() + '.' + name;
}

// True if a key can have one of these values. Also true if `values` is empty, which means any value.
bool permits_any(const Key& key, const std::vector<std::string>& values) {
  const auto* const words = std::get_if<Words>(&key.into);
  const std::vector<std::string>& permitted = words != nullptr ? words->words : key.words;
  return values.empty() || permitted.empty() ||
         std::ranges::find_first_of(permitted, values) != permitted.end();
}

// Returns a text such as "training.optimizer.name is adam; remove it, or choose sgd or lars". `wanted` has
// the values of the key that another key needs; empty: any value.
std::string why_without_effect(const Section& section, const std::vector<Key>& keys, const Key& key,
                               const InForce& in_force, const std::vector<std::string>& wanted = {}) {
  const Need& need = key.needs;
  const std::string path = path_in(section, need.key);
  // If the needed key cannot have such a value at present, the text explains instead what that key itself
  // needs.
  const auto fits = [&](const Key& other) {
    return other.name == need.key && permits_any(other, need.values);
  };
  const auto is_possible = [&](const Key& other) { return fits(other) && is_met(other.needs, in_force); };
  const auto other = std::ranges::find_if(keys, fits);
  if (other != keys.end() && std::ranges::none_of(keys, is_possible))
    return why_without_effect(section, keys, *other, in_force, need.values);
  const auto found = in_force.find(need.key);
  if (found == in_force.end()) return fmt::format("{0} is not given; remove it, or give {0}", path);
  std::vector<std::string> values;
  for (const Key& row : keys)
    if (row.name == key.name && row.needs.key == need.key && permits_any(row, wanted))
      values.insert(values.end(), row.needs.values.begin(), row.needs.values.end());
  return fmt::format("{} is {}{}{}; remove it, or choose {}", path, found->second,
                     need.why.empty() ? "" : ", ", need.why, joined_with_or(values));
}

// Returns the row with the key's name for which only one value is missing: that of another key whose own need
// is met. Returns `key` if there is no such row. So `gamma` of a cyclic schedule lacks a mode, and not
// another schedule.
const Key& nearest_row(const std::vector<Key>& keys, const Key& key, const InForce& in_force) {
  for (const Key& row : keys)
    if (row.name == key.name && std::ranges::any_of(keys, [&](const Key& other) {
          return other.name == row.needs.key && permits_any(other, row.needs.values) &&
                 !other.needs.key.empty() && is_met(other.needs, in_force);
        }))
      return row;
  return key;
}

void refuse(const Section& section, const std::vector<Key>& keys, const Key& key, const InForce& in_force) {
  const auto [within, last] = place_of(section, key.name);
  throw within.error(last, "has no effect here, because " +
                               why_without_effect(section, keys, nearest_row(keys, key, in_force), in_force));
}

// Throws for an inner section, even an empty one, if none of its keys has an effect.
void check_sections_within(const Section& section, const std::vector<Key>& keys, const InForce& in_force) {
  for (const Key& key : keys) {
    const std::string within = key.name.substr(0, key.name.find('.'));
    if (within == key.name || !section.has(within)) continue;
    const auto applies = [&](const Key& other) {
      return other.name.starts_with(within + '.') && is_met(other.needs, in_force);
    };
    if (std::ranges::none_of(keys, applies))
      throw section.error(within,
                          "has no effect here, because " + why_without_effect(section, keys, key, in_force));
  }
}

void read_key(const Section& section, const Key& key) {
  const auto [within, last] = place_of(section, key.name);
  if (within.has(last) || key.required) return std::visit(Reader(within, key, last), key.into);
  if (key.late_default.set) key.late_default.set();
  if (const std::string yaml = value_of(key); !yaml.empty()) within.note(last, yaml);
}

}  // namespace

std::string value_of(const Key& key) { return std::visit(Writer{key}, key.into); }

void read_keys(const Section& section, const std::vector<Key>& keys) {
  for (const Key& key : keys)
    is_written(section, key.name);  // marks the key as known, so that errors can suggest it
  InForce in_force;
  for (const Key& key : keys) {
    const auto applies = [&](const Key& other) {
      return other.name == key.name && is_met(other.needs, in_force);
    };
    if (is_met(key.needs, in_force)) {
      read_key(section, key);
      if (const std::string yaml = value_of(key); !yaml.empty()) in_force[key.name] = without_quotes(yaml);
    } else if (is_written(section, key.name) && std::ranges::none_of(keys, applies)) {
      refuse(section, keys, key, in_force);
    }
  }
  check_sections_within(section, keys, in_force);
}

}  // namespace plexaura
