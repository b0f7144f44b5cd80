// What an error can mean, as text and as JSON.
#pragma once

#include <string>

#include "core/report/text.h"
#include "core/rules/explain.h"

namespace shw {

std::string explanation_to_text(const Explanation& explanation, const TextOptions& options = {});
// {"schema", "hypotheses": [{"id", "rule", "wrong", "rank", "confidence", "title", "text",
//  "evidence", "decide", "command"}], "decide", "parsed": {"messages", "world", ...}}
std::string explanation_to_json(const Explanation& explanation);

}  // namespace shw
