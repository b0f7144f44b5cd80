// What an error can mean, as text and as JSON.
#pragma once

#include <span>
#include <string>

#include "core/explain/explain.h"
#include "core/mesh/split_lint.h"
#include "core/report/text.h"

namespace shw {

std::string explanation_to_text(const Explanation& explanation, const TextOptions& options = {});
// {"schema", "hypotheses": [{"id", "rule", "wrong", "rank", "confidence", "title", "text",
//  "evidence", "decide", "command"}], "none_of_these", "decide", "parsed": {"messages", "world",
//  ...}}: the confidences and none_of_these add up to 1.
std::string explanation_to_json(const Explanation& explanation);

// What a split will come to when it is saved: {"schema", "rule", "rows", "tensor_parallel",
// "outcome", "loses", "ratio", "rank", "text"}.
std::string forecast_to_text(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel, const TextOptions& options = {});
std::string forecast_to_json(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel);

}  // namespace shw
