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

// Which whole numbers a key takes, both ends included.
struct IntegerRange {
  std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

// Which numbers a key takes: `minimum` and `maximum` included, `above` and `below` excluded. Always finite.
struct NumberRange {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  double above = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
};

// A map of a configuration: `training`, or one element of `layers`. A small handle; copies are one section.
//
// Sections are read by tables of keys, see read_keys(). Below that, each key is read by the function of its type:
// `integer("epochs", {.minimum = 1})` throws where the key is missing. Reading marks a key as used and keeps its value for
// Config::values. Everything wrong is a UserError of one sentence: place, key, what was found, what it must be. One
// thread at a time.
class Section {
 public:
  std::int64_t integer(std::string_view key, IntegerRange range = {}) const;
  // A whole number, or this word, which gives none.
  std::optional<std::int64_t> integer_or_word(std::string_view key, std::string_view word,
                                              IntegerRange range = {}) const;
  // `what`: what the number is, for the error where it is none.
  double number(std::string_view key, NumberRange range = {}, std::string_view what = "a number") const;
  // `rule`: what the text must be, for the error where it is a list or a section.
  std::string text(std::string_view key, std::string_view rule = "a text") const;
  // The path of a file or folder; "~" is the user's home folder. See expand_home().
  std::filesystem::path location(std::string_view key) const;
  bool flag(std::string_view key) const;  // true or false
  std::string choice(std::string_view key, const std::vector<std::string>& words) const;
  std::vector<std::int64_t> integers(std::string_view key, IntegerRange range = {}) const;
  std::vector<double> numbers(std::string_view key, NumberRange range = {}) const;
  std::vector<std::string> texts(std::string_view key) const;

  // Keeps for Config::values the value, as YAML, of a key that is not written.
  void note(std::string_view key, std::string yaml) const;

  // A map within this one; where it is not written, an empty one, whose required keys are then missing.
  Section section(std::string_view key) const;
  // A list of maps, such as `layers`.
  std::vector<Section> sections(std::string_view key) const;

  // Whether the key is written, which does not count as reading it.
  bool has(std::string_view key) const;

  // Where this section begins, and where the value of a key stands (where it is not written: the section).
  const YamlPosition& position() const;
  const YamlPosition& position(std::string_view key) const;
  const std::string& path() const;  // "training", "model.layers[2]"; empty for the whole configuration

  // Throws UserError for the first key, here or below, that nobody has read, with the nearest key that was
  // asked for in its section.
  void check_all_used() const;

  // Throws UserError where one of these keys is written: "... has no effect here, because <because>; remove it".
  void refuse(std::initializer_list<std::string_view> keys, std::string_view because) const;

  // Throws UserError for the first key of this section that is none of `known`. For a reader that leaves some
  // of them to others.
  void check_keys(const std::vector<std::string>& known) const;

  // The error for a rule that only the caller knows: `throw section.error("units", "does not fit the
  // labels")` says "models/iris.yaml:7:10: model.layers[2].units does not fit the labels".
  UserError error(std::string_view key, std::string_view what) const;

 private:
  friend class Config;
  struct State;
  struct Walk;
  explicit Section(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const YamlValue& require(std::string_view key, std::string_view rule) const;
  UserError wrong(std::string_view key, const YamlValue& value, std::string_view rule) const;
  template <class T, class Range>
  std::vector<T> list(std::string_view key, const Range& range) const;

  std::shared_ptr<State> state_;
};

// A configuration: a YAML file of sections, with overrides from the command line, read by the key and checked
// to the last one. Positions are kept, so that errors and graph nodes can name the line that they come from.
class Config {
 public:
  // Reads a file of at most 1 MiB. Each override is "training.batch_size=8" (see apply_override); the last
  // one for a key wins. Throws UserError with a position for a missing or empty file and for everything that
  // parse_yaml refuses.
  static Config load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
  // The same for text; `name` stands for the file in positions.
  static Config parse(const std::string& text, const std::string& name,
                      const std::vector<std::string>& overrides = {});

  Section root() const { return root_; }
  Section section(std::string_view key) const { return root_.section(key); }

  // That of all sections. To be called when everything has been built from the configuration: an option that
  // has no effect is an error.
  void check_all_used() const { root_.check_all_used(); }

  // What was read, defaults included, from path ("training.batch_size") to value: the same for the same
  // effective configuration, however it was written, and with names for what differs between two.
  std::map<std::string, std::string> values() const;

 private:
  explicit Config(Section root) : root_(std::move(root)) {}

  Section root_;
};

}  // namespace plexaura
