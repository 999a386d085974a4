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

// `powersgd` (Vogels, Karimireddy and Jaggi, 2019): what is owed of a parameter, as a matrix of its first axis by all
// others, crosses as two factors of few vectors, which one power iteration makes:
//   left = matrix * right, summed over the ranks and then made orthonormal;
//   right = transposed matrix * left, summed over the ranks.
// The sum is left * transposed right. It is the part of the sum of the matrices that lies in the space of the left
// vectors; a rank still owes the part of its own matrix that does not. Each step begins with the right vectors of the one
// before. Parameters of one axis, and those whose factors would not be smaller, cross as they are.
class PowerSgd final : public Compression {
 public:
  // `vectors`: of each factor, at least one.
  PowerSgd(Communicator& ranks, std::int64_t vectors) : ranks_(ranks), vectors_(vectors) {}

  // Throws UserError where no parameter has smaller factors.
  void begin(const Placement& placement, std::span<const Bucket> buckets) override;
  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;
  // The right vectors of the last step. They are the same on all ranks that compress, but like what is owed they come back
  // only to as many ranks as there were. A rank that has not compressed so far has others, and may compress then: any
  // vectors do, and behind the first exchange all have the same.
  void keep(std::vector<StrategyState>& state) const override;
  void take(const StrategyState& part) override;

 private:
  struct Parameter {
    const Placement::Entry* entry;
    std::size_t begin;  // in its bucket
    // Without columns: it crosses as it is, and has none of what follows.
    std::int64_t columns = 0;
    std::vector<float> values = {};  // what is owed, or the sum, in logical layout; within a call
    std::vector<float> left = {};    // within a call
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
  std::vector<float> pack_;  // scratch: what is summed in one call
};

}  // namespace plexaura
