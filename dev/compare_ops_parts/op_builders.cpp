#include "dev/compare_ops_parts/op_builders.h"

#include <charconv>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

template <class Number>
Number number_of(const std::string& name, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError(fmt::format("option '{}' is '{}', which is not a number of its kind", name, text));
  return value;
}

template <class Number>
std::vector<Number> list_of_numbers(const std::string& name, std::string_view text) {
  std::vector<Number> values;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    values.push_back(number_of<Number>(name, text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return values;
}

}  // namespace

const std::string& OpCall::text(const std::string& name) const {
  const auto found = options.find(name);
  if (found == options.end()) throw UserError(fmt::format("option '{}' is missing", name));
  return found->second;
}

double OpCall::number(const std::string& name, double otherwise) const {
  return has(name) ? number_of<double>(name, text(name)) : otherwise;
}

bool OpCall::flag(const std::string& name) const { return has(name) && text(name) == "true"; }

std::int64_t OpCall::integer(const std::string& name) const {
  return number_of<std::int64_t>(name, text(name));
}

std::int64_t OpCall::integer(const std::string& name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

std::optional<std::int64_t> OpCall::optional_integer(const std::string& name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

std::vector<std::int64_t> OpCall::integers(const std::string& name) const {
  return has(name) ? list_of_numbers<std::int64_t>(name, text(name)) : std::vector<std::int64_t>{};
}

std::vector<double> OpCall::numbers(const std::string& name) const {
  return has(name) ? list_of_numbers<double>(name, text(name)) : std::vector<double>{};
}

DType OpCall::dtype() const { return FieldForm<DType>::from(text("dtype")); }

Reduction OpCall::reduction() const {
  return has("reduction") ? FieldForm<Reduction>::from(text("reduction")) : Reduction::mean;
}

Size2d OpCall::size_2d(const std::string& name, std::int64_t otherwise) const {
  return has(name) ? FieldForm<Size2d>::from(integers(name)) : Size2d(otherwise);
}

Size3d OpCall::size_3d(const std::string& name, std::int64_t otherwise) const {
  return has(name) ? FieldForm<Size3d>::from(integers(name)) : Size3d(otherwise);
}

const OpBuilders& op_builders() {
  static const OpBuilders builders = [] {
    OpBuilders all;
    add_elementwise_builders(all);
    add_loss_builders(all);
    add_reduction_builders(all);
    add_window_builders(all);
    add_moving_builders(all);
    return all;
  }();
  return builders;
}

}  // namespace plexaura
