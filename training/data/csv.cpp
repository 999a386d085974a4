#include "training/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "training/data/csv_text.h"
#include "training/file.h"

namespace plexaura {

namespace {

// Foreign text in an error is not shown at any length.
std::string shown(const std::string& text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a character
  return text.substr(0, end) + "...";
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) first.push_back(shown(names[i]));
  const std::string rest = names.size() > most ? fmt::format(" and {} more", names.size() - most) : "";
  return fmt::format("{}{}", fmt::join(first, ", "), rest);
}

// Reads the whole of `text` as a finite number, in the range of float32.
std::errc parse_number(const std::string& text, double& value) {
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");  // from_chars knows no plus
  const char* last = text.data() + text.size();
  const auto result = std::from_chars(text.data() + (has_plus ? 1 : 0), last, value);
  const bool is_whole = result.ptr == last && std::isfinite(value);
  if (result.ec == std::errc{} && !is_whole) return std::errc::invalid_argument;
  // Not whether a float of it is 0: that depends on what this thread does with denormals.
  constexpr double rounds_to_none = static_cast<double>(std::numeric_limits<float>::denorm_min()) / 2;
  const bool fits = value == 0 || (std::abs(value) <= std::numeric_limits<float>::max() &&
                                   std::abs(value) > rounds_to_none);
  return result.ec == std::errc{} && !fits ? std::errc::result_out_of_range : result.ec;
}

bool is_number(const std::string& text) {
  double ignored = 0;
  return parse_number(text, ignored) == std::errc{};
}

constexpr std::size_t no_column = std::numeric_limits<std::size_t>::max();

// The columns of a file by name and number.
class Columns {
 public:
  Columns(std::string file, const CsvRow& first, bool header) : file_(std::move(file)) {
    for (std::size_t i = 0; i < first.size(); ++i)
      names_.push_back(header ? first[i].text : fmt::format("column {}", i));
  }

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t column) const { return names_[column]; }

  std::size_t find(const ColumnRef& wanted) const {
    const auto* name = std::get_if<std::string>(&wanted);
    return name != nullptr ? find_name(*name) : find_number(std::get<std::int64_t>(wanted));
  }

 private:
  std::size_t find_name(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
      throw UserError(fmt::format(
          "{}: no column is called '{}'; the columns are: {}{}", file_, name, list_of(names_),
          std::ranges::any_of(names_, is_number) ? "; if the first line is a sample, set data.header to false"
                                                 : ""));
    return static_cast<std::size_t>(found - names_.begin());
  }

  std::size_t find_number(std::int64_t number) const {
    const auto count = static_cast<std::int64_t>(names_.size());
    if (number < -count || number >= count)
      throw UserError(
          fmt::format("{}: column {} does not exist; the columns are numbered from 0 to {} (or {} to -1)",
                      file_, number, count - 1, -count));
    return static_cast<std::size_t>(number < 0 ? number + count : number);
  }

  std::string file_;
  std::vector<std::string> names_;
};

std::vector<std::size_t> feature_columns(const Columns& columns, const CsvOptions& options,
                                         std::size_t label) {
  std::vector<std::size_t> chosen;
  for (const ColumnRef& feature : options.features) chosen.push_back(columns.find(feature));
  if (options.features.empty())
    for (std::size_t column = 0; column < columns.size(); ++column)
      if (column != label) chosen.push_back(column);
  return chosen;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> sorted_classes(const std::set<std::string>& found) {
  std::vector<std::string> classes(found.begin(), found.end());
  if (std::ranges::all_of(classes, [](const std::string& name) { return whole_number(name).has_value(); }))
    std::ranges::stable_sort(classes, {}, [](const std::string& name) { return *whole_number(name); });
  return classes;
}

// A label as it stands in the file.
struct NamedLabel {
  std::string text;
  std::string place;
};

std::vector<std::int64_t> place_labels(const std::vector<NamedLabel>& labels,
                                       const std::vector<std::string>& classes) {
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : classes) numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  std::vector<std::int64_t> placed;
  for (const NamedLabel& label : labels) {
    const auto found = numbers.find(label.text);
    if (found == numbers.end())
      throw UserError(fmt::format("{}: '{}' is none of the classes {}; correct the label or add the class",
                                  label.place, shown(label.text), list_of(classes)));
    placed.push_back(found->second);
  }
  return placed;
}

// One cell where there should be several: the file separates its columns by something else.
void check_delimiter(const CsvText& text, const CsvRow& first) {
  if (first.size() > 1) return;
  const std::string& only = first.front().text;
  const std::size_t other = only.find_first_of(",;\t|");
  if (other != std::string::npos)
    throw UserError(fmt::format(
        "{}: the first line is one column and holds {}; if that separates the columns, set data.delimiter to "
        "it",
        text.place(first.front()), only[other] == '\t' ? "a tab" : fmt::format("'{}'", only[other])));
}

// A first line whose features are numbers would be lost as names of columns.
void check_header(const CsvText& text, const CsvRow& first, const std::vector<std::size_t>& features) {
  if (std::ranges::all_of(features, [&](std::size_t column) { return is_number(first[column].text); }))
    throw UserError(
        fmt::format("{}: the first line holds numbers where the names of the columns should be; set "
                    "data.header to false if it is a sample, or to true if these are the names",
                    text.place(first.front())));
}

// A first line of names is no sample.
void check_no_header(const CsvText& text, const CsvRow& first, const std::vector<std::size_t>& features) {
  if (std::ranges::none_of(features, [&](std::size_t column) {
        return first[column].text.empty() || is_number(first[column].text);
      }))
    throw UserError(
        fmt::format("{}: '{}' is no number, and the first line may be the names of the columns; "
                    "leave out data.header=false if it is",
                    text.place(first[features.front()]), shown(first[features.front()].text)));
}

