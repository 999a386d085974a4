#pragma once

// The tags of a communicator's own messages. Messages of its users are separate.
namespace plexaura::tag {

inline constexpr int call_check = 1;
inline constexpr int answer = 2;
inline constexpr int gather = 3;
inline constexpr int broadcast = 4;
inline constexpr int note = 5;
inline constexpr int summands = 6;
inline constexpr int sums = 7;
inline constexpr int blocks = 8;

// Tags of messages that parts of this module send as users of a communicator. Tags of other users begin at 0.
inline constexpr int gradients_to_root = 30'000;
inline constexpr int roles = 30'001;
inline constexpr int steps_of_server = 30'002;
inline constexpr int spares = 30'003;
inline constexpr int to_0 = 30'004;

}  // namespace plexaura::tag
