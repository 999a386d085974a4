#include "training/data/text/token_windows.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

std::vector<std::int64_t> window_starts(std::int64_t tokens, std::int64_t length, std::int64_t stride) {
  if (tokens < 2 || length < 1 || stride < 1)
    throw UserError(
        fmt::format("{} tokens cannot be divided into windows of {} tokens, each {} after the one "
                    "before; give at least 2 tokens, and numbers above 0",
                    tokens, length, stride));
  std::vector<std::int64_t> starts{0};
  while (starts.back() + std::max(length, stride) < tokens - 1) starts.push_back(starts.back() + stride);
  return starts;
}

TokenWindows::TokenWindows(std::vector<std::int32_t> tokens, std::int64_t length,
                           std::vector<std::int64_t> starts)
    : tokens_(std::move(tokens)), length_(length), starts_(std::move(starts)) {
  if (length_ < 1)
    throw UserError(fmt::format("windows of {} tokens contain nothing; give a length above 0", length_));
  const auto wrong = std::ranges::find_if(
      starts_, [&](std::int64_t start) { return start < 0 || start + 1 >= std::ssize(tokens_); });
  if (wrong != starts_.end())
    throw UserError(
        fmt::format("a window begins at token {} of a text of {} tokens; it must begin at one that is "
                    "followed by another",
                    *wrong, tokens_.size()));
}

std::vector<Field> TokenWindows::fields() const {
  const TensorType window{DType::int64, {length_}};
  return {{"samples", window}, {"targets", window}};
}

void TokenWindows::read_fields(std::int64_t index, const SampleContext& /*context*/,
                               std::span<const std::span<std::byte>> values) const {
  auto* const samples = reinterpret_cast<std::int64_t*>(values[0].data());
  auto* const targets = reinterpret_cast<std::int64_t*>(values[1].data());
  const auto first = static_cast<std::size_t>(starts_.at(static_cast<std::size_t>(index)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(length_); ++i) {
    const std::size_t token = first + i;
    samples[i] = token < tokens_.size() ? tokens_[token] : 0;
    targets[i] = token + 1 < tokens_.size() ? tokens_[token + 1] : no_target;
  }
}

}  // namespace plexaura
