// The final reports of the ranks of a run. An error that all ranks had is printed once; an error of
// some ranks is printed with their numbers. An error that a rank only received from another rank is
// not counted as its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

struct RankReport {
  std::optional<Error> error;  // nullopt: the rank succeeded
  std::string text = {};       // the error as the rank formatted it
};

Bytes packed(const RankReport& report);
Result<RankReport> decode_rank_report(BytesView bytes);

// Ranks with the same error; `of_all`: every rank has it, so that no rank is named.
struct ErrorGroup {
  std::vector<int> workers;
  bool of_all = false;
  RankReport report;
};
// `by_rank` has nullopt for a rank that sent no report. Groups are in the order of their lowest
// rank. If all errors were relayed from a rank that has died, the first of them is used.
std::vector<ErrorGroup> group_errors(const std::vector<std::optional<RankReport>>& by_rank);

// "worker 2", "workers 0, 3 and 5", "workers 0, 1, 2 and 509 more"
std::string rank_list_text(const ErrorGroup& saying);

}  // namespace shw
