#include "training/data/text/vocabulary.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::vocabulary_test {

namespace {

using Words = std::vector<std::string>;
using Numbers = std::vector<std::int32_t>;

std::string decoded(const Vocabulary& vocabulary, const Numbers& numbers) {
  std::string text;
  for (const std::int32_t number : numbers) text += vocabulary.text_of(number);
  return text;
}

}  // namespace

TEST_CASE("bytes are their own numbers") {
  const Vocabulary bytes = Vocabulary::of_text(TokenKind::bytes, "ab", 5);
  CHECK(bytes.size() == 256);
  CHECK(bytes.tokens().empty());
  CHECK(bytes.encode("a\xff") == Numbers{97, 255});
  CHECK(decoded(bytes, {97, 255}) == "a\xff");
  CHECK(!bytes.is_unknown(0));
}

TEST_CASE("characters are numbered by their count, and rare ones are unknown") {
  const Vocabulary vocabulary = Vocabulary::of_text(TokenKind::characters, "bäbaäcäb", 2);
  CHECK(vocabulary.tokens() == Words{"<unk>", "b", "ä"});
  CHECK(vocabulary.encode("aäb€") == Numbers{0, 2, 1, 0});
  CHECK(vocabulary.is_unknown(0));
  CHECK(!vocabulary.is_unknown(1));
  CHECK(Vocabulary::of_text(TokenKind::characters, "ba", 1).tokens() == Words{"<unk>", "a", "b"});
}

TEST_CASE("words keep the blank before them, and every other character is a word") {
  const std::string text = "He  said: x_1 = été;\n\tno  \n end ";
  const Vocabulary words = Vocabulary::of_text(TokenKind::words, text, 1);
  const Words expected{"He", " ",  " said", ":", " x_1", " =", " été", ";",
                       "\n", "\t", "no",    " ", " ",    "\n", " end", " "};
  Words found;
  for (const std::int32_t number : words.encode(text)) found.push_back(words.text_of(number));
  CHECK(found == expected);
  CHECK(words.encode(" He") == Numbers{0});
}

TEST_CASE("a vocabulary is one list of different tokens") {
  CHECK(Vocabulary(TokenKind::words, {"<unk>", "a"}) == Vocabulary(TokenKind::words, {"<unk>", "a"}));
  CHECK(!(Vocabulary(TokenKind::words, {"<unk>", "a"}) == Vocabulary(TokenKind::characters, {"<unk>", "a"})));
  CHECK(!(Vocabulary(TokenKind::words, {"<unk>", "a"}) == Vocabulary(TokenKind::words, {"<unk>", "b"})));
  CHECK(user_error([] {
          Vocabulary(TokenKind::words, {"<unk>", "a", "a"});
        }) == "a vocabulary has the token 'a' twice; give each once");
  CHECK(user_error([] {
          Vocabulary(TokenKind::words, {"<unk>", "a", "<unk>"});
        }) == "a vocabulary has the token '<unk>' twice; give each once");
  CHECK(user_error([] { Vocabulary(TokenKind::words, {"a"}); }) ==
        "a vocabulary of the first token 'a'; give none for bytes, and otherwise a list that begins with "
        "<unk>");
  CHECK(user_error([] { Vocabulary(TokenKind::characters, {}); }).starts_with("a vocabulary of no tokens"));
  CHECK(!user_error([] { Vocabulary(TokenKind::bytes, {"<unk>"}); }).empty());
}

}  // namespace plexaura::testing::vocabulary_test
