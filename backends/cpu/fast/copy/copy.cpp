#include "backends/cpu/fast/copy/copy.h"

#include <cstring>

#include "backends/cpu/fast/parallel.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_byte = 0.05;
constexpr std::int64_t cache_line = 64;

}  // namespace

void copy_bytes(const std::byte* src, std::byte* dst, std::size_t bytes) {
  parallel_pieces(static_cast<std::int64_t>(bytes), nanoseconds_per_byte, cache_line,
                  [=](std::int64_t begin, std::int64_t end) {
                    std::memcpy(dst + begin, src + begin, static_cast<std::size_t>(end - begin));
                  });
}

}  // namespace plexaura::fast
