#include "app/use/generate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace plexaura {

namespace {

void check_prompt(const std::string& prompt, TokenKind kind) {
  if (prompt.empty())
    throw UserError(
        "--prompt is empty, and a text is continued from at least one token; leave the option out to begin "
        "with a new line");
  if (kind != TokenKind::bytes && first_not_utf8(prompt) < prompt.size())
    throw UserError(fmt::format("--prompt: byte {} is not a character of UTF-8; write it in UTF-8",
                                first_not_utf8(prompt) + 1));
}

// Returns the tokens that may be drawn, the most probable first, with their logits.
std::vector<std::pair<double, std::int64_t>> candidates(std::span<const double> logits,
                                                        const Vocabulary& vocabulary, std::int64_t top_k) {
  std::vector<std::pair<double, std::int64_t>> found;
  for (std::int64_t token = 0; token < std::ssize(logits); ++token) {
    const double logit = logits[static_cast<std::size_t>(token)];
    if (!std::isfinite(logit))
      throw UserError(fmt::format("the model's output is {}; the weights are of a run that diverged", logit));
    if (!vocabulary.is_unknown(token)) found.emplace_back(logit, token);
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &std::pair<double, std::int64_t>::first);
  if (top_k > 0 && top_k < std::ssize(found)) found.resize(static_cast<std::size_t>(top_k));
  return found;
}

}  // namespace

std::int64_t drawn_token(std::span<const double> logits, const Vocabulary& vocabulary,
                         const GenerateOptions& options, Random& random) {
  const auto tokens = candidates(logits, vocabulary, options.top_k);
  if (options.temperature == 0) return tokens.front().second;
  std::vector<double> sums;
  double sum = 0;
  for (const auto& [logit, token] : tokens)
    sums.push_back(sum += std::exp((logit - tokens.front().first) / options.temperature));
  const auto drawn = std::ranges::upper_bound(sums, random.uniform(0, sum));
  return tokens[std::min(static_cast<std::size_t>(drawn - sums.begin()), tokens.size() - 1)].second;
}

std::string generated_text(const GenerateOptions& options, NextTokenLogits& next_logits,
                           const Vocabulary& vocabulary) {
  check_prompt(options.prompt, vocabulary.kind());
  Random random({static_cast<std::uint64_t>(options.seed)});
  std::vector<std::int32_t> tokens = vocabulary.encode(options.prompt);
  std::string text = options.prompt;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const std::int64_t token = drawn_token(next_logits(tokens), vocabulary, options, random);
    tokens.push_back(static_cast<std::int32_t>(token));
    text += vocabulary.text_of(token);
  }
  return text;
}

}  // namespace plexaura
