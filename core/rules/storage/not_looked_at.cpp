#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMaxPlaces = 16;

// The tensors of each reason, for one finding instead of one per tile.
struct Reasons {
  std::map<std::string, std::vector<std::string>> subjects;
  std::map<std::string, std::int64_t> count;
  std::map<std::string, std::vector<std::string>> places;  // first places, to inspect by hand

  void add(std::string_view fqn, const Error& error) {
    if (error.kind != ErrorKind::kUnsupported && error.kind != ErrorKind::kIo) return;
    // The reason names the file only if the system refused it: unsupported tensors are in many
    // files.
    std::string reason = error.message;
    if (error.kind == ErrorKind::kIo && !error.place.file.empty())
      reason = error.place.file + ": " + reason;
    ++count[reason];
    auto& seen = places[reason];
    if (!error.place.file.empty() && seen.size() < kMaxPlaces)
      seen.push_back(error.place.file +
                     (error.place.offset ? " at byte " + human_count(*error.place.offset) : ""));
    add_subject(subjects[reason], fqn);
  }
};

void find_not_examined(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Reasons reasons;
  for (TensorId tensor : each_tensor(facts)) {
    const TensorTiling& tiling = facts.tilings[index_of(tensor)];
    if (tiling.tiling == Tiling::kInexact && !tiling.defects.complete)
      reasons.add(
          checkpoint.fqn(tensor),
          Error{ErrorKind::kUnsupported, "its chunks overlap in a way too complex to resolve"});
    if (facts.headers.empty() && facts.data.empty()) continue;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      std::size_t i = index_of(chunk);
      auto item = checkpoint.item(chunk);
      // Other rules report missing files, ranges and records.
      if (!item || !is_reachable(checkpoint, *item)) continue;
      if (!facts.headers.empty() && !facts.headers.has_value(i)) {
        reasons.add(checkpoint.fqn(tensor), facts.headers[i].error());
      } else if (!facts.data.empty() && !facts.data.has_value(i)) {
        reasons.add(checkpoint.fqn(tensor), facts.data[i].error());
      }
    }
  }
  for (std::size_t i = 0; i < facts.object_data.size(); ++i) {
    if (!facts.object_data[i])
      reasons.add(checkpoint.objects()[i].fqn, facts.object_data[i].error());
  }
  for (auto& [reason, subjects] : reasons.subjects) {
    Finding finding{.rule = "not-looked-at", .severity = Severity::kInfo};
    finding.cause = plural(static_cast<std::uint64_t>(reasons.count[reason]), "item") + " of " +
                    short_list_text(subjects) + " could not be checked: " + reason + ".";
    finding.evidence = {{"reason", reason}, {"item_count", reasons.count[reason]}};
    if (!reasons.places[reason].empty())
      finding.evidence.emplace_back("where", std::move(reasons.places[reason]));
    finding.subjects = std::move(subjects);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

const Rule kNotLookedAt = {
    .id = "not-looked-at",
    .depth = Depth::kMetadata,
    .title = "Something could not be checked",
    .teaches =
        "Not a defect: a file that cannot be read, or a kind of tensor that Shardwright does not "
        "know. Everything else was checked. Because this part was not, a check that finds "
        "nothing else ends as undecided instead of clean.",
    .lesson = {.drawing = R"(
  __0_0.distcp   looked at
  __1_0.distcp   permission denied    ──  verdict: undecided, not clean
)",
               .remedy = "Make it readable (permissions, disk), then check again."},
    .words = {.text = "not checked", .as_info = true},
    .leaves_undecided = true,
    .run = find_not_examined,
};

}  // namespace shw
