#include "app/data/text_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <utility>

#include "app/data/describe_data.h"
#include "app/data/prediction_data.h"
#include "core/base/fnv.h"
#include "core/base/utf8.h"
#include "training/data/subset.h"
#include "training/data/text/token_windows.h"
#include "training/files/file.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;
constexpr std::int64_t most_tokens = 1'000'000;

struct TextParts {
  std::string train;
  std::string validation = {};
};

// Returns the file itself, or all files in a folder, and in folders within it, whose names end with the extension, in the
// order of their paths.
std::vector<fs::path> text_files_of(const Section& data, const char* key, const fs::path& path,
                                    const std::string& extension) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_regular_file() && entry->path().filename().string().ends_with(extension))
      files.push_back(entry->path());
  if (error)
    throw data.error(key, fmt::format("'{}' cannot be read: {}; check the permissions of its folders",
                                      path.string(), error.message()));
  if (files.empty())
    throw data.error(
        key, fmt::format("'{}' contains no file whose name ends with '{}'; name another folder, or give "
                         "the end of the names in data.extension",
                         path.string(), extension));
  std::ranges::sort(files);
  return files;
}

std::string read_text(const fs::path& file, TokenKind kind) {
  std::string text = read_text_file(file, most_bytes);
  const std::size_t wrong = kind == TokenKind::bytes ? text.size() : first_not_utf8(text);
  if (wrong < text.size())
    throw UserError(fmt::format(
        "{}: byte {} is not a character of UTF-8; convert the file, for example with iconv, or set "
        "data.tokens to bytes",
        file.string(), wrong + 1));
  return text;
}

// Returns the length of the first part of a text, about `share` of it, without dividing a character of UTF-8.
std::size_t first_part(std::string_view text, double share, TokenKind kind) {
  auto length = static_cast<std::size_t>(static_cast<double>(text.size()) * share);
  const auto is_inside = [&] {
    return length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U;
  };
  while (kind != TokenKind::bytes && is_inside()) --length;
  return length;
}

// Reads all files. If validation has no text of its own, it gets the end of each file.
TextParts read_parts(const Section& data, const DataOptions& options) {
  const TextOptions& text = options.text;
  const double share = options.validates() && text.validation_path.empty() ? text.validation_share : 0;
  TextParts parts;
  for (const fs::path& file : text_files_of(data, "path", options.path, text.extension)) {
    const std::string whole = read_text(file, text.tokens);
    const std::size_t length = first_part(whole, 1 - share, text.tokens);
    parts.train += whole.substr(0, length);
    parts.validation += whole.substr(length);
  }
  if (parts.train.empty() && parts.validation.empty())
    throw data.error("path", fmt::format("'{}' is empty; name a text with tokens", options.path.string()));
  if (options.validates() && !text.validation_path.empty())
    for (const fs::path& file : text_files_of(data, "validation_path", text.validation_path, text.extension))
      parts.validation += read_text(file, text.tokens);
  return parts;
}

void require_vocabulary(const Section& data, const TextOptions& text,
                        const std::optional<TrainedData>& trained) {
  if (!trained || !trained->vocabulary)
    throw data.error(
        "format",
        "is text, and the weights are of a model that was not trained on a text; name weights of one "
        "that was, or the data.format of their training");
  const TokenKind kind = trained->vocabulary->kind();
  if (kind != text.tokens)
    throw data.error("tokens", fmt::format("is {}, and the weights are of a model of {}; set it to {}",
                                           name_of(text.tokens), name_of(kind), name_of(kind)));
}

Vocabulary make_vocabulary(const Section& data, const TextOptions& text, std::string_view train) {
  if (train.empty())
    throw data.error(
        "validation_share",
        fmt::format("is {}, which leaves no token to train on; give a smaller share", text.validation_share));
  Vocabulary made = Vocabulary::of_text(text.tokens, train, text.minimum_count);
  if (made.size() > most_tokens)
    throw data.error("minimum_count",
                     fmt::format("is {}, which leaves {} different tokens, more than {}; give a larger "
                                 "number",
                                 text.minimum_count, made.size(), most_tokens));
  if (text.tokens != TokenKind::bytes && made.size() == 1)
    throw data.error("minimum_count",
                     fmt::format("is {}, and no token of the text occurs so often; give a smaller number",
                                 text.minimum_count));
  return made;
}

