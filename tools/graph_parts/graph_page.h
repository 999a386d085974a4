#pragma once

#include <string>
#include <string_view>

#include "tools/graph_parts/shown_graph.h"

#include "core/device/backend.h"

namespace plexaura {

// The files page.html and page.js of this folder, which the build puts into a source. DATA_OF_THE_GRAPH stands
// for the graphs.
extern const std::string_view graph_page_template;

// Compiles the graph for `backend`, and returns a page of HTML that shows it as it was built, after each pass
// and as a program with its memory plan. The page is one file, and refers to nothing outside it. `title` is
// its heading.
std::string graph_page(const ShownGraph& shown, Backend& backend, const std::string& title);

}  // namespace plexaura
