// What steps should have made of their source.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/kept_plan.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/proof/against.h"
#include "core/repair/proof/compare_target.h"

namespace shw {
namespace {

struct PartSides {
  PartReader wanted;
  BoxReader written;
};

struct RelocatedTarget {
  RelocatedTarget(TargetOfPlan arranged, const AgainstSource& against)
      : plan(std::move(arranged)),
        result(against.result),
        memory_of_side(against.memory_of_side()) {}
  TargetOfPlan plan;
  const Checkpoint& result;
  const std::uint64_t memory_of_side;
  std::vector<std::unique_ptr<const IndexedTensor>> tensors{};  // by tensor of the result
  Pool<PartSides> readers{[this] {
    return std::make_unique<PartSides>(
        PartSides{PartReader(plan.all, memory_of_side), BoxReader(result, memory_of_side)});
  }};

  Result<ComparedTile> compare(ChunkId chunk, Progress* progress) {
    const auto& tensor = tensors[index_of(result.tensor_of(chunk))];
    if (is_empty(box_of(result, chunk))) return ComparedTile();
    if (tensor == nullptr) return fail(ErrorKind::kDamaged, "comes from nowhere");
    auto sides = readers.take();
    ComparedTile found;
    Status compared =
        compare_elements(tensor->index, chunk, sides->wanted, sides->written, progress, found);
    if (!compared && !found.mismatch) return tl::unexpected<Error>(std::move(compared).error());
    return found;
  }
};

void note_lost(const TargetTensor& tensor, ExpectedResult& expected) {
  const Loss& loss = tensor.loss;
  FilledTensor filled{tensor.fqn,     tensor.shape,        0, loss.boxes, true, loss.fill,
                      loss.fill_from, loss.fill_checkpoint};
  for (const Box& box : loss.boxes) filled.lost += volume(box.sizes).value_or(0);
  if (filled.lost != 0) expected.lost.tensors.push_back(std::move(filled));
  if (tensor.is_cast) expected.cast.insert(tensor.fqn);
  if (tensor.padding != 0) expected.padding[tensor.fqn] = tensor.padding;
}

void note_replaced(const TargetState& all, ExpectedResult& expected) {
  for (const TargetNonTensorEntry& object : all.objects) {
    if (object.object != object.own)
      expected.lost.entries.push_back({object.fqn, all.source().objects()[object.object].fqn});
  }
}

// Holes have no origin: nothing may be called whole that has one.
Status check_whole(const TargetTensor& tensor) {
  SHW_TRY(std::vector<Box> holes, holes_in(tensor));
  if (holes.empty()) return {};
  return cannot_make_target(tensor.fqn, "elements of it are saved nowhere");
}

Status describe(RelocatedTarget& again, ExpectedResult& expected) {
  const TargetState& all = again.plan.all;
  again.tensors.resize(again.result.tensor_count());
  for (const TargetEntry& entry : all.tensors) {
    SHW_TRY(TargetTensor tensor, target_for(all, entry, again.plan.form));
    SHW_CHECK(check_whole(tensor));
    note_lost(tensor, expected);
    auto written = written_tensor(all, entry, again.plan.form, again.result);
    Status fits = written ? compare_tiles(*written, again.result, entry.fqn)
                          : Status(tl::unexpected<Error>(written.error()));
    if (!fits) {
      expected.contradictions.push_back(words_about(fits.error()));
      continue;
    }
    again.tensors[index_of(written->at)] = std::make_unique<const IndexedTensor>(std::move(tensor));
  }
  if (again.result.tensor_count() != all.tensors.size())
    expected.contradictions.push_back("there is another number of tensors than was made");
  return {};
}

}  // namespace

Result<ExpectedResult> expected_of_steps(const AgainstSource& against, const Plan& plan,
                                         Progress* progress) {
  SHW_TRY(TargetOfPlan arranged, target_of_plan(against.source, plan, progress));
  auto again = std::make_shared<RelocatedTarget>(std::move(arranged), against);
  ExpectedResult expected;
  expected.dropped = again->plan.all.dropped;
  expected.trimmed = again->plan.all.trimmed;
  for (std::size_t i = 1; i < again->plan.all.inputs.size(); ++i)
    expected.others.push_back(again->plan.all.inputs[i]->directory()->name());
  for (const Operation& operation : plan.operations) expected.words.push_back(operation.text);
  for (const Step& step : plan.steps) expected.words.push_back(to_text(step));
  if (!plan.format.empty()) expected.words.push_back("written as " + plan.format);
  note_replaced(again->plan.all, expected);
  SHW_CHECK(describe(*again, expected));
  expected.objects = [again] { return differing_target_entry(again->plan.all, again->result); };
  if (!expected.contradictions.empty()) return expected;
  expected.compare = [again](ChunkId chunk, Progress* on) { return again->compare(chunk, on); };
  return expected;
}

Result<ExpectedResult> expected_of(const Certificate& certificate, const AgainstSource& against,
                                   Progress* progress) {
  if (certificate.plan.empty()) {
    return fail(ErrorKind::kUnsupported,
                "does not say how it was made of its source: an older version wrote it, or it was "
                "changed",
                {kCertificateFile});
  }
  auto plan = kept_plan(certificate.plan);
  if (!plan)
    return fail(ErrorKind::kDamaged, "keeps a plan that " + plan.error().message,
                {kCertificateFile});
  if (fingerprint(*against.source) != fingerprint_in(*plan)) {
    return fail(ErrorKind::kUsage,
                "it is not what this was made of, or not in that state any more: shapes, tiles or "
                "places of items are others");
  }
  SHW_TRY(Plan read, plan_from_json(*against.source, *plan, kCertificateFile));
  if (read.transforms()) return expected_of_steps(against, read, progress);
  return expected_of_repair(against, std::move(read));
}

}  // namespace shw
