#include "core/host/host_candidate.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/host/host_adapter.h"

namespace plexaura {

namespace {

std::int64_t bytes_across(const RegionQuery& query, const Candidate& candidate) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < candidate.inputs.size(); ++i)
    if (candidate.reads.empty() || candidate.reads[i]) bytes += query.type(query.region.inputs[i]).bytes();
  for (std::size_t i = 0; i < candidate.outputs.size(); ++i)
    if (query.wanted[i]) bytes += query.type(query.region.outputs[i]).bytes();
  return bytes;
}

void require_host_call(const RegionQuery& query, const Backend& backend, bool strict) {
  const char* why = "give the op a member compute(), which the host can run, or compose it of other ops";
  if (query.op().reference() != nullptr) {
    // True: the backend has kernels, but none with an estimate.
    const bool has_kernels = !backend.propose(query).empty();
    if (!has_kernels && !strict) return;
    why = has_kernels
              ? "those that it has would have to be measured against another one; compose it of other ops"
              : "it would run on the host, which 'strict' forbids: set strict to false, compose it "
                "of other ops, or use the backend 'cpu'";
  }
  throw UserError(fmt::format("{}: the backend '{}' has no kernel for '{}' with these types; {}",
                              name_of(query.graph, query.region.nodes[0]), backend.info().name,
                              query.op().name(), why));
}

}  // namespace

Candidate host_candidate(const RegionQuery& query, const Backend& backend, bool strict) {
  require_host_call(query, backend, strict);
  Candidate candidate = propose_host_kernel(query)[0];
  candidate.implementation = fmt::format("on the host, {} bytes cross", bytes_across(query, candidate));
  return candidate;
}

}  // namespace plexaura
