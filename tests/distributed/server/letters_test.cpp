#include "distributed/server/letters.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/error.h"

namespace plexaura::testing::letters_test {

TEST_CASE("letters: what is sealed is read again, with its content or without") {
  Draft draft(2);
  std::ranges::fill(draft.content(), std::byte{7});
  for (const bool with_content : {true, false}) {
    const auto sealed = draft.seal({.word = Word::push, .version = 5, .steps = 3}, with_content);
    const Letter letter{1, {sealed.begin(), sealed.end()}};
    const LetterHead head = head_of(letter);
    CHECK(head.word == Word::push);
    CHECK(head.version == 5);
    CHECK(head.steps == 3);
    REQUIRE(content_of(letter).size() == (with_content ? 2 : 0));
    if (with_content) CHECK(content_of(letter)[1] == std::byte{7});
  }
}

TEST_CASE("letters: those that deal out the data travel apart from those with weights") {
  for (const Word word : {Word::draw, Word::part, Word::stop, Word::leave, Word::regroup})
    CHECK(tag_of(word) == deal_tag);
  for (const Word word : {Word::push, Word::rest, Word::weights, Word::patience})
    CHECK(tag_of(word) == weights_tag);
}

TEST_CASE("letters: bytes that are none are an error, and weights that are too long a mistake") {
  CHECK_THROWS_WITH_AS(head_of({2, std::vector<std::byte>(3)}),
                       "rank 2 has sent 3 bytes that are no letter of a parameter server", InternalError);
  check_fits_letter(2'147'483'551);
  CHECK_THROWS_WITH_AS(
      check_fits_letter(2'147'483'552),
      "the weights take 2147483552 bytes, and a letter to the parameter server holds 2147483551; choose "
      "another distributed.strategy",
      UserError);
}

}  // namespace plexaura::testing::letters_test
