#include "training/data/arrays/hdf5_file.h"

#include <fmt/format.h>

#include "core/base/error.h"

#ifdef PLEXAURA_HDF5
#include <algorithm>
#include <cstring>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>
#endif

namespace plexaura {

#ifndef PLEXAURA_HDF5

Hdf5File::Hdf5File(const std::filesystem::path& path) : path_(path) {
  throw UserError(fmt::format(
      "{}: this build cannot read HDF5; install libhdf5-dev (tools/install_packages hdf5), and configure "
      "and build Plexaura again",
      path.string()));
}
Hdf5File::~Hdf5File() = default;
NpyArray Hdf5File::open(const std::string& /*name*/) const { throw InternalError("no HDF5 file is open"); }

#else

namespace {

// Closes an object of the library.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  hid_t get() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string dataset_names(hid_t file) {
  std::vector<std::string> names;
  H5G_info_t group{};
  H5Gget_info(file, &group);
  constexpr hsize_t most = 20;
  for (hsize_t i = 0; i < std::min(group.nlinks, most); ++i) {
    std::string name(256, '\0');
    const ssize_t length =
        H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
    name.resize(std::min(static_cast<std::size_t>(std::max<ssize_t>(length, 0)), name.size() - 1));
    names.push_back(std::move(name));
  }
  return names.empty()
             ? "it is empty"
             : fmt::format("it has {}{}", fmt::join(names, ", "), group.nlinks > most ? " and more" : "");
}

bool is_binary_float(hid_t type, std::size_t bytes) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (bytes == 4) return H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0;
  if (bytes == 8) return H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
  return bytes == 2 &&
         H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         exponent_bits == 5 && mantissa_bits == 10;
}

// Returns the type of numpy's elements, or nothing for a type that numpy has not. `type` is a type in the file; text of
// variable length is text of 0 bytes.
std::optional<NpyType> numpy_type(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  NpyType found{.bytes = bytes};
  if (kind == H5T_STRING) {
    found.kind = 'S';
    if (H5Tis_variable_str(type) > 0) found.bytes = 0;
  } else if (kind == H5T_FLOAT && is_binary_float(type, bytes)) {
    found.kind = 'f';
  } else if (kind == H5T_ENUM) {  // h5py writes bool as FALSE and TRUE
    const Handle base(H5Tget_super(type), H5Tclose);
    if (H5Tget_size(base.get()) != 1 || H5Tget_nmembers(type) != 2) return std::nullopt;
    found.kind = 'b';
  } else if (kind == H5T_INTEGER && bytes <= 8 && (bytes & (bytes - 1)) == 0 &&
             H5Tget_precision(type) == 8 * bytes) {
    found.kind = H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
  } else {
    return std::nullopt;
  }
  found.is_big_endian = bytes > 1 && kind != H5T_STRING && H5Tget_order(type) == H5T_ORDER_BE;
  found.descr = fmt::format("{}{}{}",
                            bytes == 1 || kind == H5T_STRING ? '|'
                            : found.is_big_endian            ? '>'
                                                             : '<',
                            found.kind, found.bytes);
  return found;
}

