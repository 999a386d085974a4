#include "training/data/arrays/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "training/data/arrays/little_endian.h"

namespace plexaura {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t longest_npy_header = 1 << 20;

// The header of a file: a dictionary of Python with the keys 'descr', 'fortran_order' and 'shape'.
class HeaderText {
 public:
  HeaderText(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError(fmt::format("{}: {}", name_, what));
  }

  NpyType type() const {
    std::string_view text = value("'descr'");
    if (text.starts_with('['))
      refuse("its elements are records of several fields; save each field as an array of its own");
    text.remove_prefix(text.starts_with('\'') ? 1 : 0);
    const std::string_view descr = text.substr(0, text.find('\''));
    if (descr.size() < 3) refuse("its header is not one of numpy");
    if (descr[1] == 'O')
      refuse("its elements are objects of Python, which only a pickle could restore; save numbers or text");
    NpyType type{.kind = descr[1], .is_big_endian = descr[0] == '>', .descr = std::string(descr)};
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
    const bool is_whole_text = error == std::errc() && end == descr.data() + descr.size();
    constexpr std::size_t longest_text = 4096;
    const bool is_known =
        (type.is_text() && size >= 1 && size <= longest_text) || (type.kind == 'b' && size == 1) ||
        (type.kind == 'f' && (size == 2 || size == 4 || size == 8)) ||
        ((type.kind == 'i' || type.kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8));
    if (!is_whole_text || !is_known || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
      refuse(fmt::format(
          "its elements are '{}', but only floating numbers of 16, 32 and 64 bits, whole numbers, "
          "bool and text are read; convert them with astype()",
          descr));
    type.bytes = type.kind == 'U' ? size * 4 : size;
    return type;
  }

  void require_c_order() const {
    if (!value("'fortran_order'").starts_with("False"))
      refuse("its elements are in Fortran's order; save numpy.ascontiguousarray(array)");
  }

  std::vector<std::int64_t> extents() const {
    std::string_view text = value("'shape'");
    if (!text.starts_with('(')) refuse("its header is not one of numpy");
    text.remove_prefix(1);
    std::vector<std::int64_t> extents;
    while (!text.empty() && text[0] != ')') {
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
      if (error != std::errc() || extent < 0) refuse("its header is not one of numpy");
      extents.push_back(extent);
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      text.remove_prefix(std::min(text.find_first_not_of(", L"), text.size()));
    }
    return extents;
  }

 private:
  std::string_view value(std::string_view key) const {
    std::string_view text = text_;
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) refuse("its header is not one of numpy");
    text.remove_prefix(at + key.size());
    text.remove_prefix(std::min(text.find_first_not_of(": "), text.size()));
    return text;
  }

  std::string name_;
  std::string text_;
};

// Reads the header, and sets `begin` to the offset of the elements.
HeaderText read_header(const ByteRange& file, std::uint64_t& begin) {
  std::array<std::byte, 12> head{};
  if (file.size() >= head.size()) file.read(0, head);
  if (std::memcmp(head.data(), magic.data(), magic.size()) != 0)
    throw UserError(
        fmt::format("{}: does not begin as a file of numpy; save the array with numpy.save()", file.name()));
  const bool is_short = head[6] == std::byte{1};
  const std::uint64_t bytes =
      is_short ? little_endian<std::uint16_t>(head, 8) : little_endian<std::uint32_t>(head, 8);
  begin = is_short ? 10 : 12;
  if (bytes > file.size() - begin || bytes > longest_npy_header)
    throw UserError(fmt::format("{}: ends at offset {}, within its header; make or fetch it again",
                                file.name(), file.size()));
  std::string text(bytes, '\0');
  file.read(begin, std::as_writable_bytes(std::span(text)));
  begin += bytes;
  return {file.name(), std::move(text)};
}

// Returns the product of two numbers that are not negative, or the largest number if that is less.
std::int64_t bounded_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a != 0 && b > most / a ? most : a * b;
}

// Calls `use(T)` with a value of the C++ type of numbers.
template <class Use>
void with_type(const NpyType& type, const Use& use) {
  if (type.kind == 'f' && type.bytes == 2) return use(float16{});
  if (type.kind == 'f') return type.bytes == 4 ? use(float{}) : use(double{});
  const bool is_signed = type.kind == 'i';
  if (type.bytes == 1) return is_signed ? use(std::int8_t{}) : use(std::uint8_t{});
  if (type.bytes == 2) return is_signed ? use(std::int16_t{}) : use(std::uint16_t{});
  if (type.bytes == 4) return is_signed ? use(std::int32_t{}) : use(std::uint32_t{});
  return is_signed ? use(std::int64_t{}) : use(std::uint64_t{});
}

template <class T>
T element(const NpyType& type, const std::vector<std::byte>& bytes, std::size_t index) {
  std::array<std::byte, sizeof(T)> one{};
  std::memcpy(one.data(), bytes.data() + index * sizeof(T), sizeof(T));
  if (type.is_big_endian != (std::endian::native == std::endian::big)) std::ranges::reverse(one);
  T value{};
  std::memcpy(&value, one.data(), sizeof(T));
  return value;
}

