#include "onnx/stored_data.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "onnx/format/tensor_data.h"

#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura::onnx {

namespace {

bool are_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

Tensor read_stored_tensor(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    return read_tensor(parse_tensor(view), path.parent_path());
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

std::vector<Tensor> read_stored_tensors(const std::filesystem::path& folder, const std::string& kind) {
  std::vector<Tensor> tensors;
  const auto path = [&] { return folder / fmt::format("{}_{}.pb", kind, tensors.size()); };
  while (std::filesystem::exists(path())) tensors.push_back(read_stored_tensor(path()));
  return tensors;
}

std::string difference(const Tensor& found, const Tensor& expected, Tolerance tolerance) {
  if (found.type() != expected.type())
    return fmt::format("the type is {}, not {}", to_string(found.type()), to_string(expected.type()));
  const std::vector<double> ours = found.to_doubles();
  const std::vector<double> theirs = expected.to_doubles();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (are_same(ours[i], theirs[i])) continue;
    if (!(std::abs(ours[i] - theirs[i]) <= tolerance.absolute + tolerance.relative * std::abs(theirs[i])))
      return fmt::format("element {} is {}, not {}", i, ours[i], theirs[i]);
  }
  return {};
}

double largest_distance(const Tensor& found, const Tensor& expected) {
  const std::vector<double> ours = found.to_doubles();
  const std::vector<double> theirs = expected.to_doubles();
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (are_same(ours[i], theirs[i])) continue;
    const double distance = std::abs(ours[i] - theirs[i]);
    largest = std::max(largest, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
  }
  return largest;
}

}  // namespace plexaura::onnx