// A dataset while it is opened.
class Hdf5Dataset {
 public:
  Hdf5Dataset(std::string name, hid_t id)
      : name_(std::move(name)),
        id_(id),
        space_(H5Dget_space(id), H5Sclose),
        in_file_(H5Dget_type(id), H5Tclose) {
    const std::optional<NpyType> found = numpy_type(in_file_.get());
    if (!found)
      refuse(
          "its elements are neither numbers of up to 64 bits, nor bool, nor text; convert them with "
          "astype()");
    type_ = *found;
    std::vector<hsize_t> extents(
        static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space_.get()), 0)));
    if (H5Sget_simple_extent_type(space_.get()) == H5S_NULL) refuse("has no elements; write an array");
    H5Sget_simple_extent_dims(space_.get(), extents.data(), nullptr);
    for (const hsize_t extent : extents) {
      constexpr std::uint64_t most = std::uint64_t{1} << 40;
      if (extent > most || (elements_ > 0 && extent > most / elements_))
        refuse("has more elements than can be read");
      elements_ *= extent;
      extents_.push_back(static_cast<std::int64_t>(extent));
    }
  }

  // Returns the array at its place in the file, or in memory.
  NpyArray array() {
    if (type_.bytes == 0) {
      ByteRange texts(name_, read_texts());  // sets the length of a text
      return {std::move(texts), type_, extents_};
    }
    const Handle plan(H5Dget_create_plist(id_), H5Pclose);
    const haddr_t offset = H5Dget_offset(id_);
    const bool is_at_place = H5Pget_layout(plan.get()) == H5D_CONTIGUOUS &&
                             H5Pget_external_count(plan.get()) == 0 && offset != HADDR_UNDEF &&
                             H5Dget_storage_size(id_) == bytes();
    if (!is_at_place) return {ByteRange(name_, read_bytes()), type_, extents_};
    return {ByteRange(name_, std::make_shared<const InputFile>(file()), offset, bytes()), type_, extents_};
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw UserError(fmt::format("{}: {}", name_, what));
  }

  // Returns the file that contains the dataset: an external link leads to another file than the one that was opened.
  std::filesystem::path file() const {
    std::string path(static_cast<std::size_t>(std::max<ssize_t>(H5Fget_name(id_, nullptr, 0), 0)), '\0');
    H5Fget_name(id_, path.data(), path.size() + 1);
    return path;
  }

  std::uint64_t bytes() const { return elements_ * type_.bytes; }

  void read(hid_t type, void* into) const {
    if (elements_ > 0 && H5Dread(id_, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, into) < 0)
      refuse(
          "cannot be read; it may be damaged, or compressed by a filter that is not installed; make or fetch "
          "the file again");
  }

  std::vector<std::uint8_t> read_bytes() const {
    // A damaged file may declare more than any memory holds. No common compression is stronger than `strongest`.
    constexpr std::uint64_t small = std::uint64_t{64} << 20;
    constexpr std::uint64_t strongest = 1 << 16;
    if (bytes() > small && bytes() / strongest > H5Dget_storage_size(id_))
      refuse(fmt::format("has {} bytes of elements, of which the file stores {}; write all of them", bytes(),
                         H5Dget_storage_size(id_)));
    std::vector<std::uint8_t> all(bytes());
    read(in_file_.get(), all.data());
    return all;
  }

  // Reads text of variable length, and makes it text of the length of the longest one.
  std::vector<std::uint8_t> read_texts() {
    const hsize_t stored = H5Dget_storage_size(id_);
    if (elements_ > stored) refuse("has more texts than the file stores; write all of them");
    std::vector<char*> texts(elements_);
    read(in_file_.get(), texts.data());
    for (const char* text : texts)
      type_.bytes = std::max(type_.bytes, text == nullptr ? 0 : std::strlen(text));
    constexpr std::size_t longest = 4096;
    const bool is_too_long = type_.bytes > longest;
    type_.bytes = std::clamp<std::size_t>(type_.bytes, 1, longest);
    std::vector<std::uint8_t> all(bytes());
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (texts[i] != nullptr)
        std::copy_n(texts[i], std::min(std::strlen(texts[i]), type_.bytes),
                    all.begin() + static_cast<std::ptrdiff_t>(i * type_.bytes));
    H5Dvlen_reclaim(in_file_.get(), space_.get(), H5P_DEFAULT, texts.data());
    if (is_too_long) refuse(fmt::format("has a text of more than {} bytes; shorten it", longest));
    type_.descr = fmt::format("|S{}", type_.bytes);
    return all;
  }

  std::string name_;
  hid_t id_;
  Handle space_;
  Handle in_file_;
  NpyType type_;
  std::vector<std::int64_t> extents_;
  std::uint64_t elements_ = 1;
};

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : path_(path) {
  const InputFile readable(path);               // throws if the file cannot be read
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // the library prints nothing
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 > 0) file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0)
    throw UserError(fmt::format(
        "{}: {}", path.string(),
        is_hdf5 > 0 ? "is cut off or damaged, or another program writes it; make or fetch it again"
                    : "is no HDF5 file; name another file, or set data.format to that of its data"));
}

Hdf5File::~Hdf5File() { H5Fclose(file_); }

NpyArray Hdf5File::open(const std::string& name) const {
  const Handle dataset(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.is_open())
    throw UserError(fmt::format("{}: has no dataset '{}'; {}", path_.string(), name, dataset_names(file_)));
  return Hdf5Dataset(fmt::format("{}:{}", path_.string(), name), dataset.get()).array();
}

#endif

}  // namespace plexaura
