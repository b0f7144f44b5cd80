#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void find_payload_dtypes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (facts.headers.empty()) return;
  Finding finding{.rule = "payload-dtype"};
  std::vector<std::string> items;
  std::uint64_t count = 0;
  for (TensorId tensor : each_tensor(facts)) {
    Dtype recorded = checkpoint.dtype(tensor);
    if (recorded == Dtype::kUnknown) continue;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
      if (!header || header->dtype == recorded) continue;
      if (count == 0) {
        finding.evidence = {{"recorded", std::string(name(recorded))},
                            {"written", std::string(name(header->dtype))}};
      }
      ++count;
      add_subject(finding.subjects, checkpoint.fqn(tensor));
      if (items.size() < kMaxEvidence)
        items.push_back(chunk_text(checkpoint, tensor, chunk) + ": recorded " +
                        std::string(name(recorded)) + ", holds " +
                        std::string(name(header->dtype)));
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = plural(count, "chunk") + (count == 1 ? " holds" : " hold") +
                  " elements whose dtype differs from the metadata (" + items.front() +
                  "): torch converts them on load without an error; other readers interpret the "
                  "bytes with the wrong dtype.";
  finding.evidence.emplace_back("items", items);
  finding.evidence.emplace_back("item_count", static_cast<std::int64_t>(count));
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kPayloadDtype = {
    .id = "payload-dtype",
    .depth = Depth::kHeaders,
    .title = "A chunk's stored dtype differs from the metadata",
    .teaches =
        "The metadata records one dtype per tensor, and each item in the data files records its "
        "own. They must agree. If they do not, ranks used different dtypes when they saved (one "
        "cast its copy, another did not), and the metadata keeps only one of them. torch converts "
        "silently; a tool that trusts the metadata reads noise.",
    .lesson = {.drawing = R"(
  recorded   float32    4 bytes an element   │ a   │ b   │
  the item   bfloat16   2 bytes an element   │a │b │
  torch converts on load; a tool that trusts the record reads noise
)",
               .remedy = "Load the checkpoint with torch, which converts, and save it again."},
    .words = {.text = "is converted on load"},
    .symptom_in = SymptomIn::kItems,
    .run = find_payload_dtypes,
};

}  // namespace shw
