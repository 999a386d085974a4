#pragma once

// The tags of the messages that a communicator sends for itself (those of its users travel apart).
namespace plexaura::tag {

inline constexpr int call_check = 1;
inline constexpr int answer = 2;
inline constexpr int gather = 3;
inline constexpr int broadcast = 4;
inline constexpr int note = 5;
inline constexpr int summands = 6;
inline constexpr int sums = 7;
inline constexpr int blocks = 8;

}  // namespace plexaura::tag
