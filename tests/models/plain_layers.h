#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/params/parameter_store.h"
#include "tests/support/pattern.h"

namespace plexaura::testing {

// Layers on one sample in plain loops, for comparison. Parameters are read from a store by PyTorch's names.
struct PlainRows {
  std::size_t width = 0;
  std::vector<double> values = {};

  std::size_t rows() const { return values.size() / width; }
  double& at(std::size_t row, std::size_t column) { return values[row * width + column]; }
  double at(std::size_t row, std::size_t column) const { return values[row * width + column]; }
};

// Gives each parameter of a store numbers of its own.
inline void fill_with_patterns(ParameterStore& store) {
  std::int64_t number = 0;
  for (const ParameterSpec& spec : store.specs())
    store.write(spec.name, pattern(spec.type.shape, 3 + 2 * number++, 3, 13, 6, 12));
}

class PlainLayers {
 public:
  explicit PlainLayers(const ParameterStore& store) : store_(store) {}

  // Rows `first` and following of a weight and its bias, applied to each row of x.
  PlainRows linear(const PlainRows& x, const std::string& weight, const std::string& bias, std::size_t first,
                   std::size_t outputs) const {
    const std::vector<double> w = store_.read(weight).to_doubles();
    const std::vector<double> b = store_.read(bias).to_doubles();
    PlainRows y{outputs, std::vector<double>(x.rows() * outputs)};
    for (std::size_t row = 0; row < x.rows(); ++row)
      for (std::size_t out = 0; out < outputs; ++out) {
        y.at(row, out) = b[first + out];
        for (std::size_t in = 0; in < x.width; ++in)
          y.at(row, out) += w[(first + out) * x.width + in] * x.at(row, in);
      }
    return y;
  }
  PlainRows linear(const PlainRows& x, const std::string& name, std::size_t outputs) const {
    return linear(x, name + ".weight", name + ".bias", 0, outputs);
  }

  PlainRows layer_norm(const PlainRows& x, const std::string& name) const {
    const std::vector<double> w = store_.read(name + ".weight").to_doubles();
    const std::vector<double> b = store_.read(name + ".bias").to_doubles();
    PlainRows y = x;
    for (std::size_t row = 0; row < x.rows(); ++row) {
      double mean = 0, square = 0;
      for (std::size_t i = 0; i < x.width; ++i) mean += x.at(row, i) / static_cast<double>(x.width);
      for (std::size_t i = 0; i < x.width; ++i)
        square += std::pow(x.at(row, i) - mean, 2) / static_cast<double>(x.width);
      for (std::size_t i = 0; i < x.width; ++i)
        y.at(row, i) = w[i] * (x.at(row, i) - mean) / std::sqrt(square + 1e-5) + b[i];
    }
    return y;
  }

  using Permits = std::function<bool(std::size_t query, std::size_t key)>;

  // `prefix` is empty or ends with a dot.
  PlainRows attention(const PlainRows& query, const PlainRows& memory, const std::string& prefix,
                      std::size_t heads, const Permits& permits) const {
    const std::size_t width = query.width;
    const auto projected = [&](const PlainRows& x, std::size_t part) {
      return linear(x, prefix + "in_proj_weight", prefix + "in_proj_bias", part * width, width);
    };
    const PlainRows q = projected(query, 0), k = projected(memory, 1), v = projected(memory, 2);
    PlainRows mixed{width, std::vector<double>(q.values.size())};
    const std::size_t features = width / heads;
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t row = 0; row < q.rows(); ++row) {
        const std::vector<double> weights = weights_of(q, k, row, head * features, features, permits);
        for (std::size_t i = head * features; i < (head + 1) * features; ++i)
          for (std::size_t key = 0; key < k.rows(); ++key) mixed.at(row, i) += weights[key] * v.at(key, i);
      }
    return linear(mixed, prefix + "out_proj", width);
  }

 private:
  static std::vector<double> weights_of(const PlainRows& q, const PlainRows& k, std::size_t row,
                                        std::size_t first, std::size_t features, const Permits& permits) {
    std::vector<double> weights(k.rows(), 0);
    double total = 0;
    for (std::size_t key = 0; key < k.rows(); ++key) {
      double product = 0;
      for (std::size_t i = first; i < first + features; ++i) product += q.at(row, i) * k.at(key, i);
      if (permits(row, key)) weights[key] = std::exp(product / std::sqrt(static_cast<double>(features)));
      total += weights[key];
    }
    for (double& weight : weights) weight /= total;
    return weights;
  }

  const ParameterStore& store_;
};

inline PlainRows sum_of(PlainRows a, const PlainRows& b) {
  std::ranges::transform(a.values, b.values, a.values.begin(), std::plus<>());
  return a;
}

// Returns one sample of x [N, L, width].
inline PlainRows sample_of(const Tensor& x, std::size_t number) {
  const std::vector<double> all = x.to_doubles();
  const std::size_t each = all.size() / static_cast<std::size_t>(x.shape()[0]);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(number * each);
  return {static_cast<std::size_t>(x.shape()[2]), {first, first + static_cast<std::ptrdiff_t>(each)}};
}

}  // namespace plexaura::testing
