#include "training/data/arrays/zip_file.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/data/arrays/npy_text.h"

namespace plexaura::testing::zip_file_test {

namespace {

std::string contents(const ZipFile& archive, const std::string& name) {
  const ByteRange range = archive.open(name);
  std::string text(range.size(), '\0');
  range.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// Returns the error of opening an archive and its member "a".
std::string error_of(const std::string& text) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.npz", text);
  return user_error([&] { ZipFile(path).open("a"); });
}

std::string replaced(std::string text, std::size_t at, char value) {
  text[at] = value;
  return text;
}

}  // namespace

TEST_CASE("stored and deflated members are read, also those with the sizes of zip64") {
  const TemporaryFolder folder;
  const std::string zeros(3'000'000, '\0');
  for (const bool is_large : {false, true}) {
    const ZipFile archive(folder.write("x.npz", zip_text({{"a", "stored", false, is_large},
                                                          {"b", zeros, true, is_large},
                                                          {"empty", "", true, is_large}})));
    CHECK(archive.names() == std::vector<std::string>{"a", "b", "empty"});
    CHECK(contents(archive, "a") == "stored");
    CHECK(contents(archive, "b") == zeros);
    CHECK(contents(archive, "empty").empty());
    CHECK(!archive.has("c"));
    CHECK(contains(user_error([&] { archive.open("c"); }), "x.npz: has no member 'c'; it has a, b, empty"));
  }
}

TEST_CASE("damaged archives are refused in a sentence with file, member and place") {
  const std::string whole = zip_text({{"a", "some bytes", false}});
  const std::string small = zip_text({{"a", std::string(1000, 'x'), true}});
  CHECK(error_of(whole).empty());
  CHECK(contains(error_of(""), "x.npz: has no end record of a zip archive"));
  CHECK(contains(error_of(whole.substr(0, whole.size() - 1)), "has no end record of a zip archive"));
  CHECK(contains(error_of(replaced(whole, 33, 'S')),
                 "x.npz: a: offset 0: the bytes of the member do not have its checksum"));
  CHECK(contains(error_of(replaced(whole, 0, 'x')), "x.npz: a: offset 0: the member does not begin here"));
  CHECK(contains(error_of(replaced(small, 33, '\xff')), "x.npz: a: "));
  // The fields of the record in the directory, which begins after the header of 30 bytes, the name and the data.
  const std::size_t record = 30 + 1 + 10;
  CHECK(contains(error_of(replaced(whole, record, 'x')), "offset 41: there is no record of a member"));
  CHECK(contains(error_of(replaced(whole, record + 8, 1)), "a: is encrypted"));
  CHECK(contains(error_of(replaced(whole, record + 10, 12)), "a: is compressed by method 12"));
  CHECK(contains(error_of(replaced(whole, record + 28, 99)), "the directory of the zip archive is cut off"));
  CHECK(contains(error_of(replaced(whole, record + 24, 9)), "its two sizes differ"));
  CHECK(contains(error_of(replaced(whole, whole.size() - 6, 1)), "there is no record of a member"));
  CHECK(contains(error_of(replaced(whole, whole.size() - 4, 1)), "the zip archive ends before a record"));
  CHECK(contains(error_of(zip_text({{"a", "1"}, {"a", "2"}})), "has two members 'a'"));
  const std::size_t in_directory = small.size() - 22 - 47;
  CHECK(contains(error_of(replaced(small, in_directory + 24, 1)), "it is longer than the directory says"));
  CHECK(contains(error_of(replaced(small, in_directory + 25, 9)), "its compressed data ends after 1000 of"));
}

}  // namespace plexaura::testing::zip_file_test
