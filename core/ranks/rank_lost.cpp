#include "core/ranks/rank_lost.h"

#include <utility>

namespace plexaura {

RankLost::RankLost(const std::string& text, std::vector<int> ranks, std::string call)
    : DeviceError(text), ranks_(std::move(ranks)), call_(std::move(call)) {}

RankLost::~RankLost() = default;

}  // namespace plexaura
