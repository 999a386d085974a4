// Windows and Fourier transforms of signals. A transform is a product with a matrix of sines and cosines, which is a
// constant of the graph.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/gather.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

// Largest number of elements of a constant that is made here.
constexpr std::int64_t most_elements = std::int64_t{1} << 24;

// Returns the product of the counts. Throws UserError if a count is below `least`, or if the product is above
// most_elements.
std::int64_t checked_product(std::initializer_list<std::int64_t> counts, std::string_view what,
                             std::int64_t least = 1) {
  std::int64_t product = 1;
  for (const std::int64_t count : counts) {
    if (count < least || count > most_elements || (product *= count) > most_elements)
      throw UserError(
          fmt::format("{} {} is impossible; it must be at least {}, and what is made of it may have {} "
                      "elements",
                      what, count, least, most_elements));
  }
  return product;
}

DType output_type(Call& call) {
  return dtype_of(
      static_cast<ElementType>(call.integer("output_datatype", std::int64_t(ElementType::float32))));
}

// Returns a window of `call`: value(cosine of one turn, cosine of two turns) at each place of the turn.
template <class Value>
std::vector<Node> window_of(Call& call, Value&& value) {
  const DType dtype = output_type(call);
  const bool is_periodic = call.flag("periodic", true);
  const std::int64_t size = call.whole_number(0);
  std::vector<double> values(static_cast<std::size_t>(checked_product({size}, "the size", 0)), 1.0);
  const double turn = static_cast<double>(is_periodic ? size : size - 1);
  if (turn > 0)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / turn;
      values[i] = value(std::cos(angle), std::cos(2 * angle));
    }
  return {call.graph().constant(Tensor::of({size}, values).cast(dtype))};
}

std::vector<Node> hann_window(Call& call) {
  return window_of(call, [](double one, double) { return 0.5 - 0.5 * one; });
}
std::vector<Node> hamming_window(Call& call) {
  return window_of(call, [](double one, double) { return 25.0 / 46 - 21.0 / 46 * one; });
}
std::vector<Node> blackman_window(Call& call) {
  return window_of(call, [](double one, double two) { return 0.42 - 0.5 * one + 0.08 * two; });
}

// A transform of this length. It reads the first `from` elements, takes further ones as 0, and makes `to` elements.
struct Transform {
  std::int64_t length = 1;
  std::int64_t from = 1;
  std::int64_t to = 1;
  std::int64_t parts = 1;         // parts of an element: 1 of a real one, 2 of a complex one
  std::int64_t result_parts = 2;  // parts of an element of the result
  bool is_inverse = false;
  bool is_onesided = false;  // the spectrum of real numbers, without the half that mirrors the other one
};

// Returns the matrix that maps elements [from, parts] to [to, result_parts], both row by row.
Tensor transform_matrix(const Transform& transform) {
  checked_product({transform.length}, "the length of the transform");
  checked_product({transform.from, transform.parts, transform.to, transform.result_parts},
                  "a transform with an extent of");
  std::vector<double> matrix;
  const auto length = static_cast<double>(transform.length);
  const double direction = transform.is_inverse ? 1 : -1;
  for (std::int64_t n = 0; n < transform.from; ++n) {
    const bool is_mirrored =
        transform.is_inverse && transform.is_onesided && n > 0 && 2 * n != transform.length;
    const double scale = (is_mirrored ? 2 : 1) / (transform.is_inverse ? length : 1);
    for (std::int64_t part = 0; part < transform.parts; ++part)
      for (std::int64_t k = 0; k < transform.to; ++k) {
        const double turns = static_cast<double>(n * k % transform.length) / length;
        const double real = scale * std::cos(2 * std::numbers::pi * turns);
        const double imaginary = scale * direction * std::sin(2 * std::numbers::pi * turns);
        matrix.push_back(part == 0 ? real : -imaginary);
        if (transform.result_parts == 2) matrix.push_back(part == 0 ? imaginary : real);
      }
  }
  return Tensor::of({transform.from * transform.parts, transform.to * transform.result_parts}, matrix);
}

// Transforms the axis of x [..., axis, ..., parts].
Node transformed(const Node& x, std::int64_t axis, std::int64_t length, bool is_inverse, bool is_onesided) {
  const std::int64_t last = x.shape().rank() - 1;
  const std::int64_t parts = x.shape()[last];
  if (axis == last || (parts != 1 && parts != 2))
    throw UserError(
        fmt::format("x is {}; its last axis must have 1 element for real numbers or 2 for complex ones, and "
                    "another axis is transformed",
                    to_string(x.shape())));
  if (is_onesided && parts != (is_inverse ? 2 : 1))
    throw UserError(fmt::format(
        "x is {}, whose elements have {} parts; onesided takes elements of 1 part, or of 2 for an "
        "inverse transform; set onesided to 0",
        to_string(x.shape()), parts));
  const std::int64_t extent = x.shape()[axis];
  const std::int64_t half = length / 2 + 1;
  const Transform transform{.length = length,
                            .from = std::min(is_onesided && is_inverse ? half : length, extent),
                            .to = is_onesided && !is_inverse ? half : length,
                            .parts = parts,
                            .result_parts = is_onesided && is_inverse ? 1 : 2,
                            .is_inverse = is_inverse,
                            .is_onesided = is_onesided};
  const DType dtype = wide_dtype_of(x);
  const Node matrix = x.graph().constant(transform_matrix(transform).cast(dtype));
  const Node rows = transpose(slice(x, {.axis = axis, .start = 0, .stop = transform.from}), axis, last - 1);
  const Node product = matmul(reshape(cast(rows, dtype), {-1, transform.from * parts}), matrix);
  std::vector<std::int64_t> extents = rows.shape().extents();
  extents[static_cast<std::size_t>(last - 1)] = transform.to;
  extents[static_cast<std::size_t>(last)] = transform.result_parts;
  return transpose(cast(reshape(product, extents), x.dtype()), axis, last - 1);
}

