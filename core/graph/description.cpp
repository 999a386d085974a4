#include "core/graph/description.h"

#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <string_view>

#include "core/graph/subgraph.h"

namespace plexaura {

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 16 still requires this guide

bool same(const Description::Value& a, const Description::Value& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& of_a) {
        const T& of_b = std::get<T>(b);
        if constexpr (std::is_same_v<T, double>) {
          return std::bit_cast<std::uint64_t>(of_a) == std::bit_cast<std::uint64_t>(of_b);
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Tensor>>) {
          return of_a == of_b || *of_a == *of_b;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Subgraph>>) {
          return of_a == of_b || *of_a == *of_b;
        } else {
          return of_a == of_b;
        }
      },
      a);
}

}  // namespace

Description& Description::add(std::string key, Value value) {
  fields_.emplace_back(std::move(key), std::move(value));
  return *this;
}

std::size_t Description::hash() const { return std::hash<std::string>{}(to_string(*this)); }

bool Description::operator==(const Description& other) const {
  if (fields_.size() != other.fields_.size()) return false;
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (fields_[i].first != other.fields_[i].first || !same(fields_[i].second, other.fields_[i].second))
      return false;
  return true;
}

std::string text_of(const Description::Value& value) {
  return std::visit(Overloaded{[](bool flag) { return std::string(flag ? "true" : "false"); },
                               [](const std::string& text) { return text; },
                               [](const std::vector<std::int64_t>& numbers) {
                                 return fmt::format("[{}]", fmt::join(numbers, ","));
                               },
                               [](const std::vector<double>& numbers) {
                                 return fmt::format("[{}]", fmt::join(numbers, ","));
                               },
                               [](const std::shared_ptr<const Tensor>& tensor) {
                                 return tensor->elements() == 1 ? fmt::format("{}", tensor->to_doubles()[0])
                                                                : to_string(tensor->type());
                               },
                               [](const std::shared_ptr<const Subgraph>& graph) { return to_string(*graph); },
                               [](auto number) { return fmt::format("{}", number); }},
                    value);
}

std::string to_string(const Description& description) {
  std::string text;
  for (const auto& [key, value] : description.fields())
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, text_of(value));
  return text;
}

}  // namespace plexaura
