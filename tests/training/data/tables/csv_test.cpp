#include "training/data/tables/csv.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "tests/training/data/data_support.h"
#include "tests/training/data/tables/csv_text.h"
#include "training/data/subset.h"
#include "training/data/tables/standardise.h"

namespace plexaura::testing::csv_test {

namespace {

std::vector<float> values_of(const Dataset& dataset, std::int64_t index) {
  std::vector<float> sample(static_cast<std::size_t>(dataset.sample_shape().elements()));
  std::int64_t label = -1;
  dataset.read_sample(index, {}, std::as_writable_bytes(std::span(sample)), label);
  CHECK(label == dataset.label(index));
  return sample;
}

}  // namespace

TEST_CASE("large numbers that float32 would make the same are refused") {
  const auto table = [](double offset) {
    std::string text = "t,class\n";
    for (int i = 0; i < 4; ++i) text += fmt::format("{:.1f},a\n", offset + 0.5 * i);
    return text;
  };
  CHECK(error_in(table(1e8)) ==
        ": the numbers of t lie between 100000000 and 100000001.5, and float32 rounds them by up to 1.5; "
        "remove the column if its numbers are meant to be equal, or subtract a number from all of them");
  CHECK(contains(error_in(table(-1e8)), "float32 rounds them by up to 1.5"));
  const TemporaryFolder folder;
  CHECK(CsvDataset(folder.write("far.csv", table(1e5))).values()[3] == 100001.5F);
  CHECK(CsvDataset(folder.write("exact.csv", table(4e6))).values()[3] == 4000001.5F);
  CHECK(CsvDataset(folder.write("constant.csv", "t,class\n123456789,a\n123456789,b\n")).size() == 2);
}

TEST_CASE("a table with targets has them after the features, and no labels") {
  const std::string text = "a,t,b,u\n1,2,3,4\n5,6,7,8\n";
  const CsvDataset table = dataset_of(text, {.targets = {"u", "t"}});
  CHECK(table.feature_names() == std::vector<std::string>{"a", "b"});
  CHECK(table.target_names() == std::vector<std::string>{"u", "t"});
  CHECK(table.label_name().empty());
  CHECK(values_of(table, 1) == std::vector<float>{5, 7, 8, 6});
  CHECK(table.label(1) == 0);
  CHECK(dataset_of(text, {.targets = {"u"}, .features = {"b"}}).sample_shape() == Shape{2});
  CHECK(contains(error_in(text, {.targets = {"u"}, .features = {"b", "u"}}),
                 "u is both a feature and a target; give it as one of them"));
  CHECK(contains(
      error_in("a,t\n1,x\n", {.targets = {"t"}}),
      ":2:3: 'x' in t is not a finite number; targets are numbers, so correct the cell or leave the row "
      "out"));
  CHECK(contains(error_in("a,t\nx,1\n", {.targets = {"t"}}),
                 "features are numbers, so correct the cell or leave the column out"));
  CHECK(contains(error_in("a,t\n1,100000000\n2,100000001\n", {.targets = {"t"}}),
                 "the numbers of t lie between"));
}

TEST_CASE("a table without labels has features alone, in the order that is asked for") {
  const CsvDataset dataset =
      dataset_of("y,x,note\n1,2,a\n3,4,b\n", {.labelled = false, .features = {"x", "y"}});
  CHECK(dataset.size() == 2);
  CHECK(values_of(dataset, 1) == std::vector<float>{4, 3});
  CHECK(dataset.label(1) == 0);
  CHECK(error_in("x\n1\n", {.labelled = false, .features = {"x", "y"}}) ==
        ": no column is called 'y'; the columns are: x");
}

TEST_CASE("a table with a header gives samples by name, and classes in sorted order") {
  const CsvDataset dataset = dataset_of("x,kind,y\n1,pear,2.5\n-3e2,apple,+4\n", {.label = "kind"});
  CHECK(dataset.size() == 2);
  CHECK(dataset.sample_shape() == Shape{2});
  CHECK(dataset.feature_names() == std::vector<std::string>{"x", "y"});
  CHECK(dataset.class_names() == std::vector<std::string>{"apple", "pear"});
  CHECK(values_of(dataset, 0) == std::vector<float>{1, 2.5F});
  CHECK(values_of(dataset, 1) == std::vector<float>{-300, 4});
  CHECK(labels_of(dataset) == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("a table without a header, chosen columns in their order, and numeric classes in numeric order") {
  const CsvDataset dataset = dataset_of("10;1;2\n9;3;4\n", {.header = false,
                                                            .label = std::int64_t{0},
                                                            .features = {std::int64_t{-1}, std::int64_t{1}},
                                                            .delimiter = ';'});
  CHECK(dataset.class_names() == std::vector<std::string>{"9", "10"});
  CHECK(values_of(dataset, 0) == std::vector<float>{2, 1});
  CHECK(labels_of(dataset) == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("line ends, quotes, blanks, empty lines and a byte order mark do not matter") {
  const CsvDataset dataset =
      dataset_of("\xef\xbb\xbf\"x\",kind\r\n\r\n 1 ,\"a, \"\"b\"\"\"\r\n\"2\",\"two\nlines\" \n\n3,c");
  CHECK(dataset.feature_names() == std::vector<std::string>{"x"});
  CHECK(dataset.class_names() == std::vector<std::string>{"a, \"b\"", "c", "two\nlines"});
  CHECK(dataset.size() == 3);
  CHECK(values_of(dataset, 2) == std::vector<float>{3});
}

TEST_CASE("errors in a table name file, line and column") {
  CHECK(error_in("a,b,k\n1,2,x\n3,oops,y\n").starts_with(":3:3: 'oops' in b is not a finite number"));
  CHECK(error_in("a,b,k\n1,2,x\n3,,y\n").starts_with(":3:3: '' in b"));
  CHECK(error_in("a,k\n1 2,x\n").starts_with(":2:1: '1 2' in a"));
  CHECK(error_in("a,k\nnan,x\n").starts_with(":2:1: 'nan' in a"));
  CHECK(error_in("a,k\n1e99,x\n").starts_with(":2:1: '1e99' in a is out of the range"));
  CHECK(error_in("a,b,k\n1,2,x\n3,y\n").starts_with(":3:3: the row has 2 cells, but the first row has 3"));
  CHECK(error_in("a,k\n1,x,7\n").starts_with(":2:5: the row has 3 cells, but the first row has 2"));
  CHECK(error_in("a,k\n1,\"x\n").starts_with(":2:3: the quote opened here is never closed"));
  CHECK(error_in("a,k\n\"1\"2,x\n").starts_with(":2:4: a closing quote is followed by '2'"));
  CHECK(error_in("a,k\n\"1\n\"\"\",x\n4,y,5\n").starts_with(":2:1: '1\n\"' in a"));
}

TEST_CASE("a label that is missing is an error, and no class") {
  CHECK(error_in("a,k\n1,x\n2,\n") == ":3:3: the label in k is missing; fill in the class or remove the row");
  CHECK(error_in("a,k,b\n1,x,3\n2, ,3\n", {.label = "k"}).starts_with(":3:4: the label in k is missing"));
  CHECK(error_in("a,k\n1,x\n2,\"\"\n").starts_with(":3:3: the label in k is missing"));
  CHECK(error_in("1,x\n2,\n", {.header = false}).starts_with(":2:3: the label in column 1 is missing"));
}

TEST_CASE("a number has one sign") {
  for (const std::string cell : {"+-5", "-+5", "++5", "--5", "+", "-"})
    CHECK(error_in("a,k\n" + cell + ",x\n").starts_with(":2:1: '" + cell + "' in a is not a finite number"));
}

TEST_CASE("a table that is separated by something else is told so") {
  CHECK(error_in("a;b;k\n1;2;x\n", {.label = "k"}) ==
        ":1:1: the first line is one column and contains ';'; if that separates the columns, set "
        "data.delimiter "
        "to "
        "it");
  CHECK(error_in("a\tb\tk\n").starts_with(":1:1: the first line is one column and contains a tab;"));
  CHECK(error_in("1,2,x\n", {.header = false, .delimiter = ';'})
            .starts_with(":1:1: the first line is one column and contains ',';"));
  CHECK(error_in("a b k\n1 2 x\n") ==
        ":1:1: the first line is one column and contains blanks; if one blank separates the columns, set "
        "data.delimiter to ' '");
  const TemporaryFolder folder;
  CHECK(CsvDataset(folder.write("blanks.csv", "a b k\n1 2 x\n"), {.delimiter = ' '}).sample_shape() ==
        Shape{2});
  const CsvDataset two(folder.write("two.csv", "a;b,k\n1,x\n"));  // such a name of a column is allowed
  CHECK(two.feature_names() == std::vector<std::string>{"a;b"});
  const CsvDataset tabs(folder.write("t.csv", "a\tb\tk\n1\t 2\tx y\n"), {.delimiter = '\t'});
  CHECK(tabs.class_names() == std::vector<std::string>{"x y"});
  CHECK(values_of(tabs, 0) == std::vector<float>{1, 2});
}

TEST_CASE("a line before the table is told what it is") {
  CHECK(
      error_in("# made in 2026\na,k\n1,x\n") ==
      ":1:1: the first line is a comment, '# made in 2026', which a table does not have; remove such lines");
  CHECK(error_in("# made, in 2026\na,b,k\n1,2,x\n")
            .ends_with(
                "the row has 3 cells, but the first row has 2; remove the first line if it is a comment"));
  const std::string sep =
      " names the delimiter for a spreadsheet and is not a line of the table; remove the line, and set "
      "data.delimiter to "
      "that character";
  CHECK(error_in("sep=;\na;k\n1;x\n") == ":1:1: 'sep=;'" + sep);
  CHECK(error_in("sep=;\na;k\n1;x\n", {.delimiter = ';'}) == ":1:1: 'sep='" + sep);
  const TemporaryFolder folder;
  CHECK(CsvDataset(folder.write("t.csv", "#id,k\n1,x\n2,y\n")).feature_names().front() == "#id");
}

TEST_CASE("a decimal comma is told so") {
  const CsvOptions semicolons{.delimiter = ';'};
  CHECK(error_in("a;k\n0,902;x\n", semicolons) ==
        ":2:1: '0,902' in a is not a finite number; write numbers with a point, not with a comma");
  CHECK(contains(error_in("a;k\n1,2,3;x\n", semicolons), "features are numbers"));
}

TEST_CASE("a first line of numbers is no header unless the caller says so") {
  CHECK(error_in("1,2,x\n3,4,y\n") ==
        ":1:1: the first line contains numbers instead of the names of the columns; set data.header to false "
        "if it is a sample, or to true if these are the names");
  CHECK(error_in("x,1\ny,2\n", {.label = std::int64_t{0}})
            .starts_with(":1:1: the first line contains numbers"));
  const TemporaryFolder folder;
  const CsvDataset named(folder.write("t.csv", "0,1,label\n3,4,y\n"), {.names_may_be_numbers = true});
  CHECK(named.feature_names() == std::vector<std::string>{"0", "1"});
  CHECK(named.size() == 1);
  const CsvDataset partly(folder.write("u.csv", "150,b,label\n3,4,y\n"));
  CHECK(partly.size() == 1);
}

TEST_CASE("text that is not UTF-8 but UTF-16 is told so") {
  using namespace std::string_literals;
  for (const std::string& text : {"\xff\xfe"
                                  "a\0,\0k\0"s,
                                  "\xfe\xff\0a\0,\0k"s})
    CHECK(error_in(text) == ": its first bytes say that it is UTF-16; save it as UTF-8");
  CHECK(error_in("a\0,\0k\0\n\0"s) ==
        ": contains a zero byte, as UTF-16 text and binary files do; save it as UTF-8 text");
}

TEST_CASE("a table that is not UTF-8 is refused with the line") {
  for (const std::string bad :
       {"\xe4", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe0\x80\x80", "\x80"})
    CHECK(contains(error_in("a,k\n1,x\n2," + bad + "\n"), ":3: the line contains the byte "));
  CHECK(error_in("a,k\n1,Gr\xfc\xdf\n") ==
        ":2: the line contains the byte fc, which is not UTF-8; save the file as UTF-8 (it may be Latin-1)");
  const TemporaryFolder folder;
  const CsvDataset dataset(folder.write("t.csv", "a,k\n1,\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f\n"));
  CHECK(dataset.class_names().front() == "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f");
}

TEST_CASE("the column of an error counts characters") {
  CHECK(error_in("\xc3\xa4,b,k\n1,2,x\n\xc3\xa4\xc3\xb6,oops,y\n", {.features = {"b"}})
            .starts_with(":3:4: 'oops'"));
  CHECK(error_in("k,b\n\"\xc3\xa4\n\xc3\xa4\",oops\n", {.label = "k"}).starts_with(":3:4: 'oops'"));
}

TEST_CASE("files of other kinds are told what they are") {
  CHECK(error_in("\x1f\x8b\x08...") == ": is compressed by gzip; unpack it first");
  CHECK(error_in("PK\x03\x04...") ==
        ": is a zip archive, as spreadsheets (.xlsx) are; export the table as CSV");
  CHECK(error_in("a,k\r1,x\r2,y\r") == ": its lines end in a single CR; save it with LF or CRLF");
}

TEST_CASE("a pipe or a device is no table") {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")})
    CHECK(user_error([&] { const CsvDataset dataset(path); }) ==
          "cannot read '" + path + "': it is not a regular file; name another");
}

TEST_CASE("a column that is used has a name of its own") {
  CHECK(error_in("a,b,a,k\n1,2,3,x\n") ==
        ":1:5: a column is called 'a' as another one is; rename one of them");
  CHECK(error_in("a,b,k,k\n1,2,x,y\n", {.label = "k", .features = {"a"}})
            .starts_with(":1:7: a column is called 'k'"));
  CHECK(error_in("a,b,b\n1,2,3\n", {.labelled = false, .features = {"b"}})
            .starts_with(":1:5: a column is called 'b'"));
  const TemporaryFolder folder;
  const CsvDataset dataset(folder.write("t.csv", "a,note,note\n1,x,y\n"),
                           {.labelled = false, .features = {"a"}});
  CHECK(dataset.size() == 1);
}

TEST_CASE("a column without a name is a feature only where it is asked for") {
  const std::string rest =
      " has no name, which is how pandas and R write the numbers of the rows; remove the column (pandas: "
      "to_csv "
      "with "
      "index=False), or name it if it is a feature";
  CHECK(error_in(",x,k\n0,5,a\n1,6,b\n") == ":1:1: column 0" + rest);
  CHECK(error_in("\"\",x,k\n\"1\",5,a\n\"2\",6,b\n") == ":1:1: column 0" + rest);
  CHECK(error_in("x,,k\n0,5,a\n1,6,b\n") == ":1:3: column 1" + rest);
  CHECK(error_in(",x,k\na,5,1\nb,6,2\n", {.label = std::int64_t{0}}) == ":1:1: column 0" + rest);
  for (const std::string name : {"Unnamed: 0", "Unnamed: 17"})
    CHECK(error_in(name + ",x,k\n0,5,a\n1,6,b\n") == ":1:1: '" + name +
                                                         "' is what pandas calls a column without a name, "
                                                         "often the numbers of the rows; remove the column, "
                                                         "or rename it if it is a feature");
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", ",x,k\n0,5,a\n1,6,b\n");
  CHECK(CsvDataset(path, {.features = {"x"}}).feature_names() == std::vector<std::string>{"x"});
  CHECK(CsvDataset(path, {.labelled = false, .features = {"", "x"}}).sample_shape() == Shape{2});
  CHECK(CsvDataset(folder.write("u.csv", "Unnamed: x,k\n5,a\n6,b\n")).size() == 2);
}

TEST_CASE("the last column is not taken for the label where another is called so") {
  const CsvOptions assumed{.label_is_assumed = true};
  CHECK(error_in("Class,x,z\na,1,0\nb,2,1\n", assumed) ==
        ":1:1: a column is called 'Class', and the last one, 'z', would be the label; name the one that "
        "holds the "
        "classes in data.label");
  for (const std::string name : {"label", "LABELS", "target"})
    CHECK(
        contains(error_in("x," + name + ",z\n1,2,0\n", assumed), ":1:3: a column is called '" + name + "'"));
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", "target,x,label\n1,1,a\n2,2,b\n");
  CHECK(CsvDataset(path, assumed).label_name() == "label");
}

TEST_CASE("a label that programs write where one is missing is no class unless the caller says so") {
  const TemporaryFolder folder;
  for (const std::string word :
       {"NA", "N/A", "nan", "NaN", "-nan", "None", "null", "NULL", "?", "#N/A", "<NA>"}) {
    const std::string text = "a,k\n1,x\n2," + word + "\n3,y\n";
    CHECK(error_in(text) ==
          ":3:3: the label is '" + word +
              "', as programs write a missing one; fill in the class, remove the row, or set "
              "data.missing_is_class to true if a class is called so");
    const auto path = folder.write("t.csv", text);
    CHECK(CsvDataset(path, {.missing_is_class = true}).class_names().size() == 3);
    CHECK(CsvDataset(path, {.class_names = {"x", "y", word}}).label(1) == 2);
    CHECK(CsvDataset(path, {.labelled = false, .features = {"a"}}).size() == 3);
  }
  CHECK(CsvDataset(folder.write("u.csv", "a,k\n1,Na\n2,no\n3,-\n4,Nanna\n")).class_names().size() == 4);
}

TEST_CASE("a column whose numbers differ by the rounding of float64 holds one number") {
  const TemporaryFolder folder;
  const double between = 1 + std::ldexp(1.0, -24);  // the two neighbours of this number differ in float32
  for (const double number : {0.3, -0.3, 1e300 * 1e-290, between}) {
    const double other = std::nextafter(number, 1e9);
    const CsvDataset table(folder.write(
        "t.csv", fmt::format("x,k\n{},a\n{},b\n{},a\n", number, other, std::nextafter(other, 1e9))));
    CHECK(table.values()[0] == table.values()[1]);
    CHECK(table.values()[0] == table.values()[2]);
    CHECK(table.values()[0] == doctest::Approx(number));
    CHECK(measure_standardisation(table).stddev.front() == 1);
  }
  CHECK(contains(error_in("x,k\n0.3,a\n0.3000000001,b\n"),
                 "remove the column if its numbers are meant to be equal"));
  CHECK(CsvDataset(folder.write("t.csv", "x,k\n0,a\n1e-15,b\n")).values()[1] == 1e-15F);
}

TEST_CASE("a delimiter at the end of a line is told so") {
  CHECK(error_in("a,k,\n1,x,\n") ==
        ":1:5: the last column has no name; name it, or remove the delimiter at the end of the line");
  CHECK(error_in("a,k\n1,x,\n") ==
        ":2:5: the row has 3 cells, but the first row has 2; remove the delimiter at its end");
}

TEST_CASE("a header that is there or missing against what was said") {
  CHECK(error_in("1,2,x\n", {.label = "k"}) ==
        ": no column is called 'k'; the columns are: 1, 2, x; if the first line is a sample, set data.header "
        "to "
        "false");
  CHECK(error_in("a,b,k\n1,2,x\n", {.header = false}) ==
        ":1:1: 'a' is not a number, and the first line may be the names of the columns; leave out "
        "data.header=false if it is");
}

TEST_CASE("errors show neither a whole file nor a whole list") {
  CHECK(error_in("a,k\n" + std::string(500, 'x') + ",y\n").size() < 250);
  std::string header = "k";
  for (int i = 0; i < 500; ++i) header += ",c" + std::to_string(i);
  CHECK(error_in(header + "\n", {.label = "kind"}).ends_with(" and 481 more"));
}

TEST_CASE("errors of a whole table say what it lacks") {
  CHECK(contains(error_in(""), "the file is empty"));
  CHECK(contains(error_in("\n\n"), "the file is empty"));
  CHECK(contains(error_in("a,k\n"), "no row follows the header"));
  CHECK(contains(error_in("k\nx\n"), "the label is the only column"));
  CHECK(contains(error_in("a,k\n1,x\n", {.label = "kind"}),
                 "no column is called 'kind'; the columns are: a, k"));
  CHECK(contains(error_in("a,k\n1,x\n", {.label = std::int64_t{2}}), "column 2 does not exist"));
  CHECK(
      contains(error_in("a,k\n1,x\n", {.class_names = {"y", "z"}}), ":2:3: 'x' is none of the classes y, z"));
  const TemporaryFolder folder;
  const std::string absent = (folder / "t.csv").string();
  CHECK(contains(user_error([&] { const CsvDataset dataset(absent); }),
                 "cannot read '" + absent + "': No such file"));
  CHECK(contains(user_error([] { const CsvDataset dataset("/"); }), "cannot read '/'"));
}

TEST_CASE("standardisation is measured over the training set and used on another") {
  const TemporaryFolder folder;
  const auto train = std::make_shared<CsvDataset>(folder.write("a.csv", "x,c,k\n1,5,a\n3,5,a\n8,5,b\n"));
  const auto other = std::make_shared<CsvDataset>(folder.write("b.csv", "x,c,k\n4,6,a\n"));
  const Standardisation measured = measure_standardisation(*train);
  CHECK(measured.mean == std::vector<float>{4, 5});
  CHECK(measured.stddev[0] == doctest::Approx(std::sqrt(26.0 / 3)));
  CHECK(measured.stddev[1] == 1);
  CHECK(values_of(StandardisedDataset(other, measured), 0) == std::vector<float>{0, 1});
  CHECK(values_of(StandardisedDataset(train, measured), 0)[0] == doctest::Approx(-3 / std::sqrt(26.0 / 3)));
  CHECK_THROWS_AS(StandardisedDataset(other, {{1}, {1}}), UserError);
}

TEST_CASE("a column whose deviation kernels may take for 0 is constant") {
  const TemporaryFolder folder;
  const auto table = std::make_shared<CsvDataset>(folder.write("t.csv", "x,label\n1e-45,a\n3e-44,b\n"),
                                                  CsvOptions{.label = "label"});
  CHECK(measure_standardisation(*table).stddev.front() == 1);
}

TEST_CASE("Iris in both of its forms") {
  const auto data = testing::real_data();
  if (!data) return;
  const CsvDataset named(*data / "iris/iris.csv", {.label = "species"});
  const CsvDataset numbered(*data / "iris/iris_sklearn.csv");
  CHECK(named.size() == 150);
  CHECK(named.class_names() == std::vector<std::string>{"setosa", "versicolor", "virginica"});
  CHECK(labels_of(named) == labels_of(numbered));
  for (std::int64_t i = 0; i < 150; ++i) CHECK(values_of(named, i) == values_of(numbered, i));
  for (const auto& fold : stratified_folds(labels_of(named), 5, 1)) {
    std::array<int, 3> counts{};
    for (const std::int64_t index : fold) ++counts[static_cast<std::size_t>(named.label(index))];
    CHECK(counts == std::array<int, 3>{10, 10, 10});
  }
}

}  // namespace plexaura::testing::csv_test
