#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>

namespace plexaura {

// "bucket 3 of step 17": what calls and waits of a strategy are named. No string, for a step allocates nothing.
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
