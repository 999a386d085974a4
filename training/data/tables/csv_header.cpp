#include "training/data/tables/csv_header.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"

namespace plexaura {

namespace {

// Returns the delimiter that this line, which was read as one cell, may contain, or an empty text.
std::string other_delimiter(const std::string& line) {
  const std::size_t at = line.find_first_of(",;\t|");
  if (at != std::string::npos) return line[at] == '\t' ? "a tab" : fmt::format("'{}'", line[at]);
  return line.find(' ') == std::string::npos ? "" : "blanks";
}

// True for the name that pandas gives a column without a name in its file.
bool is_name_of_pandas(const std::string& name) {
  constexpr std::string_view begin = "Unnamed: ";
  return name.starts_with(begin) && name.size() > begin.size() &&
         name.find_first_not_of("0123456789", begin.size()) == std::string::npos;
}

bool is_called_label(std::string name) {
  std::ranges::transform(name, name.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  constexpr std::array<std::string_view, 4> names{"label", "labels", "class", "target"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

void check_first_line(const CsvText& text, const CsvRow& first) {
  const CsvCell& begin = first.front();
  if (begin.text.starts_with("sep=") && begin.text.size() <= std::string_view("sep=;").size())
    throw UserError(fmt::format(
        "{}: '{}' names the delimiter for a spreadsheet and is not a line of the table; remove the "
        "line, and set data.delimiter to that character",
        text.place(begin), shortened(begin.text)));
  if (first.size() > 1) return;
  if (begin.text.starts_with('#'))
    throw UserError(
        fmt::format("{}: the first line is a comment, '{}', which a table does not have; remove such lines",
                    text.place(begin), shortened(begin.text)));
  if (const std::string other = other_delimiter(begin.text); !other.empty())
    throw UserError(fmt::format(
        "{}: the first line is one column and contains {}; if {} the columns, set data.delimiter to {}",
        text.place(begin), other, other == "blanks" ? "one blank separates" : "that separates",
        other == "blanks" ? "' '" : "it"));
}

void check_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features) {
  if (std::ranges::all_of(features, [&](std::size_t column) { return is_number(first[column].text); }))
    throw UserError(
        fmt::format("{}: the first line contains numbers instead of the names of the columns; set "
                    "data.header to false if it is a sample, or to true if these are the names",
                    text.place(first.front())));
}

void check_no_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features) {
  if (std::ranges::none_of(features, [&](std::size_t column) {
        return first[column].text.empty() || is_number(first[column].text);
      }))
    throw UserError(
        fmt::format("{}: '{}' is not a number, and the first line may be the names of the columns; "
                    "leave out data.header=false if it is",
                    text.place(first[features.front()]), shortened(first[features.front()].text)));
}

void check_named(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used) {
  for (const std::size_t column : used) {
    const CsvCell& cell = header[column];
    if (is_name_of_pandas(cell.text))
      throw UserError(
          fmt::format("{}: '{}' is what pandas calls a column without a name, often the numbers of the rows; "
                      "remove the column, or rename it if it is a feature",
                      text.place(cell), cell.text));
    if (!cell.text.empty()) continue;
    if (column == header.size() - 1)
      throw UserError(fmt::format(
          "{}: the last column has no name; name it, or remove the delimiter at the end of the line",
          text.place(cell)));
    throw UserError(fmt::format(
        "{}: column {} has no name, which is how pandas and R write the numbers of the rows; remove "
        "the column (pandas: to_csv with index=False), or name it if it is a feature",
        text.place(cell), column));
  }
}

void check_assumed_label(const CsvText& text, const CsvRow& header, std::size_t label) {
  if (is_called_label(header[label].text)) return;
  const auto found =
      std::ranges::find_if(header, [](const CsvCell& cell) { return is_called_label(cell.text); });
  if (found != header.end())
    throw UserError(fmt::format(
        "{}: a column is called '{}', and the last one, '{}', would be the label; name the one that "
        "holds the classes in data.label",
        text.place(*found), shortened(found->text), shortened(header[label].text)));
}

void check_names_differ(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used) {
  std::map<std::string, std::size_t> first;
  for (std::size_t column = 0; column < header.size(); ++column) {
    const auto [found, is_new] = first.emplace(header[column].text, column);
    if (is_new) continue;
    for (const std::size_t twin : {found->second, column})
      if (std::ranges::find(used, twin) != used.end())
        throw UserError(fmt::format("{}: a column is called '{}' as another one is; rename one of them",
                                    text.place(header[column]), shortened(header[column].text)));
  }
}

}  // namespace plexaura
