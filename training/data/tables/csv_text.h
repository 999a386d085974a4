#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

struct CsvCell {
  std::string text;  // without quotes and surrounding blanks
  // The position of the cell's beginning, counted from 1, the column in characters.
  std::int64_t line = 1;
  std::int64_t column = 1;
};

using CsvRow = std::vector<CsvCell>;

// Parses text of the form of RFC 4180, with any delimiter of one character, row by row, without copying the
// whole text.
class CsvText {
 public:
  // `name` is the file's name in errors. `text` must outlive this. Throws UserError for text that is not
  // UTF-8, with the line. `first_line` is the number of the text's first line in the file. If it is 1, also throws
  // for files of other formats, and for lines that end in CR alone.
  CsvText(std::string name, std::string_view text, char delimiter, std::int64_t first_line = 1);

  // Reads the next row that is not empty; returns false after the last one. Throws UserError for a quote that
  // is not closed, or that is followed by something other than a delimiter.
  bool next(CsvRow& row);

  // Returns "file:line:column".
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
  std::int64_t column_ = 1;  // column of the character at `counted_`
  std::size_t counted_ = 0;
};

}  // namespace plexaura
