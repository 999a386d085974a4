#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

struct CsvCell {
  std::string text;  // without quotes and the blanks around it
  // Where it begins, counted from 1, the column in characters.
  std::int64_t line = 1;
  std::int64_t column = 1;
};

using CsvRow = std::vector<CsvCell>;

// Takes a text in the form of RFC 4180 (with any one-character delimiter) apart, row by row, without a second
// copy of the whole.
class CsvText {
 public:
  // `name` is the file's, for errors; `text` must outlive this. Throws UserError for what is
  // not UTF-8 text, with its line, and for lines that end in CR alone.
  CsvText(std::string name, std::string_view text, char delimiter);

  // The next row that is not empty; false behind the last. Throws UserError at a quote that is not closed, or
  // is followed by something else than a delimiter.
  bool next(CsvRow& row);

  // "file:line:column", as editors and compilers write it.
  std::string place(const CsvCell& cell) const;

 private:
  CsvCell plain_cell();
  CsvCell quoted_cell();
  void unquote(CsvCell& cell);
  void skip_blanks();
  bool at_line_end() const { return at_ == text_.size() || text_[at_] == '\n'; }
  bool at_cell_end() const { return at_line_end() || text_[at_] == delimiter_; }
  void begin_line();
  CsvCell empty_cell_here();

  std::string name_;
  std::string_view text_;
  char delimiter_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t column_ = 1;  // of the character at `counted_`
  std::size_t counted_ = 0;
};

}  // namespace plexaura
