// Explanations of an error message as text and JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/explain/checkpoint_lookup.h"
#include "core/explain/explain.h"
#include "core/mesh/split_lint.h"
#include "core/report/text.h"

namespace shw {

// Parts of the text, for user interfaces: what was parsed from the message, one line each; the most
// important line (given at least one hypothesis); whose mistake it is, or empty if unknown;
// "likely", "possible", ...
std::string parsed_message_text(const Explanation& explanation);
std::string lead_of(const Explanation& explanation);
std::string_view fault_side_text(FaultSide side);
std::string_view likelihood_text(double share);

std::string explanation_to_text(const Explanation& explanation, const TextOptions& options = {},
                                const CheckpointLookup* lookup = nullptr);
// {"schema", "hypotheses": [{"id", "rule", "wrong", "rank", "confidence", "title", "text",
//  "evidence", "decide", "command"}], "none_of_these", "decide", "parsed": {"messages", "world",
//  ...}, "lookup"}: the confidences and none_of_these add up to 1. `lookup`: what the checkpoint
//  that
// was given has of the message's names; null without one.
std::string explanation_to_json(const Explanation& explanation,
                                const CheckpointLookup* lookup = nullptr);

// Prediction of what saving a split loses: {"schema", "rule", "rows", "tensor_parallel", "outcome",
// "loses", "ratio", "rank", "text"}.
std::string forecast_to_text(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel, const TextOptions& options = {});
std::string forecast_to_json(const SplitForecast& forecast, std::span<const std::int64_t> rows,
                             std::int64_t tensor_parallel);

}  // namespace shw
