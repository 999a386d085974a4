#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"
#include "distributed/compression/factors.h"

namespace plexaura {

// `powersgd` (Vogels, Karimireddy and Jaggi, 2019). What a rank owes of a parameter is a matrix: the first
// axis gives the rows, all other axes the columns. It is transmitted as two factors of few vectors, which one
// power iteration computes:
//   left = matrix * right, summed over the ranks and then made orthonormal;
//   right = transposed matrix * left, summed over the ranks.
// The result is left * transposed right: the projection of the sum of the matrices on the space of the left
// vectors. A rank still owes the part of its own matrix outside that space. Each step begins with the right
// vectors of the step before. Parameters with at most one axis, and those whose factors would not be smaller, are
// transmitted uncompressed.
class PowerSgd final : public Compression {
 public:
  // `vectors` is the number of vectors in each factor, at least one.
  PowerSgd(Communicator& ranks, std::int64_t vectors) : ranks_(ranks), vectors_(vectors) {}

  // Throws UserError if no parameter has factors that are smaller than itself.
  void begin(const Placement& placement, std::span<const Bucket> buckets) override;
  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;
  // Keeps the right vectors of the last step, which are the same on all ranks that compress. Like the owed
  // parts, they are restored only in a run with as many ranks as before. In that run a rank may compress that
  // has not compressed before, and has other vectors. That is correct: any vectors are a valid start, and
  // after the first exchange all ranks have the same ones.
  void keep(std::vector<StrategyState>& state) const override;
  void take(const StrategyState& part) override;

 private:
  struct Parameter {
    const Placement::Entry* entry;
    std::size_t begin;  // index of the parameter's first element in its bucket
    // 0: the parameter is transmitted uncompressed, and the members below are empty.
    std::int64_t columns = 0;
    std::vector<float> values = {};  // during a call: the owed part, or the sum, in row-major layout
    std::vector<float> left = {};    // used only during a call
    std::vector<float> right = {};

    std::span<float> in(std::span<float> bucket) const {
      return bucket.subspan(begin, static_cast<std::size_t>(entry->count));
    }
    Matrix matrix() { return {values, columns}; }
    Matrix lefts() { return {left, static_cast<std::int64_t>(values.size()) / columns}; }
    Matrix rights() { return {right, columns}; }
  };
  using Parameters = std::vector<Parameter>;

  Parameter make_parameter(const Placement::Entry& entry, const Bucket& bucket) const;
  void sum_lefts(Parameters& parameters, std::span<float> owed, std::span<float> sums, std::string_view what);
  void sum_rights(Parameters& parameters, std::span<float> owed, std::string_view what);
  void sum_pack(std::string_view what);

  Communicator& ranks_;
  std::int64_t vectors_;
  std::vector<Parameters> buckets_;
  std::vector<float> pack_;  // buffer for the data that one call sums
};

}  // namespace plexaura
