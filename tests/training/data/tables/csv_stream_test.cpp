#include "training/data/tables/csv_stream.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>

#include "tests/support/error_text.h"

namespace plexaura::testing::csv_stream_test {
namespace {

// Rows with the columns a and b and the classes no and yes. The columns are scaled to (a - 1) / 2 and b.
CsvStreamOptions labelled() {
  return {.csv = {.features = {"a", "b"}, .class_names = {"no", "yes"}},
          .scale = {.mean = {1, 0}, .stddev = {2, 1}}};
}

CsvStreamOptions with_targets() {
  return {.csv = {.targets = {"c"}, .features = {"a", "b"}},
          .scale = {.mean = {0, 0, 10}, .stddev = {1, 1, 2}},
          .targets = 1};
}

// Returns all samples as text: features, then the label or the targets.
std::string all_of(const std::string& command, const CsvStreamOptions& options, std::int64_t rank = 0,
                   std::int64_t ranks = 2) {
  const CsvStream stream(command, options);
  const auto reader = stream.open(rank, ranks);
  std::vector<float> features(options.scale.mean.size() - static_cast<std::size_t>(options.targets));
  std::vector<float> targets(static_cast<std::size_t>(options.targets));
  std::int64_t label = 0;
  const std::array<std::span<std::byte>, 2> values{
      std::as_writable_bytes(std::span(features)),
      options.targets > 0 ? std::as_writable_bytes(std::span(targets))
                          : std::span<std::byte>(std::as_writable_bytes(std::span(&label, 1)))};
  std::string text;
  while (reader->next(values))
    text += options.targets > 0 ? fmt::format("{} {};", fmt::join(features, " "), fmt::join(targets, " "))
                                : fmt::format("{} {};", fmt::join(features, " "), label);
  return text;
}

}  // namespace

TEST_CASE("rows of a command become samples") {
  CHECK(all_of("printf 'b,a,label\\n2,1,yes\\n\\n-1,5,no\\n'", labelled()) == "0 2 1;2 -1 0;");
  CHECK(all_of("printf 'a,b,c\\n1,2,14\\n3,4,10'", with_targets()) == "1 2 2;3 4 0;");
  const CsvStream stream("true", with_targets());
  CHECK(to_string(stream.fields()) == "float32[2] samples, float32[1] targets");
  CHECK(to_string(CsvStream("true", labelled()).fields()) == "float32[2] samples, int64[] labels");
  CHECK(all_of("true", labelled()).empty());
  CHECK(all_of("echo a,b,label", labelled()).empty());
}

TEST_CASE("a row of a stream may have several lines, and lone quotes") {
  CsvStreamOptions options{.csv = {.features = {"a", "words"},
                                   .categories = {{"words", {"two\nlines, \"so\"", "5\" pipe"}}},
                                   .class_names = {"no", "yes"}},
                           .scale = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}};
  CHECK(all_of("printf 'a,words,label\\n1, \"two\\nlines, \"\"so\"\"\",yes\\n2,5\" pipe,no\\n'", options) ==
        "1 1 0 1;2 0 1 0;");
  CHECK(contains(user_error([&] { all_of("printf 'a,words,label\\n1,\"two\\n,yes\\n'", options); }),
                 "the quote opened here is never closed"));
}

TEST_CASE("a stream of one rank is interrupted where it would wait for rows") {
  CsvStreamOptions options = labelled();
  options.is_to_end = [] { return true; };
  CHECK_THROWS_AS(all_of("printf 'a,b,label\\n1,2,yes\\n'; exec sleep 600", options, 0, 1),
                  StreamInterrupted);
  CHECK(all_of("sleep 0.3; printf 'a,b,label\\n1,2,yes\\n'", options, 0, 2) == "0 2 1;");
  options.is_to_end = [] { return false; };
  CHECK(all_of("printf 'a,b,label\\n1,2,yes\\n'", options, 0, 1) == "0 2 1;");
}

TEST_CASE("a command with {rank} prints rows of each rank, and another one the same rows for all") {
  const std::string own = "echo a,b,label; echo {rank},{ranks},yes";
  CHECK(CsvStream(own, labelled()).is_divided());
  CHECK(all_of(own, labelled(), 0) == "-0.5 2 1;");
  CHECK(all_of(own, labelled(), 1) == "0 2 1;");
  CHECK(!CsvStream("cat rows.csv | awk '{print}'", labelled()).is_divided());
}

TEST_CASE("rows of a stream that lack a cell follow the rule for missing cells") {
  const std::string rows = "printf 'a,b,label\\n,2,yes\\n3,NA,no\\n5,6,yes\\n'";
  CsvStreamOptions options = labelled();
  CHECK(contains(user_error([&] { all_of(rows, options); }), "2:1: '' in a is not a finite number"));
  options.csv.missing = MissingCells::drop;
  CHECK(all_of(rows, options) == "2 6 1;");
  options.csv.missing = MissingCells::mean;
  CHECK(all_of(rows, options) == "0 2 1;1 0 0;2 6 1;");
}

TEST_CASE("only the first row of a stream can say that it is no table") {
  CsvStreamOptions options = labelled();
  options.csv.label = "label";
  options.csv.class_names = {"no", "PK\003\004"};
  CHECK(all_of("printf 'label,a,b\nno,1,2\nPK\003\004,3,4\n'", options) == "0 2 0;1 4 1;");
  const auto refusal = [&](const std::string& command) {
    return user_error([&] { all_of(command, options); });
  };
  CHECK(contains(refusal("printf 'PK\003\004,1,2\n'"), "is a zip archive"));
  CHECK(contains(refusal("printf 'label,a,b\rno,1,2\r'"), "end in a single CR"));
  CHECK(contains(refusal("printf 'label,a,b\nno,1,\\0002\n'"), "contains a zero byte"));
}

TEST_CASE("an error of a row names the command, the line and the column") {
  const auto error = [](const std::string& command, const CsvStreamOptions& options) {
    return user_error([&] { all_of(command, options); });
  };
  CHECK(contains(error("printf 'a,b,label\\n1,2,yes\\n1,x,yes\\n'", labelled()),
                 "yes\\n'`:3:3: 'x' in b is not a finite number"));
  CHECK(
      contains(error("printf 'a,b,label\\n1,2,perhaps\\n'", labelled()), "'perhaps' is none of the classes"));
  CHECK(contains(error("printf 'a,b,label\\n1,2\\n'", labelled()), "the row has 2 cells"));
  CHECK(contains(error("printf 'a,c,label\\n1,2,yes\\n'", labelled()), "no column is called 'b'"));
  CHECK(contains(error("printf '1,2,3,yes\\n'", {.csv = {.header = false, .class_names = {"no", "yes"}},
                                                 .scale = {.mean = {0, 0}, .stddev = {1, 1}}}),
                 "its rows make 3 features, and the model takes 2"));
  CHECK(
      contains(error("printf 'a,b,label\\n1,2,y\\377\\n'", labelled()), ":2: the line contains the byte ff"));
  CHECK(contains(error("echo a,b,label; head -c 17000000 /dev/zero | tr '\\0' x", labelled()),
                 "the row has more than 16 MiB"));
  CHECK(contains(error("echo a,b,label; printf 1,2,yes; exit 4", labelled()), "has ended with status 4"));
  CsvStreamOptions labels = with_targets();
  labels.scale = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}};
  labels.targets_are_labels = true;
  CHECK(contains(error("printf 'a,b,c\\n1,2,3\\n'", labels), "the label c is 3"));
}

}  // namespace plexaura::testing::csv_stream_test