// Throws unless there is a whole window to train on, if the data is for training, and something to validate on.
void require_length(const Section& data, const DataOptions& options, std::size_t train,
                    std::size_t validation, bool trains) {
  const TextOptions& text = options.text;
  const auto needed = static_cast<std::size_t>(text.sequence_length) + 1;
  if (trains && train < needed)
    throw data.error(
        "path",
        fmt::format("'{}' has {} to train on, and a window takes data.sequence_length and one more, {}; "
                    "name a longer text, or give a smaller sequence_length",
                    options.path.string(), counted(static_cast<std::int64_t>(train), "token", "tokens"),
                    needed));
  if (!options.validates() || validation >= 2) return;
  if (!text.validation_path.empty())
    throw data.error("validation_path", fmt::format("'{}' has fewer than 2 tokens; name a longer text",
                                                    text.validation_path.string()));
  if (text.validation_share > 0)
    throw data.error("validation_share",
                     fmt::format("is {}, which leaves fewer than 2 tokens for validation; give a larger "
                                 "share, or 0",
                                 text.validation_share));
}

// Returns the windows of a text, or some of them. A text that is too short has none.
std::shared_ptr<const SampleSource> windows_of(std::vector<std::int32_t> tokens, std::int64_t length,
                                               std::int64_t stride, std::optional<double> fraction,
                                               std::optional<std::int64_t> limit) {
  constexpr std::uint64_t seed = 1;
  std::vector<std::int64_t> starts;
  if (tokens.size() >= 2) starts = window_starts(std::ssize(tokens), length, stride);
  const auto keep = [&](const std::vector<std::int64_t>& indices) {
    std::vector<std::int64_t> kept;
    for (const std::int64_t index : indices) kept.push_back(starts[static_cast<std::size_t>(index)]);
    starts = std::move(kept);
  };
  const auto alike = [&] { return std::vector<std::int64_t>(starts.size(), 0); };
  if (fraction && !starts.empty()) keep(stratified_fraction(alike(), *fraction, seed));
  if (limit && !starts.empty()) keep(stratified_limit(alike(), *limit, seed));
  return std::make_shared<TokenWindows>(std::move(tokens), length, std::move(starts));
}

std::string tokens_text(const Vocabulary& vocabulary, const std::vector<std::int32_t>& train) {
  if (vocabulary.kind() == TokenKind::bytes) return "the 256 bytes";
  const auto unknown = std::ranges::count(train, 0);
  return fmt::format("{} {} and {}, which stands for {} of the {} tokens to train on", vocabulary.size() - 1,
                     name_of(vocabulary.kind()), unknown_token, unknown, train.size());
}

}  // namespace

RunData open_text(const Section& data, const DataOptions& options, const std::optional<TrainedData>& trained,
                  DataUse use) {
  const TextOptions& text = options.text;
  if (trained) require_vocabulary(data, text, trained);
  const TextParts parts = read_parts(data, options);
  const Vocabulary vocabulary = trained ? *trained->vocabulary : make_vocabulary(data, text, parts.train);
  std::vector<std::int32_t> train = vocabulary.encode(parts.train);
  std::vector<std::int32_t> validation = vocabulary.encode(parts.validation);
  require_length(data, options, train.size(), validation.size(), trains(use));
  const std::int64_t length = text.sequence_length;
  RunData found;
  found.outputs = tokens_text(vocabulary, train);
  found.preparation = fmt::format("windows of {}, each {} after the one before",
                                  counted(length, "token", "tokens"), text.stride);
  found.is_cut = !parts.train.empty() && text.validation_path.empty();
  found.origin = fnv(fmt::format("text {} {} {}, {} to train on", name_of(vocabulary.kind()), length,
                                 text.stride, train.size()));
  found.origin = fnv(std::as_bytes(std::span(train)), found.origin);
  if (found.is_cut) found.origin = fnv(std::as_bytes(std::span(validation)), found.origin);
  const std::size_t tokens = train.size() + validation.size();
  found.train = windows_of(std::move(train), length, text.stride, options.use_fraction, options.limit);
  found.validation = windows_of(std::move(validation), length, length, std::nullopt,
                                options.validates() ? options.validation_limit : std::nullopt);
  found.description =
      fmt::format("{} of {}, {} for validation, from a text of {} in {}",
                  counted(found.train->size(), "window", "windows"), counted(length, "token", "tokens"),
                  found.validation->size(), counted(static_cast<std::int64_t>(tokens), "token", "tokens"),
                  options.path.string());
  found.trained.vocabulary = vocabulary;
  return found;
}

RunData data_to_generate(const Config& config, const std::optional<TrainedData>& trained) {
  const Section data = config.section("data");
  const Section model = config.section("model");
  const Task task = read_task(model);
  if (task != Task::language_model)
    throw model.error("task", fmt::format("is {}, and --generate continues a text; it needs language_model",
                                          name_of(task)));
  const DataOptions options = read_data_options(data, DataUse::predict, task);
  require_vocabulary(data, options.text, trained);
  return data_without_samples({DType::int64, {options.text.sequence_length}}, *trained, {});
}

}  // namespace plexaura
