#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/export.h"
#include "core/graph/description.h"

namespace plexaura {

// Options list their fields in one function, which readers and writers of options use:
//
//   struct CropOptions : WindowOptions {
//     std::int64_t axis = 0;
//     std::optional<std::int64_t> limit = {};
//     bool is_centred = true;
//
//     static void fields(auto& self, auto& visitor) {
//       WindowOptions::fields(self, visitor);
//       visitor("axis", self.axis);
//       visitor("limit", self.limit);                  // not written if it is empty
//       visitor("is_centred", self.is_centred, true);  // not written if it is true
//     }
//   };
//
// `self` is const for a writer. The type of a field is one that Description::Value holds, or one with a
// FieldForm.

// Says how fields of type T are written. `of` converts a T to one of Description::Value's types. `from`
// converts it back, or throws RuleError with a text that continues "the option ...". Specialise it in the
// header that declares T.
template <class T>
struct FieldForm {};

template <>
struct PLEXAURA_API FieldForm<DType> {
  static std::string of(DType dtype) { return std::string(name_of(dtype)); }
  static DType from(const std::string& name);
};

template <>
struct PLEXAURA_API FieldForm<Shape> {
  static std::vector<std::int64_t> of(const Shape& shape) { return shape.extents(); }
  static Shape from(const std::vector<std::int64_t>& extents);
};

// Adds each field to a description.
class FieldWriter {
 public:
  explicit FieldWriter(Description& to) : to_(to) {}

  template <class T>
  void operator()(std::string_view key, const T& field) {
    if constexpr (requires { FieldForm<T>::of(field); })
      to_.add(std::string(key), FieldForm<T>::of(field));
    else
      to_.add(std::string(key), field);
  }
  template <class T>
  void operator()(std::string_view key, const std::optional<T>& field) {
    if (field) (*this)(key, *field);
  }
  template <class T>
  void operator()(std::string_view key, const T& field, const std::type_identity_t<T>& unwritten) {
    if (field != unwritten) (*this)(key, field);
  }

 private:
  Description& to_;
};

// Sets each field that a description names. A bool, number or list may also be the text that text_of() makes of it, and
// an integer of at most 2^53 may stand for a floating number. Errors name the owner of the options, such as "conv2d".
class PLEXAURA_API FieldReader {
 public:
  FieldReader(const Description& from, std::string_view owner) : from_(from), owner_(owner) {}

  // Calls `visit`, which must pass this reader to `fields`. Throws UserError for a value of a wrong type, for
  // a name that no field has, and for a name that is given twice.
  void read(const std::function<void()>& visit);

  template <class T>
  void operator()(std::string_view key, T& field) {
    if (!find(key)) return;
    if constexpr (requires { FieldForm<T>::of(field); }) {
      auto form = FieldForm<T>::of(field);
      get(form);
      field = FieldForm<T>::from(form);
    } else {
      get(field);
    }
  }
  template <class T>
  void operator()(std::string_view key, std::optional<T>& field) {
    if (!find(key)) return;
    T value{};
    (*this)(key, value);
    field = std::move(value);
  }
  template <class T>
  void operator()(std::string_view key, T& field, const std::type_identity_t<T>&) {
    (*this)(key, field);
  }

 private:
  // Makes `key` the current field. Returns true if the description has a value for it.
  bool find(std::string_view key);
  // Read the current field's value. Throw RuleError if it has another type.
  void get(bool& field) const;
  void get(std::int64_t& field) const;
  void get(double& field) const;
  void get(std::string& field) const;
  void get(std::vector<std::int64_t>& field) const;
  void get(std::vector<double>& field) const;
  void get(std::shared_ptr<const Tensor>& field) const;
  void check_names() const;

  const Description& from_;
  std::string_view owner_;
  std::vector<std::string> known_;
  const Description::Value* value_ = nullptr;
};

template <class Options>
Description description_of(const Options& options) {
  Description description;
  FieldWriter writer(description);
  Options::fields(options, writer);
  return description;
}

// Returns the options that a description names, and those of `defaults` for all others. It is the inverse of
// description_of(). `owner` is the name of the op. Throws UserError as FieldReader::read does.
template <class Options>
Options options_from(const Description& description, std::string_view owner, Options defaults = {}) {
  FieldReader reader(description, owner);
  reader.read([&] { Options::fields(defaults, reader); });
  return defaults;
}

}  // namespace plexaura
