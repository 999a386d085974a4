#include "training/data/tables/csv_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace plexaura {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr std::string_view utf16_little = "\xff\xfe";
constexpr std::string_view utf16_big = "\xfe\xff";

void check_utf8(const std::string& name, std::string_view text, std::int64_t first_line) {
  const std::size_t at = first_not_utf8(text);
  if (at < text.size())
    throw UserError(
        fmt::format("{}:{}: the line contains the byte {:02x}, which is not UTF-8; save the file as "
                    "UTF-8 (it may be Latin-1)",
                    name, first_line + std::ranges::count(text.substr(0, at), '\n'),
                    static_cast<unsigned char>(text[at])));
}

// Throws for files of other formats, recognised by their first bytes.
void check_kind(const std::string& name, std::string_view text) {
  if (text.starts_with("\x1f\x8b"))
    throw UserError(fmt::format("{}: is compressed by gzip; unpack it first", name));
  if (text.starts_with("PK\x03\x04"))
    throw UserError(
        fmt::format("{}: is a zip archive, as spreadsheets (.xlsx) are; export the table as CSV", name));
}

void check_line_ends(const std::string& name, std::string_view text) {
  const std::size_t first = text.find('\r');
  if (first < text.size() - 1 && text.find('\n') == std::string_view::npos)
    throw UserError(fmt::format("{}: its lines end in a single CR; save it with LF or CRLF", name));
}

// Throws for text that cannot be the beginning of a table.
void check_beginning(const std::string& name, std::string_view text) {
  check_kind(name, text);
  if (text.starts_with(utf16_little) || text.starts_with(utf16_big))
    throw UserError(fmt::format("{}: its first bytes say that it is UTF-16; save it as UTF-8", name));
  check_line_ends(name, text);
}

void check_encoding(const std::string& name, std::string_view text, std::int64_t first_line) {
  if (text.find('\0') != std::string_view::npos)
    throw UserError(fmt::format(
        "{}: contains a zero byte, as UTF-16 text and binary files do; save it as UTF-8 text", name));
  check_utf8(name, text, first_line);
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

CsvText::CsvText(std::string name, std::string_view text, char delimiter, std::int64_t first_line)
    : name_(std::move(name)), text_(text), delimiter_(delimiter), line_(first_line) {
  const bool is_beginning = first_line == 1;
  if (is_beginning) check_beginning(name_, text_);
  check_encoding(name_, text_, first_line);
  if (is_beginning && text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
}

std::string CsvText::place(const CsvCell& cell) const {
  return fmt::format("{}:{}:{}", name_, cell.line, cell.column);
}

bool CsvText::next(CsvRow& row) {
  while (at_ < text_.size()) {
    row.clear();
    while (true) {
      skip_blanks();
      row.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_cell() : plain_cell());
      if (at_line_end()) break;
      ++at_;  // skips the delimiter
    }
    if (at_ < text_.size()) ++at_;
    begin_line();
    const bool empty = row.size() == 1 && row.front().text.empty();
    if (!empty) return true;
  }
  return false;
}

void CsvText::begin_line() {
  ++line_;
  column_ = 1;
  counted_ = at_;
}

CsvCell CsvText::empty_cell_here() {
  for (; counted_ < at_; ++counted_)
    if ((static_cast<unsigned char>(text_[counted_]) & 0xc0) != 0x80) ++column_;
  return {{}, line_, column_};
}

void CsvText::skip_blanks() {
  while (!at_cell_end() && is_blank(text_[at_])) ++at_;
}

CsvCell CsvText::plain_cell() {
  CsvCell cell = empty_cell_here();
  const std::size_t start = at_;
  while (!at_cell_end()) ++at_;
  std::size_t end = at_;
  while (end > start && is_blank(text_[end - 1])) --end;
  cell.text = text_.substr(start, end - start);
  return cell;
}

CsvCell CsvText::quoted_cell() {
  CsvCell cell = empty_cell_here();
  unquote(cell);
  skip_blanks();
  if (!at_cell_end())
    throw UserError(
        fmt::format("{}: a closing quote is followed by '{}'; put a delimiter between, or double the quote "
                    "within the cell",
                    place(empty_cell_here()), text_[at_]));
  return cell;
}

// Reads from the opening quote to the closing one. A doubled quote means one quote.
void CsvText::unquote(CsvCell& cell) {
  ++at_;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      const bool doubled = at_ < text_.size() && text_[at_] == '"';
      if (!doubled) return;
      ++at_;
    } else if (c == '\n') {
      begin_line();
    }
    cell.text += c;
  }
  throw UserError(fmt::format("{}: the quote opened here is never closed; add a closing quote", place(cell)));
}

}  // namespace plexaura
