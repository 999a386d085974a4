#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "models/config/yaml_tree.h"

namespace plexaura {

// The range of whole numbers that a key permits, both ends included.
struct IntegerRange {
  std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

// The range of numbers that a key permits: `minimum` and `maximum` are included, `above` and `below` are
// excluded. Only finite numbers are permitted.
struct NumberRange {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  double above = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
};

// A map of a configuration: `training`, or one element of `layers`. The object is a small handle, and copies
// refer to the same section.
//
// Sections are usually read by tables of keys, see read_keys(). read_keys() uses the functions below, one for
// each type of key: `integer("epochs", {.minimum = 1})` throws if the key is missing. Reading a key marks it
// as used, and stores its value for Config::values(). Every mistake is a UserError of one sentence with the
// place, the key, what was found, and what is permitted. One thread at a time may use it.
class Section {
 public:
  std::int64_t integer(std::string_view key, IntegerRange range = {}) const;
  // Reads a whole number. Returns nothing if the value is `word` instead.
  std::optional<std::int64_t> integer_or_word(std::string_view key, std::string_view word,
                                              IntegerRange range = {}) const;
  // Reads a number. `what` describes it in the error about a value that is no number.
  double number(std::string_view key, NumberRange range = {}, std::string_view what = "a number") const;
  // Reads a text. `rule` describes it in the error about a value that is a list or a section.
  std::string text(std::string_view key, std::string_view rule = "a text") const;
  // Reads the path of a file or folder; "~" means the user's home folder. See expand_home().
  std::filesystem::path location(std::string_view key) const;
  bool flag(std::string_view key) const;  // reads true or false
  std::string choice(std::string_view key, const std::vector<std::string>& words) const;
  std::vector<std::int64_t> integers(std::string_view key, IntegerRange range = {}) const;
  std::vector<double> numbers(std::string_view key, NumberRange range = {}) const;
  // Reads a list of numbers. Returns nothing if the value is `word` instead.
  std::optional<std::vector<double>> numbers_or_word(std::string_view key, std::string_view word,
                                                     NumberRange range = {}) const;
  std::vector<std::string> texts(std::string_view key) const;

  // Stores a YAML value for a key that is not given, so that Config::values() contains it.
  void note(std::string_view key, std::string yaml) const;

  // Returns a map within this one. If the key is not given, returns an empty map, whose required keys are then missing.
  Section section(std::string_view key) const;
  // Returns a list of maps, such as `layers`.
  std::vector<Section> sections(std::string_view key) const;

  // True if the key is given. This does not mark it as used.
  bool has(std::string_view key) const;

  // Return the position of this section, and that of a key's value. For a key that is not given, position(key) returns
  // the position of the section.
  const YamlPosition& position() const;
  const YamlPosition& position(std::string_view key) const;
  // Returns a text such as "training" or "model.layers[2]"; an empty text for the whole configuration.
  const std::string& path() const;

  // Throws UserError for the first key, in this section or below, that was not read. The error suggests a
  // similar key of its section.
  void check_all_used() const;

  // Throws UserError if one of these keys is given: "... has no effect here, because <because>; remove it".
  void refuse(std::initializer_list<std::string_view> keys, std::string_view because) const;

  // Throws UserError for the first key of this section that is not in `known`. Used by a reader that leaves
  // some of these keys to other readers.
  void check_keys(const std::vector<std::string>& known) const;

  // Returns the error for a rule that only the caller knows: `throw section.error("units", "does not fit the
  // labels")` reports "models/iris.yaml:7:10: model.layers[2].units does not fit the labels".
  UserError error(std::string_view key, std::string_view what) const;

 private:
  friend class Config;
  struct State;
  struct Walk;
  explicit Section(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const YamlValue& require(std::string_view key, std::string_view rule) const;
  UserError wrong(std::string_view key, const YamlValue& value, std::string_view rule) const;
  template <class T, class Range>
  std::vector<T> list(std::string_view key, const Range& range, const std::string& rule) const;

  std::shared_ptr<State> state_;
};

// A configuration: a YAML file of sections, with overrides from the command line. Every key must be read by
// some part of the program. Positions are stored, so that errors and graph nodes can name the line that they
// come from.
class Config {
 public:
  // Reads a file of at most 1 MiB. An override has the form "training.batch_size=8" (see apply_override); the
  // last one for a key wins. Throws UserError for a missing or empty file and a wrong override, and with a position
  // for everything that parse_yaml() refuses.
  static Config load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
  // Reads a text as load() reads a file. `name` replaces the file's name in positions.
  static Config parse(const std::string& text, const std::string& name,
                      const std::vector<std::string>& overrides = {});

  Section root() const { return root_; }
  Section section(std::string_view key) const { return root_.section(key); }

  // Calls Section::check_all_used() for the whole configuration. Called after everything was built from the
  // configuration: an option without effect is an error.
  void check_all_used() const { root_.check_all_used(); }

  // Returns all values that were read, including defaults, by path ("training.batch_size"). The result is
  // equal for configurations with equal effect, however they are written, and shows by name what differs
  // between two.
  std::map<std::string, std::string> values() const;

 private:
  explicit Config(Section root) : root_(std::move(root)) {}

  Section root_;
};

}  // namespace plexaura