// A name that is given twice does not say which column is meant.
void check_names(const CsvText& text, const CsvRow& header, const std::vector<std::size_t>& used) {
  if (std::ranges::find(used, header.size() - 1) != used.end() && header.back().text.empty())
    throw UserError(fmt::format(
        "{}: the last column has no name; name it, or remove the delimiter at the end of the line",
        text.place(header.back())));
  std::map<std::string, std::size_t> first;
  for (std::size_t column = 0; column < header.size(); ++column) {
    const auto [found, is_new] = first.emplace(header[column].text, column);
    if (is_new) continue;
    for (const std::size_t twin : {found->second, column})
      if (std::ranges::find(used, twin) != used.end())
        throw UserError(fmt::format("{}: a column is called '{}' as another one is; rename one of them",
                                    text.place(header[column]), shown(header[column].text)));
  }
}

double parse_feature(const std::string& text, const std::string& place, const std::string& column) {
  double value = 0;
  const std::errc error = parse_number(text, value);
  if (error == std::errc::result_out_of_range)
    throw UserError(fmt::format("{}: '{}' in {} is out of the range of float32; scale the column", place,
                                shown(text), column));
  if (error != std::errc{})
    throw UserError(
        fmt::format("{}: '{}' in {} is not a finite number; features are numbers, so correct the cell or "
                    "leave the column out",
                    place, shown(text), column));
  return value;
}

void check_width(const CsvText& text, const CsvRow& row, std::size_t width) {
  if (row.size() == width) return;
  const CsvCell& cell = row[std::min(width, row.size() - 1)];
  const bool ends_in_delimiter = row.size() == width + 1 && row.back().text.empty();
  throw UserError(
      fmt::format("{}: the row has {} cells where the first has {}; {}", text.place(cell), row.size(), width,
                  ends_in_delimiter ? "remove the delimiter at its end" : "give every row as many"));
}

// What the rows hold, before labels have become numbers.
struct Table {
  std::vector<double> values;
  std::vector<NamedLabel> labels;

  void append(const CsvText& text, const CsvRow& row, const Columns& columns,
              const std::vector<std::size_t>& features, std::size_t label) {
    check_width(text, row, columns.size());
    for (const std::size_t column : features)
      values.push_back(parse_feature(row[column].text, text.place(row[column]), columns.name(column)));
    labels.push_back(label == no_column ? NamedLabel{} : NamedLabel{row[label].text, text.place(row[label])});
    if (label != no_column && labels.back().text.empty())
      throw UserError(fmt::format("{}: the label in {} is missing; fill in the class or remove the row",
                                  labels.back().place, columns.name(label)));
  }

  std::vector<std::string> classes() const {
    std::set<std::string> found;
    for (const NamedLabel& label : labels) found.insert(label.text);
    return sorted_classes(found);
  }
};

// Large numbers that differ by little, such as times in seconds since 1970, are the same as float32.
void check_precision(const std::string& file, const std::vector<double>& values,
                     const std::vector<std::string>& names) {
  constexpr double largest_share = 0.01;
  for (std::size_t column = 0; column < names.size(); ++column) {
    double least = values[column];
    double most = values[column];
    double rounding = 0;
    for (std::size_t i = column; i < values.size(); i += names.size()) {
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
      rounding = std::max(rounding, std::abs(values[i] - static_cast<double>(static_cast<float>(values[i]))));
    }
    const double largest = std::max(std::abs(least), std::abs(most));
    const bool is_normal = largest >= std::numeric_limits<float>::min();  // the rest counts as 0 anyway
    if (is_normal && most > least && rounding > largest_share * (most - least))
      throw UserError(
          fmt::format("{}: the numbers of {} lie between {} and {}, and float32 rounds them by up to {:.2g}; "
                      "subtract a number from the whole column",
                      file, shown(names[column]), least, most, rounding));
  }
}

}  // namespace

CsvDataset::CsvDataset(const std::filesystem::path& path, const CsvOptions& options) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  CsvText text(path.string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.delimiter);
  CsvRow row;
  if (!text.next(row))
    throw UserError(fmt::format("{}: the file is empty; it needs rows of samples", path.string()));
  check_delimiter(text, row);
  const Columns columns(path.string(), row, options.header);
  const std::size_t label = options.labelled ? columns.find(options.label) : no_column;
  const std::vector<std::size_t> features = feature_columns(columns, options, label);
  if (features.empty())
    throw UserError(
        fmt::format("{}: the label is the only column; features need one at least", path.string()));
  if (options.header && !options.names_may_be_numbers) check_header(text, row, features);
  if (!options.header) check_no_header(text, row, features);
  std::vector<std::size_t> used = features;
  if (label != no_column) used.push_back(label);
  if (options.header) check_names(text, row, used);
  for (const std::size_t column : features) feature_names_.push_back(columns.name(column));

  Table table;
  if (!options.header) table.append(text, row, columns, features, label);
  while (text.next(row)) table.append(text, row, columns, features, label);
  if (table.labels.empty())
    throw UserError(fmt::format("{}: no row follows the header; add samples", path.string()));
  class_names_ = options.class_names.empty() ? table.classes() : options.class_names;
  labels_ = options.labelled ? place_labels(table.labels, class_names_)
                             : std::vector<std::int64_t>(table.labels.size(), 0);
  if (options.labelled) check_precision(path.string(), table.values, feature_names_);
  values_.assign(table.values.begin(), table.values.end());
}

void CsvDataset::read(std::int64_t index, const SampleContext&, std::span<float> sample,
                      std::int64_t& label) const {
  const auto row = static_cast<std::size_t>(index);
  const auto width = feature_names_.size();
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(row * width), width, sample.begin());
  label = labels_[row];
}

}  // namespace plexaura
