#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>

namespace plexaura {

// The name of a strategy's calls and waits, such as "bucket 3 of step 17". It is no std::string, so that a
// step allocates nothing.
class BucketName {
 public:
  BucketName(std::size_t bucket, std::int64_t step)
      : end_(fmt::format_to_n(text_.data(), text_.size(), "bucket {} of step {}", bucket, step).out) {}
  BucketName(const BucketName&) = delete;
  BucketName& operator=(const BucketName&) = delete;

  operator std::string_view() const { return {text_.data(), static_cast<std::size_t>(end_ - text_.data())}; }

 private:
  std::array<char, 64> text_{};
  const char* end_;
};

}  // namespace plexaura
