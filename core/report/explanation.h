// What an error can mean, as text and as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/explain/explain.h"
#include "core/mesh/split_lint.h"
#include "core/report/text.h"

namespace shw {

// Its parts, for a face that draws it. What was read, so that a person sees whether it was read
// right, a line each; the one line that is read if no other is (of one hypothesis at least); whose
// mistake it would be, empty where it may be either's; "likely", "possible", ...
std::string text_of_what_was_read(const Explanation& explanation);
std::string lead_of(const Explanation& explanation);
std::string_view wrong_side_words(WrongSide side);
std::string_view likelihood_words(double share);

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
