#include "training/data/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace plexaura {

namespace {

constexpr std::int64_t all_bytes = 256;

bool is_of_word(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte >= 0x80 || letter == '_' || (letter >= '0' && letter <= '9') ||
         (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

std::size_t word_length(std::string_view text) {
  const bool has_blank =
      text.size() > 1 && text[0] == ' ' && text[1] != ' ' && text[1] != '\n' && text[1] != '\t';
  const std::size_t first = has_blank ? 1 : 0;
  std::size_t end = first;
  while (end < text.size() && is_of_word(text[end])) ++end;
  return std::max(end, first + 1);
}

// Returns the number of bytes of the first token of a text that is not empty.
std::size_t token_length(TokenKind kind, std::string_view text) {
  if (kind == TokenKind::bytes) return 1;
  return kind == TokenKind::characters ? utf8_length(text) : word_length(text);
}

// Calls `use` with the tokens of a text, in their order.
template <class Use>
void for_each_token(TokenKind kind, std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t length = token_length(kind, text);
    if (length == 0) throw InternalError("a text that is not UTF-8 was divided into characters");
    use(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace

std::string_view name_of(TokenKind kind) {
  static constexpr std::array<std::string_view, 3> names{"bytes", "characters", "words"};
  return names.at(static_cast<std::size_t>(kind));
}

Vocabulary::Vocabulary(TokenKind kind, std::vector<std::string> tokens)
    : kind_(kind), tokens_(std::move(tokens)) {
  if (kind == TokenKind::bytes ? !tokens_.empty() : tokens_.empty() || tokens_[0] != unknown_token)
    throw UserError(fmt::format(
        "a vocabulary of {}; give none for bytes, and otherwise a list that begins with {}",
        tokens_.empty() ? "no tokens" : fmt::format("the first token '{}'", tokens_[0]), unknown_token));
  for (std::size_t i = 1; i < tokens_.size(); ++i)
    if (tokens_[i] == unknown_token || !numbers_.emplace(tokens_[i], static_cast<std::int32_t>(i)).second)
      throw UserError(fmt::format("a vocabulary has the token '{}' twice; give each once", tokens_[i]));
}

Vocabulary Vocabulary::of_text(TokenKind kind, std::string_view text, std::int64_t minimum_count) {
  if (kind == TokenKind::bytes) return {};
  std::map<std::string, std::int64_t, std::less<>> counts;
  for_each_token(kind, text, [&](std::string_view token) {
    const auto found = counts.find(token);
    ++(found == counts.end() ? counts.emplace(token, 0).first : found)->second;
  });
  std::vector<std::pair<std::string, std::int64_t>> frequent;
  for (const auto& [token, count] : counts)
    if (count >= minimum_count) frequent.emplace_back(token, count);
  std::ranges::stable_sort(frequent, std::ranges::greater{}, &std::pair<std::string, std::int64_t>::second);
  std::vector<std::string> tokens{std::string(unknown_token)};
  for (auto& [token, count] : frequent) tokens.push_back(std::move(token));
  return {kind, std::move(tokens)};
}

std::int64_t Vocabulary::size() const { return kind_ == TokenKind::bytes ? all_bytes : std::ssize(tokens_); }

std::string Vocabulary::text_of(std::int64_t token) const {
  if (kind_ == TokenKind::bytes) return {static_cast<char>(token)};
  return tokens_.at(static_cast<std::size_t>(token));
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> numbers;
  for_each_token(kind_, text, [&](std::string_view token) {
    if (kind_ == TokenKind::bytes) return numbers.push_back(static_cast<unsigned char>(token[0]));
    const auto found = numbers_.find(token);
    numbers.push_back(found == numbers_.end() ? 0 : found->second);
  });
  return numbers;
}

}  // namespace plexaura
