#include "core/graph/fields.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/graph/op.h"

namespace plexaura {

namespace {

constexpr std::int64_t exact_in_double = std::int64_t{1} << 53;

template <class Number>
requires std::is_arithmetic_v<Number>
bool parse(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

bool parse(std::string_view text, bool& flag) {
  flag = text == "true";
  return flag || text == "false";
}

// Parses "[1,2]", the form that to_string() prints. Blanks before a number are skipped.
template <class Number>
bool parse(std::string_view text, std::vector<Number>& numbers) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  numbers.clear();
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    if (!parse(item, numbers.emplace_back())) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
    if (text.empty()) return false;
  }
  return true;
}

bool convert(const std::int64_t& integer, double& number) {
  number = static_cast<double>(integer);
  return -exact_in_double <= integer && integer <= exact_in_double;
}

bool convert(const std::vector<std::int64_t>& integers, std::vector<double>& numbers) {
  numbers.clear();
  return std::ranges::all_of(integers,
                             [&](std::int64_t integer) { return convert(integer, numbers.emplace_back()); });
}

bool convert(const auto&, auto&) { return false; }

// Sets the field. Throws RuleError, with the name of the field's type, if the value does not fit.
template <class T>
void take(const Description::Value& value, T& field, std::string_view type) {
  const bool is_taken = std::visit(
      [&field]<class Given>(const Given& given) {
        if constexpr (std::is_same_v<Given, T>) {
          field = given;
          return true;
        } else if constexpr (std::is_same_v<Given, std::string> && requires { parse(given, field); }) {
          return parse(given, field);
        } else {
          return convert(given, field);
        }
      },
      value);
  if (!is_taken) throw RuleError(fmt::format("must be {}, not '{}'", type, text_of(value)));
}

}  // namespace

DType FieldForm<DType>::from(const std::string& name) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    names.push_back(name_of(dtype));
    if (names.back() == name) return dtype;
  }
  throw RuleError(fmt::format("must be one of {}, not '{}'", fmt::join(names, ", "), name));
}

Shape FieldForm<Shape>::from(const std::vector<std::int64_t>& extents) {
  try {
    return Shape(extents);
  } catch (const UserError& error) {
    throw RuleError(fmt::format("is wrong: {}", error.what()));
  }
}

void FieldReader::read(const std::function<void()>& visit) {
  try {
    visit();
  } catch (const RuleError& error) {
    throw UserError(fmt::format("the option '{}' of {} {}", known_.back(), owner_, error.what()));
  }
  check_names();
}

void FieldReader::check_names() const {
  std::vector<std::string> given;
  for (const auto& [key, value] : from_.fields()) {
    if (std::ranges::find(known_, key) == known_.end())
      throw UserError(fmt::format(
          "{} has no option '{}'; {}{}", owner_, key,
          known_.empty() ? "it has none" : fmt::format("its options are {}", fmt::join(known_, ", ")),
          did_you_mean(key, known_)));
    if (std::ranges::find(given, key) != given.end())
      throw UserError(fmt::format("the option '{}' of {} is given twice; leave one out", key, owner_));
    given.push_back(key);
  }
}

bool FieldReader::find(std::string_view key) {
  if (known_.empty() || known_.back() != key) known_.emplace_back(key);
  const auto& fields = from_.fields();
  const auto found =
      std::ranges::find(fields, key, [](const auto& field) -> std::string_view { return field.first; });
  value_ = found == fields.end() ? nullptr : &found->second;
  return value_ != nullptr;
}

void FieldReader::get(bool& field) const { take(*value_, field, "true or false"); }
void FieldReader::get(std::int64_t& field) const { take(*value_, field, "an integer"); }
void FieldReader::get(double& field) const { take(*value_, field, "a number"); }
void FieldReader::get(std::string& field) const { take(*value_, field, "a text"); }
void FieldReader::get(std::vector<std::int64_t>& field) const { take(*value_, field, "a list of integers"); }
void FieldReader::get(std::vector<double>& field) const { take(*value_, field, "a list of numbers"); }
void FieldReader::get(std::shared_ptr<const Tensor>& field) const { take(*value_, field, "a tensor"); }

}  // namespace plexaura
