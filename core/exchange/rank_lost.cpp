#include "core/exchange/rank_lost.h"

#include <utility>

namespace plexaura {

RankLost::RankLost(const std::string& text, std::vector<int> ranks, std::string call, bool is_outlived)
    : DeviceError(text), ranks_(std::move(ranks)), call_(std::move(call)), is_outlived_(is_outlived) {}

RankLost::~RankLost() = default;

}  // namespace plexaura