std::string utf8(std::uint32_t point) {
  std::string text;
  if (point < 0x80) return text += static_cast<char>(point);
  const auto follow = [&](int shift) { text += static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x800) {
    text += static_cast<char>(0xc0 | (point >> 6));
  } else if (point < 0x10000) {
    text += static_cast<char>(0xe0 | (point >> 12));
    follow(6);
  } else {
    text += static_cast<char>(0xf0 | (point >> 18));
    follow(12);
    follow(6);
  }
  follow(0);
  return text;
}

constexpr std::uint32_t beyond_unicode = 0x110000;

}  // namespace

NpyArray::NpyArray(ByteRange file) : file_(std::move(file)) {
  const HeaderText header = read_header(file_, begin_);
  type_ = header.type();
  header.require_c_order();
  extents_ = header.extents();
  count_elements();
}

NpyArray::NpyArray(ByteRange elements, NpyType type, std::vector<std::int64_t> extents)
    : file_(std::move(elements)), type_(std::move(type)), extents_(std::move(extents)) {
  count_elements();
}

void NpyArray::count_elements() {
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    elements_ = bounded_product(elements_, extents_[i]);
    if (i > 0) row_elements_ = bounded_product(row_elements_, extents_[i]);
  }
  const std::uint64_t bytes = file_.size() - begin_;
  const std::int64_t needed = bounded_product(elements_, static_cast<std::int64_t>(type_.bytes));
  if (bytes != static_cast<std::uint64_t>(needed))
    throw UserError(
        fmt::format("{}: has {} bytes of elements from offset {} on, but its header needs {}; make or "
                    "fetch it again",
                    name(), bytes, begin_, needed));
}

std::vector<std::byte> NpyArray::read_elements(std::int64_t first, std::size_t count) const {
  std::vector<std::byte> bytes(count * type_.bytes);
  file_.read(begin_ + static_cast<std::uint64_t>(first) * type_.bytes, bytes);
  return bytes;
}

std::string NpyArray::place(std::int64_t element) const {
  return fmt::format("{}: element {} (offset {})", name(), element,
                     begin_ + static_cast<std::uint64_t>(element) * type_.bytes);
}

void NpyArray::read_floats(std::int64_t first, std::span<float> into) const {
  if (type_.is_text())
    throw UserError(fmt::format("{}: its elements are text ({}); give numbers", name(), type_.descr));
  const std::vector<std::byte> bytes = read_elements(first, into.size());
  with_type(type_, [&]<class T>(T) {
    for (std::size_t i = 0; i < into.size(); ++i) {
      const T value = element<T>(type_, bytes, i);
      into[i] = static_cast<float>(value);
      const auto where = [&] { return place(first + static_cast<std::int64_t>(i)); };
      if constexpr (std::is_integral_v<T>) {
        if (static_cast<long double>(into[i]) != static_cast<long double>(value))
          throw UserError(
              fmt::format("{} is {}, which float32 does not hold exactly; subtract a number from all, "
                          "or convert them to floating numbers",
                          where(), value));
      } else if (!std::isfinite(into[i])) {
        throw UserError(fmt::format("{} is {}, which is not finite in float32; correct or scale the data",
                                    where(), static_cast<double>(value)));
      }
    }
  });
}

void NpyArray::read_bytes(std::int64_t first, std::span<std::uint8_t> into) const {
  file_.read(begin_ + static_cast<std::uint64_t>(first), std::as_writable_bytes(into));
}

std::vector<std::int64_t> NpyArray::whole_numbers() const {
  if (!type_.is_whole())
    throw UserError(fmt::format("{}: its elements are '{}'; give whole numbers, such as those of astype(int)",
                                name(), type_.descr));
  const auto count = static_cast<std::size_t>(elements_);
  const std::vector<std::byte> bytes = read_elements(0, count);
  std::vector<std::int64_t> numbers(count);
  with_type(type_, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      for (std::size_t i = 0; i < count; ++i) {
        const T value = element<T>(type_, bytes, i);
        if (!std::in_range<std::int64_t>(value))
          throw UserError(fmt::format("{} is {}, which is 2^63 or more; give smaller numbers",
                                      place(static_cast<std::int64_t>(i)), value));
        numbers[i] = static_cast<std::int64_t>(value);
      }
  });
  return numbers;
}

std::vector<std::string> NpyArray::texts() const {
  if (!type_.is_text())
    throw UserError(fmt::format("{}: its elements are '{}'; give text", name(), type_.descr));
  const auto count = static_cast<std::size_t>(elements_);
  const std::vector<std::byte> bytes = read_elements(0, count);
  const bool is_unicode = type_.kind == 'U';
  const std::size_t letters = is_unicode ? type_.bytes / 4 : type_.bytes;
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < count * letters; ++i) {
    const std::uint32_t letter =
        is_unicode ? element<std::uint32_t>(type_, bytes, i) : element<std::uint8_t>(type_, bytes, i);
    if (letter >= (is_unicode ? beyond_unicode : 0x80U))
      throw UserError(fmt::format("{} has the character {}, which is not {}; correct the text",
                                  place(static_cast<std::int64_t>(i / letters)), letter,
                                  is_unicode ? "one of Unicode" : "ASCII"));
    if (letter != 0) texts[i / letters] += utf8(letter);  // zeros fill the text up to its size
  }
  return texts;
}

}  // namespace plexaura
