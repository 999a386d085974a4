#include "distributed/servers/ranks/letters.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace plexaura::testing::letters_test {

TEST_CASE("letters: what is sealed is read again, with its content and what follows it, or without") {
  Draft draft(2);
  std::ranges::fill(draft.content(), std::byte{7});
  const LetterHead written{.word = Word::push, .version = 5, .steps = 3};
  const auto posted = [](std::span<const std::byte> sealed) {
    const Letter letter{1, {sealed.begin(), sealed.end()}};
    const LetterHead head = head_of(letter);
    CHECK(head.word == Word::push);
    CHECK(head.version == 5);
    CHECK(head.steps == 3);
    const auto content = content_of(letter);
    return std::string(reinterpret_cast<const char*>(content.data()), content.size());
  };
  CHECK(posted(draft.seal(written)).empty());
  CHECK(posted(draft.seal_all(written, "of parts")) == "\7\7of parts");
  CHECK(posted(draft.seal_all(written)) == "\7\7");
  CHECK(draft.content().size() == 2);
}

TEST_CASE("letters: those that deal out the data travel apart from those with weights") {
  for (const Word word : {Word::draw, Word::part, Word::stop, Word::leave, Word::regroup})
    CHECK(tag_of(word) == deal_tag);
  for (const Word word : {Word::push, Word::rest, Word::weights, Word::patience})
    CHECK(tag_of(word) == weights_tag);
}

TEST_CASE("letters: bytes that are none are an error, and weights that are too long a mistake") {
  CHECK_THROWS_WITH_AS(head_of({2, std::vector<std::byte>(3)}),
                       "rank 2 has sent 3 bytes that are not a letter of a parameter server", InternalError);
  check_fits_letter(2'130'706'319);
  CHECK_THROWS_WITH_AS(check_fits_letter(2'130'706'320),
                       "the weights of a parameter server take 2130706320 bytes, but a letter to it has room "
                       "for 2130706319; raise "
                       "distributed.servers",
                       UserError);
}

}  // namespace plexaura::testing::letters_test
