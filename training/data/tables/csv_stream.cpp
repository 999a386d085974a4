#include "training/data/tables/csv_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"
#include "training/data/tables/csv_header.h"
#include "training/data/tables/csv_rows.h"
#include "training/files/command_output.h"

namespace plexaura {

namespace {

constexpr std::size_t most_bytes_of_row = 16 << 20;

// Divides the output of a command into rows of CSV. A row may have several lines, in cells with quotes.
class CsvOutput {
 public:
  CsvOutput(const std::string& command, const CsvStreamOptions& options)
      : name_("`" + shortened(command) + "`"),
        command_(command),
        delimiter_(options.csv.delimiter),
        is_to_end_(options.is_to_end),
        block_(1 << 16) {}

  const std::string& name() const { return name_; }
  std::int64_t line() const { return line_; }  // line at which the next row begins

  // Reads the text of the next row, with the end of its line. Returns false at the end of the output.
  bool next(std::string& row) {
    row.clear();
    in_ = Place::before_cell;
    while (at_ < end_ || refill()) {
      const char c = block_[at_++];
      row += c;
      if (ends_row(c)) return true;
      if (row.size() > most_bytes_of_row)
        throw UserError(
            fmt::format("{}:{}: the row has more than {} MiB; close the quotes of its cells, or shorten it",
                        name_, line_, most_bytes_of_row >> 20));
    }
    return !row.empty();
  }
  void pass(const std::string& row) { line_ += std::ranges::count(row, '\n'); }

 private:
  enum class Place : std::uint8_t { before_cell, plain, quoted, after_quote };

  bool refill() {
    if (is_to_end_ && !command_.wait(is_to_end_)) throw StreamInterrupted();
    at_ = 0;
    end_ = command_.read(block_);
    return end_ > 0;
  }

  bool ends_row(char c) {
    if (in_ == Place::quoted) {
      if (c == '"') in_ = Place::after_quote;
      return false;
    }
    if (c == '\n') return true;
    if (c == delimiter_)
      in_ = Place::before_cell;
    else if (c == '"' && in_ != Place::plain)  // after a quote it is a doubled one
      in_ = Place::quoted;
    else if (in_ == Place::before_cell && c != ' ' && c != '\t')
      in_ = Place::plain;
    return false;
  }

  std::string name_;
  CommandOutput command_;
  char delimiter_;
  std::function<bool()> is_to_end_;
  std::vector<char> block_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  Place in_ = Place::before_cell;
  std::int64_t line_ = 1;
};

class CsvReader final : public StreamReader {
 public:
  CsvReader(const std::string& command, const CsvStreamOptions& options)
      : output_(command, options), options_(options), classes_(options.csv.class_names) {}

  bool next(std::span<const std::span<std::byte>> values) override {
    do
      if (!read_row()) return false;
    while (rows_->labels().empty());  // a row that lacks a cell may be left out
    std::vector<float> row = rows_->values();
    scale(row);
    const auto bytes = std::as_bytes(std::span(row));
    std::copy_n(bytes.begin(), values[0].size(), values[0].begin());
    if (options_.targets > 0) {
      std::ranges::copy(bytes.subspan(values[0].size()), values[1].begin());
      return true;
    }
    const std::int64_t label = classes_.of(rows_->labels().front());
    std::memcpy(values[1].data(), &label, sizeof label);
    return true;
  }

 private:
  // Reads a row of samples into rows_. Returns false at the end.
  bool read_row() {
    while (output_.next(text_)) {
      CsvText text(output_.name(), text_, options_.csv.delimiter, output_.line());
      output_.pass(text_);
      if (!text.next(row_)) continue;  // an empty line
      const bool is_first = !rows_;
      if (is_first) begin(text);
      if (is_first && options_.csv.header) continue;
      rows_->clear();
      rows_->append(text, row_);
      return true;
    }
    return false;
  }

  void begin(const CsvText& text) {
    check_first_line(text, row_);
    rows_.emplace(output_.name(), text, row_, options_.csv);
    const std::size_t columns = options_.scale.mean.size() - static_cast<std::size_t>(options_.targets);
    if (const std::size_t found = rows_->feature_names().size(); found != columns)
      throw UserError(
          fmt::format("{}: its rows make {} features, and the model takes {}; print rows with the "
                      "columns of the table in data.path",
                      output_.name(), found, columns));
  }

  void scale(std::vector<float>& row) const {
    const std::size_t features = row.size() - static_cast<std::size_t>(options_.targets);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= features && options_.targets_are_labels && row[i] != 0 && row[i] != 1)
        throw UserError(fmt::format(
            "{}: in the row before line {} the label {} is {}; write 1 for a sample with the label "
            "and 0 for one without it",
            output_.name(), output_.line(), rows_->target_names()[i - features], row[i]));
      // NaN stands for a missing cell, and 0 for the mean of its column.
      row[i] = std::isnan(row[i]) ? 0 : (row[i] - options_.scale.mean[i]) / options_.scale.stddev[i];
    }
  }

  CsvOutput output_;
  CsvStreamOptions options_;
  ClassPlaces classes_;
  std::optional<CsvRows> rows_;  // the present row; empty before the first line
  std::string text_;
  CsvRow row_;
};

std::string replaced(std::string text, const std::string& what, std::int64_t number) {
  const std::string by = std::to_string(number);
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

CsvStream::CsvStream(std::string command, CsvStreamOptions options)
    : command_(std::move(command)), options_(std::move(options)) {}

std::vector<Field> CsvStream::fields() const {
  const Field features{"samples", {DType::float32, {std::ssize(options_.scale.mean) - options_.targets}}};
  if (options_.targets > 0) return {features, {"targets", {DType::float32, {options_.targets}}}};
  return {features, {"labels", {DType::int64, {}}}};
}

std::unique_ptr<StreamReader> CsvStream::open(std::int64_t rank, std::int64_t ranks) const {
  CsvStreamOptions options = options_;
  // A rank that stopped waiting alone would meet the deadline while the others wait for their rows.
  if (ranks > 1) options.is_to_end = nullptr;
  if (!is_divided()) return std::make_unique<CsvReader>(command_, options);
  return std::make_unique<CsvReader>(replaced(replaced(command_, "{rank}", rank), "{ranks}", ranks), options);
}

}  // namespace plexaura
