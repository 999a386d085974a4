#pragma once

#include <cstdint>
#include <vector>

#include "training/data/sample_source.h"

namespace plexaura {

// The target after the end of a text, which the loss of a language model ignores.
inline constexpr std::int64_t no_target = -100;

// Returns where the windows of a text of `tokens` tokens begin: at 0, `stride`, 2 `stride`, …, until a window contains
// the last token that is followed by another, or the next window would begin after that token. Throws UserError for less
// than two tokens, and for a length or stride below 1.
std::vector<std::int64_t> window_starts(std::int64_t tokens, std::int64_t length, std::int64_t stride);

// Windows of a text: int64 "samples" [length], the tokens of a window, and int64 "targets" [length], the token after each
// of them. Positions after the end of the text have the token 0 and the target no_target. Thread-safe.
class TokenWindows final : public SampleSource {
 public:
  // `starts` says where the windows begin, each at a token that is followed by another. It may be empty. Throws
  // UserError for other starts, and for a length below 1.
  TokenWindows(std::vector<std::int32_t> tokens, std::int64_t length, std::vector<std::int64_t> starts);

  std::int64_t size() const override { return std::ssize(starts_); }
  std::vector<Field> fields() const override;
  bool in_memory() const override { return true; }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::vector<std::int32_t> tokens_;
  std::int64_t length_;
  std::vector<std::int64_t> starts_;
};

}  // namespace plexaura