std::vector<Node> fourier_transform(Call& call) {
  const Node x = call[0];
  const std::int64_t given = call.version() < 20 ? call.integer("axis", 1)
                             : call.has(2)       ? call.whole_number(2)
                                                 : -2;
  const std::int64_t axis = normalise_axis(given, x.shape().rank());
  const bool is_inverse = call.flag("inverse", false);
  const bool is_onesided = call.flag("onesided", false);
  const std::int64_t extent = x.shape()[axis];
  const std::int64_t whole = is_inverse && is_onesided ? 2 * (extent - 1) : extent;
  return {transformed(x, axis, call.has(1) ? call.whole_number(1) : whole, is_inverse, is_onesided)};
}

// Transforms each frame of x [N, samples, parts] to [N, frames, frequencies, 2].
std::vector<Node> short_time_transform(Call& call) {
  const Node x = call[0];
  if (x.shape().rank() != 3)
    throw UserError(fmt::format("x must have three axes, not {}", to_string(x.shape())));
  const std::int64_t step = call.whole_number(1);
  const Node window = call.optional(2);
  const std::int64_t samples = x.shape()[1];
  const std::int64_t length = call.has(3)   ? call.whole_number(3)
                              : call.has(2) ? window.shape().elements()
                                            : samples;
  if (!window.is_empty() && window.shape() != Shape{length})
    throw UserError(
        fmt::format("the window {} must have the length of a frame, {}", to_string(window.shape()), length));
  if (step < 1 || length < 1 || length > samples)
    throw UserError(
        fmt::format("frames of {} samples, {} apart, do not fit {} samples", length, step, samples));
  const std::int64_t frames = 1 + (samples - length) / step;
  std::vector<std::int64_t> places(
      static_cast<std::size_t>(checked_product({frames, length}, "a frame count or length of")));
  for (std::int64_t i = 0; i < frames * length; ++i)
    places[static_cast<std::size_t>(i)] = i / length * step + i % length;
  Node cut = gather(x, call.graph().constant(Tensor::of({frames, length}, places)), {.axis = 1});
  if (!window.is_empty()) cut = cut * reshape(window, {length, 1});
  return {transformed(cut, 2, length, false, call.flag("onesided", true))};
}

// The scale of pitches of the standard.
double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Returns the weights [frequencies, bands] of triangular bands, which overlap.
std::vector<Node> mel_weights(Call& call) {
  const std::int64_t bands = call.whole_number(0);
  const std::int64_t length = call.whole_number(1);
  const double rate = call.number(2);
  const double low = mel_of(call.number(3));
  const double high = mel_of(call.number(4));
  const std::int64_t frequencies = length / 2 + 1;
  std::vector<double> weights(static_cast<std::size_t>(checked_product({bands, frequencies}, "a count of")));
  std::vector<std::int64_t> borders;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double mel = low + static_cast<double>(i) * (high - low) / static_cast<double>(bands + 2);
    const double border = std::floor(static_cast<double>(length + 1) * hertz_of(mel) / rate);
    if (!(border >= 0 && border < static_cast<double>(frequencies)))
      throw UserError(
          fmt::format("the frequencies of its bands must be from 0 to half of the rate {}", rate));
    borders.push_back(static_cast<std::int64_t>(border));
  }
  for (std::int64_t band = 0; band < bands; ++band) {
    const std::int64_t* border = &borders[static_cast<std::size_t>(band)];
    const auto set = [&](std::int64_t frequency, double weight) {
      weights[static_cast<std::size_t>(frequency * bands + band)] = weight;
    };
    const auto rise = static_cast<double>(border[1] - border[0]);
    const auto fall = static_cast<double>(border[2] - border[1]);
    if (rise == 0) set(border[1], 1);
    for (std::int64_t i = border[0]; rise > 0 && i <= border[1]; ++i)
      set(i, static_cast<double>(i - border[0]) / rise);
    for (std::int64_t i = border[1]; i < border[2]; ++i) set(i, static_cast<double>(border[2] - i) / fall);
  }
  return {call.graph().constant(Tensor::of({frequencies, bands}, weights).cast(output_type(call)))};
}

constexpr Row rows_of_signals[] = {
    {"BlackmanWindow", 17, blackman_window}, {"DFT", 17, fourier_transform},
    {"HammingWindow", 17, hamming_window},   {"HannWindow", 17, hann_window},
    {"MelWeightMatrix", 17, mel_weights},    {"STFT", 17, short_time_transform},
};

}  // namespace

std::span<const Row> signal_rows() { return rows_of_signals; }

}  // namespace plexaura::onnx
