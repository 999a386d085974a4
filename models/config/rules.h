#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/config.h"

namespace plexaura {

// Returns `what` and the bounds of the range: "a whole number >= 1", "a list of numbers > 0 and <= 1".
std::string rule_of(std::string_view what, const IntegerRange& range);
std::string rule_of(std::string_view what, const NumberRange& range);

// Returns a text such as "sgd, adam or lars".
std::string joined_with_or(const std::vector<std::string>& words);

// Returns a value as YAML on one line. Texts are quoted. A number becomes the shortest text that reads back
// as the same number.
std::string to_yaml(const std::string& text);
std::string to_yaml(bool value);
std::string to_yaml(std::int64_t value);
std::string to_yaml(double value);
std::string to_yaml(const std::vector<std::string>& values);
std::string to_yaml(const std::vector<std::int64_t>& values);
std::string to_yaml(const std::vector<double>& values);

}  // namespace plexaura
