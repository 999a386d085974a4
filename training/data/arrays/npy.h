#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/data/arrays/byte_range.h"

namespace plexaura {

// The type of the elements of a numpy array.
struct NpyType {
  char kind = 'f';  // f: floating, i and u: whole, b: bool, S and U: text of bytes and of Unicode
  std::size_t bytes = 4;
  bool is_big_endian = false;
  std::string descr = {};  // as in the file: "<f4"

  bool is_whole() const { return kind == 'i' || kind == 'u' || kind == 'b'; }
  bool is_text() const { return kind == 'S' || kind == 'U'; }
};

// An array in a file of numpy (.npy), or in another file that says type and shape, whose elements are read at their
// places in a ByteRange: floating numbers of 16, 32 and 64 bits, whole ones of 8 to 64 bits, bool, and text, in either
// byte order. Errors are UserErrors that name the file, and the element with its offset in the file. Thread-safe.
// Source: numpy.lib.format, versions 1.0 to 3.0.
class NpyArray {
 public:
  // Reads the header. Throws if the file does not begin with a header of numpy, for elements of another type, for an
  // array in Fortran's order, and if the file is shorter or longer than its shape needs.
  explicit NpyArray(ByteRange file);
  // An array whose elements are all of `elements`. Throws if the shape needs another number of bytes.
  NpyArray(ByteRange elements, NpyType type, std::vector<std::int64_t> extents);

  const std::string& name() const { return file_.name(); }
  const NpyType& type() const { return type_; }
  // Returns the shape. Its elements are less than 2^63 bytes.
  const std::vector<std::int64_t>& extents() const { return extents_; }
  // Returns the number of elements of the array, and of those at one index of its first axis.
  std::int64_t elements() const { return elements_; }
  std::int64_t row_elements() const { return row_elements_; }

  // Reads into.size() elements from `first` on, in row-major order, as float32. Throws for text, for a number
  // that is not finite in float32, and for a whole number that float32 cannot hold exactly.
  void read_floats(std::int64_t first, std::span<float> into) const;
  // Reads elements of type u1.
  void read_bytes(std::int64_t first, std::span<std::uint8_t> into) const;
  // Returns all elements. Throws unless they are whole numbers below 2^63.
  std::vector<std::int64_t> whole_numbers() const;
  // Returns all elements as UTF-8. Throws unless they are text of ASCII (kind S) or of Unicode (kind U).
  std::vector<std::string> texts() const;

 private:
  void count_elements();
  std::vector<std::byte> read_elements(std::int64_t first, std::size_t count) const;
  // Returns the place of an element for errors: "x.npy: element 3 (offset 140)".
  std::string place(std::int64_t element) const;

  ByteRange file_;
  NpyType type_;
  std::vector<std::int64_t> extents_;
  std::int64_t elements_ = 1;
  std::int64_t row_elements_ = 1;
  std::uint64_t begin_ = 0;  // offset of the first element
};

}  // namespace plexaura
