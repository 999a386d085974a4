#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// The tokens into which a text is divided.
enum class TokenKind : std::uint8_t {
  bytes,
  characters,  // single characters of UTF-8
  // A run of letters, digits and '_', or any other single character. A blank before it belongs to it, unless it is
  // itself a blank, a tab or a line break. All characters beyond ASCII count as letters.
  words,
};
std::string_view name_of(TokenKind kind);

// The token that stands for all characters or words that a vocabulary does not contain. It is number 0.
inline constexpr std::string_view unknown_token = "<unk>";

// The tokens that a model knows, by number. The texts of the tokens of a text, joined, are the text, except for unknown
// tokens.
class Vocabulary {
 public:
  Vocabulary() = default;  // the 256 bytes
  // Makes a vocabulary of characters or words. `tokens` has the token of each number, beginning with unknown_token.
  // Throws UserError if the first token is another one, if a token occurs twice, or if bytes are given tokens.
  Vocabulary(TokenKind kind, std::vector<std::string> tokens);
  // Makes a vocabulary of the tokens that occur at least `minimum_count` times in a text, the most frequent ones first;
  // for bytes it is always that of the 256 bytes. `text` must be UTF-8 unless the kind is bytes.
  static Vocabulary of_text(TokenKind kind, std::string_view text, std::int64_t minimum_count);

  TokenKind kind() const { return kind_; }
  std::int64_t size() const;
  // The token of each number; empty for bytes.
  const std::vector<std::string>& tokens() const { return tokens_; }
  // True if this number stands for tokens that the vocabulary does not contain.
  bool is_unknown(std::int64_t token) const { return token == 0 && kind_ != TokenKind::bytes; }
  // Returns the text of a number below size().
  std::string text_of(std::int64_t token) const;
  // Returns the numbers of the tokens of a text, which must be UTF-8 unless the kind is bytes.
  std::vector<std::int32_t> encode(std::string_view text) const;

  bool operator==(const Vocabulary& other) const { return kind_ == other.kind_ && tokens_ == other.tokens_; }

 private:
  TokenKind kind_ = TokenKind::bytes;
  std::vector<std::string> tokens_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

}  // namespace plexaura
