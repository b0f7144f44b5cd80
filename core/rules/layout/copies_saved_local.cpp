// An average of the weights that each rank keeps of its own shards (DTensor.to_local()) is made of
// plain tensors. Every rank offers its part as the whole tensor, and deduplication keeps one. The
// model is saved in the same checkpoint from DTensors, so its chunks show what one rank holds.
#include "core/rules/layout/copies_saved_local.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/model/state_names.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Words for a copy of the weights in a part of a name: "ema", "generator_ema", "shadow_params".
constexpr auto kCopyWords = std::to_array<std::string_view>(
    {"ema", "shadow", "avg", "average", "averaged", "swa", "teacher", "target"});
constexpr auto kModelWords =
    std::to_array<std::string_view>({"model", "module", "student", "online"});

// Least number of copies, so that one odd tensor is not taken for a rule.
constexpr std::size_t kEnoughCopies = 3;

// "generator_ema" without its word for a copy: "generator"; nullopt if it has none.
std::optional<std::string> without_copy_word(std::string_view part) {
  for (std::size_t begin = 0; begin <= part.size();) {
    const std::size_t end = std::min(part.find('_', begin), part.size());
    if (std::ranges::find(kCopyWords, part.substr(begin, end - begin)) != kCopyWords.end()) {
      const std::string_view front = part.substr(0, begin == 0 ? 0 : begin - 1);
      const std::string_view back = end == part.size() ? "" : part.substr(end + 1);
      const char* joint = front.empty() || back.empty() ? "" : "_";
      return fmt::format("{}{}{}", front, joint, back);
    }
    begin = end + 1;
  }
  return std::nullopt;
}

// A tensor whose name says that it is a copy, and the weight that it copies.
struct CopiedWeight {
  std::string group;  // the name up to the part that says so: "ema"
  TensorId weight;
};

std::optional<CopiedWeight> copied_weight(const Checkpoint& c, std::string_view fqn) {
  constexpr std::size_t kMaxCopyName = 1024;  // each of its parts takes names of this length
  if (fqn.size() > kMaxCopyName) return std::nullopt;
  for (std::size_t begin = 0; begin < fqn.size();) {
    const std::size_t end = fqn.find('.', begin);
    if (end == fqn.npos) break;
    if (const auto word = without_copy_word(fqn.substr(begin, end - begin))) {
      const std::string_view front = fqn.substr(0, begin), back = fqn.substr(end + 1);
      std::vector<std::string> names = {fmt::format("{}{}", front, back)};
      if (!word->empty()) names.push_back(fmt::format("{}{}.{}", front, *word, back));
      for (const std::string_view model : kModelWords)
        names.push_back(fmt::format("{}{}.{}", front, model, back));
      for (const std::string& name : names) {
        if (const auto found = c.find(name))
          return CopiedWeight{std::string(fqn.substr(0, end)), *found};
      }
    }
    begin = end + 1;
  }
  return std::nullopt;
}

struct LocalCopy {
  TensorId copy, weight;
  std::uint32_t writer = 0;
};

// The copies with one part of a name.
struct CopyGroup {
  std::vector<LocalCopy> local;
  bool has_matrix = false;
  bool is_contradicted = false;  // one copy of a sharded weight is whole, or of no rank's size
};

bool is_chunk_of_writer(const Checkpoint& c, TensorId weight, std::uint32_t writer,
                        ExtentsView sizes) {
  for (ChunkId chunk : c.chunks(weight)) {
    if (c.writer(chunk) == writer && same(c.sizes(chunk), sizes)) return true;
  }
  return false;
}

void add_copy(const Checkpoint& c, TensorId tensor, std::map<std::string, CopyGroup>& groups) {
  if (parse_state_fqn(c.fqn(tensor)) || c.shape(tensor).empty()) return;
  const auto copied = copied_weight(c, c.fqn(tensor));
  if (!copied || copied->weight == tensor || c.chunks(copied->weight).size() < 2) return;
  CopyGroup& group = groups[copied->group];
  const auto chunks = c.chunks(tensor);
  if (chunks.size() != 1) {
    group.is_contradicted = true;
    return;
  }
  const auto writer = c.writer(chunks[0]);
  // A rank without rows offers an empty tensor.
  if (volume(c.shape(tensor)) == 0) return;
  if (!writer || !same(c.sizes(chunks[0]), c.shape(tensor)) ||
      same(c.shape(tensor), c.shape(copied->weight)) ||
      !is_chunk_of_writer(c, copied->weight, *writer, c.shape(tensor))) {
    group.is_contradicted = true;
    return;
  }
  group.has_matrix = group.has_matrix || c.shape(tensor).size() > 1;
  group.local.push_back({tensor, copied->weight, *writer});
}

}  // namespace

void find_copies_saved_local(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, CopyGroup> groups;
  for (TensorId tensor : each_tensor(facts)) add_copy(c, tensor, groups);
  for (const auto& [name, group] : groups) {
    if (group.is_contradicted || !group.has_matrix || group.local.size() < kEnoughCopies) continue;
    Finding finding{.rule = std::string(kLocalSavedAsGlobal.id)};
    for (const LocalCopy& one : group.local) finding.subjects.emplace_back(c.fqn(one.copy));
    const LocalCopy& example = group.local.front();
    finding.cause = fmt::format(
        "{} of {} {} one rank's shard, saved as the whole tensor: {} is {}, and {} {}, of which "
        "rank {} wrote a chunk of that size. The copies were plain tensors (to_local()), so the "
        "shards of all other ranks are lost. Save the copies as DTensors or gather them first; "
        "until then, start them again from the weights.",
        plural(group.local.size(), "tensor"), name, group.local.size() == 1 ? "is" : "are",
        c.fqn(example.copy), to_text(c.shape(example.copy)), c.fqn(example.weight),
        to_text(c.shape(example.weight)), example.writer);
    finding.evidence = {{"example", std::string(c.fqn(example.copy))},
                        {"saved_shape", copy_of(c.shape(example.copy))},
                        {"shape_of_the_parameter", copy_of(c.shape(example.weight))},
                        {"written_by_rank", static_cast<std::int64_t>(example.writer)}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace shw
