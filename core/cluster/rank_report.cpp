#include "core/cluster/rank_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/encoder.h"
#include "core/cluster/transport.h"

namespace shw {
namespace {

bool is_same(const RankReport& a, const RankReport& b) {
  return a.text == b.text && a.error->kind == b.error->kind &&
         a.error->message == b.error->message && a.error->advice == b.error->advice &&
         a.error->place.file == b.error->place.file &&
         a.error->place.tensor == b.error->place.tensor &&
         a.error->place.offset == b.error->place.offset;
}

}  // namespace

Bytes packed(const RankReport& report) {
  Encoder out;
  out.add(std::uint64_t{report.error.has_value()});
  if (report.error) out.add(*report.error);
  out.add(std::string_view(report.text));
  return out.take();
}

Result<RankReport> decode_rank_report(BytesView bytes) {
  Decoder in(bytes);
  RankReport report;
  SHW_TRY(std::uint64_t has_error, in.number());
  if (has_error != 0) {
    SHW_TRY(report.error, in.error());
  }
  SHW_TRY(report.text, in.text());
  return report;
}

namespace {

// Only rank 0 knows the advice, because it removes the output, whichever error the others had.
void add_advice(const RankReport& first, std::vector<ErrorGroup>& out) {
  const std::string& advice = first.error->advice;
  if (advice.empty() || out.empty()) return;
  std::string& last = out.back().report.error->advice;
  if (last.find(advice) == std::string::npos) last += (last.empty() ? "" : "; ") + advice;
}

}  // namespace

std::vector<ErrorGroup> group_errors(const std::vector<std::optional<RankReport>>& by_rank) {
  std::vector<ErrorGroup> out;
  const RankReport* relayed_error = nullptr;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank] || !by_rank[rank]->error) continue;
    const RankReport& report = *by_rank[rank];
    if (is_relayed_error(report.error->message)) {
      if (relayed_error == nullptr) relayed_error = &report;
      continue;
    }
    auto known = std::find_if(out.begin(), out.end(),
                              [&](const ErrorGroup& one) { return is_same(one.report, report); });
    if (known == out.end()) known = out.insert(out.end(), ErrorGroup{{}, false, report});
    known->workers.push_back(static_cast<int>(rank));
    known->of_all = known->workers.size() == by_rank.size();
  }
  if (out.empty() && relayed_error != nullptr) out.push_back({{}, true, *relayed_error});
  const bool has_first = !by_rank.empty() && by_rank.front() && by_rank.front()->error;
  if (has_first && is_relayed_error(by_rank.front()->error->message))
    add_advice(*by_rank.front(), out);
  return out;
}

std::string rank_list_text(const ErrorGroup& saying) {
  constexpr std::size_t kMaxNamed = 3;
  const std::vector<int>& workers = saying.workers;
  if (workers.size() == 1) return fmt::format("worker {}", workers.front());
  std::string text = "workers ";
  const std::size_t named = std::min(workers.size(), kMaxNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == workers.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", workers[i]);
  }
  if (workers.size() > named) text += fmt::format(" and {} more", workers.size() - named);
  return text;
}

}  // namespace shw
