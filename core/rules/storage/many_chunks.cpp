// Up to version 2.9, torch compares every chunk of a tensor with every other one.
#include <algorithm>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::uint32_t kMany = 16'384;
constexpr double kSecondsAtMany = 32.7;  // from the table in pytorch #166820

void find_many_chunks(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding{.rule = "many-chunks", .severity = Severity::kInfo};
  double seconds = 0;
  std::uint32_t most = 0;
  std::string worst;
  for (TensorId tensor : each_tensor(facts)) {
    std::uint32_t count = checkpoint.chunks(tensor).size();
    if (count <= kMany) continue;
    finding.subjects.emplace_back(checkpoint.fqn(tensor));
    double times = static_cast<double>(count) / kMany;
    seconds += kSecondsAtMany * times * times;
    if (count > most) worst = finding.subjects.back();
    most = std::max(most, count);
  }
  if (finding.subjects.empty()) return;
  finding.cause = worst + " is cut into " + human_count(most) +
                  " chunks: torch 2.9 and older compare each with all others, about " +
                  human_count(static_cast<std::uint64_t>(seconds)) +
                  " seconds for this checkpoint.";
  finding.evidence = {{"most_chunks", std::int64_t{most}},
                      {"tensor_count", count_of(finding.subjects.size())},
                      {"seconds_in_torch_2_9", seconds}};
  finding.link = "pytorch #166820";
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kManyChunks = {
    .id = "many-chunks",
    .depth = Depth::kMetadata,
    .title = "So many chunks that older torch versions take minutes to load",
    .teaches =
        "Not a defect. Before it saves or loads, torch checks that no two chunks of a tensor "
        "overlap. Up to 2.9 it compares every pair, so ten times the chunks take a hundred times "
        "as long (16,384 chunks: 33 seconds). Newer versions sort first and are fast. Fewer, "
        "larger chunks are fast in every version.",
    .lesson = {.drawing = R"(
  chunks of a tensor     torch 2.9       later
              1,024        0.1 s        at once
             16,384         33 s        at once
            163,840       55 min        at once
)",
               .remedy = "Load it with a newer torch, or save it with fewer, larger chunks.",
               .link = "https://github.com/pytorch/pytorch/pull/166820"},
    .run = find_many_chunks,
};

}  // namespace shw
