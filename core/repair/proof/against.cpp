#include "core/repair/proof/against.h"

#include "core/base/parallel.h"
#include "core/repair/lower/saved_tiles.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/proof/compare_kept.h"
#include "core/repair/proof/compare_target.h"
#include "core/tiles/exact_tiling.h"
#include "core/transform/unclaimed_records.h"

namespace shw {
namespace {

struct ExpectedAndWritten {
  PartReader wanted;
  ItemCursor written;
};

struct RelocatedTarget {
  RelocatedTarget(TargetOfPlan arranged, const SourceComparisonInputs& against)
      : plan(std::move(arranged)),
        result(against.result),
        memory_of_side(against.memory_of_side()) {}
  TargetOfPlan plan;
  const Checkpoint& result;
  const std::uint64_t memory_of_side;
  // By tensor of the result: index of its parts, if any tile is made of parts.
  std::vector<std::unique_ptr<const IndexedTensor>> tensors{};
  // If files are kept, by chunk of the result: the source chunk whose item it keeps. `elsewhere`:
  // items that are not where their record says.
  std::vector<std::optional<ChunkId>> kept{};
  std::map<ChunkId, std::shared_ptr<const RareOutputTileFields>> elsewhere{};
  Pool<ExpectedAndWritten> readers{[this] {
    return std::make_unique<ExpectedAndWritten>(ExpectedAndWritten{
        PartReader(plan.all, memory_of_side), ItemCursor(result, memory_of_side)});
  }};

  Result<ComparedTile> compare(ChunkId chunk, Progress* progress) {
    if (is_empty(box_of(result, chunk))) return ComparedTile();
    auto sides = readers.take();
    if (!kept.empty() && kept[index_of(chunk)]) return compare_with_item(chunk, *sides, progress);
    const auto& tensor = tensors[index_of(result.tensor_of(chunk))];
    if (tensor == nullptr) return fail(ErrorKind::kDamaged, "comes from nowhere");
    ComparedTile found;
    Status compared =
        compare_elements(tensor->index, chunk, sides->wanted, sides->written, progress, found);
    if (!compared && !found.mismatch) return tl::unexpected<Error>(std::move(compared).error());
    return found;
  }

 private:
  Result<ComparedTile> compare_with_item(ChunkId chunk, ExpectedAndWritten& sides,
                                         Progress* progress) {
    SHW_TRY(ItemCursor * source, sides.wanted.reader(0));
    TargetChunk tile{box_of(result, chunk), 0, kept[index_of(chunk)]};
    if (auto more = elsewhere.find(chunk); more != elsewhere.end()) tile.more = more->second;
    ComparedTile found;
    std::int64_t seen = 0;
    const Comparing comparing{*source, sides.written, chunk, progress, &found.mismatch, &seen};
    Status compared = compare_kept(comparing, tile);
    if (found.mismatch) return found;
    if (!compared) return tl::unexpected<Error>(std::move(compared).error());
    if (seen != volume(tile.box.sizes))
      return fail(ErrorKind::kDamaged, "has elements that were not compared with anything");
    return found;
  }
};

void add_expected_loss(const TargetTensor& tensor, ExpectedResult& expected) {
  const Loss& loss = tensor.loss;
  FilledTensor filled{tensor.fqn,     tensor.shape,        0, loss.boxes, true, loss.fill,
                      loss.fill_from, loss.fill_checkpoint};
  for (const Box& box : loss.boxes) filled.lost += volume(box.sizes).value_or(0);
  if (filled.lost != 0) expected.lost.tensors.push_back(std::move(filled));
  if (tensor.is_cast) expected.cast.insert(tensor.fqn);
  if (tensor.padding != 0) expected.padding[tensor.fqn] = tensor.padding;
}

// Notes entries whose value another entry replaced; entries that swap values keep theirs.
void add_replaced_to_expected(const TargetState& all, ExpectedResult& expected) {
  if (keeps_every_value(all)) return;
  for (const TargetNonTensorEntry& object : all.objects) {
    if (object.object != object.own)
      expected.lost.entries.push_back({object.fqn, all.source().objects()[object.object].fqn});
  }
}

// A hole has no origin, so a tensor with holes must not be called whole.
Status check_has_no_holes(const TargetTensor& tensor) {
  SHW_TRY(std::vector<Box> holes, holes_in(tensor));
  if (holes.empty()) return {};
  return cannot_make_target(tensor.fqn, "some of its elements are not stored anywhere");
}

// Finds the tiles that keep their item; an error if the written tiles differ.
Status find_kept_tiles(const WrittenTensor& written, std::string_view fqn, RelocatedTarget& again) {
  SHW_TRY(const std::vector<std::uint32_t> tile_of, match_tiles(written, again.result, fqn));
  std::size_t next = 0;
  for (ChunkId chunk : again.result.chunks(written.at)) {
    const TargetChunk& tile = written.tensor.tiles[tile_of[next++]];
    again.kept[index_of(chunk)] = tile.kept;
    if (tile.more != nullptr && tile.more->place) again.elsewhere[chunk] = tile.more;
  }
  return {};
}

void note_holes(const Checkpoint& source, TensorId tensor, ExpectedResult& expected) {
  const auto holes = saved_holes_of(source, tensor);
  if (holes && !holes->empty())
    expected.holes[std::string(source.fqn(tensor))] = total_volume(*holes).value_or(0);
}

Status describe_entry(const TargetEntry& entry, RelocatedTarget& again, ExpectedResult& expected) {
  const TargetState& all = again.plan.all;
  const ResultFormat& form = again.plan.form;
  SHW_TRY(TargetTensor tensor, target_for(all, entry, form));
  if (!form.keeps_files) SHW_CHECK(check_has_no_holes(tensor));
  add_expected_loss(tensor, expected);
  if (form.keeps_files && entry.made == nullptr) note_holes(all.source(), entry.as_saved, expected);
  auto written = written_tensor(all, entry, form, again.result);
  Status fits;
  if (!written)
    fits = tl::unexpected<Error>(written.error());
  else
    fits = form.keeps_files ? find_kept_tiles(*written, entry.fqn, again)
                            : compare_tiles(*written, again.result, entry.fqn);
  if (!fits) {
    expected.contradictions.push_back(error_with_place_text(fits.error()));
    return {};
  }
  if (!form.keeps_files || !tensor.parts.empty())
    again.tensors[index_of(written->at)] = std::make_unique<const IndexedTensor>(std::move(tensor));
  return {};
}

Status describe_expected_result(RelocatedTarget& again, ExpectedResult& expected) {
  const TargetState& all = again.plan.all;
  again.tensors.resize(again.result.tensor_count());
  if (again.plan.form.keeps_files) {
    again.kept.resize(again.result.chunk_count());
    if (other_attributes(again.result) != other_attributes(all.source()))
      expected.contradictions.push_back(
          error_with_place_text(differs_from_target("", "other attributes").value()));
  }
  for (const TargetEntry& entry : all.tensors) SHW_CHECK(describe_entry(entry, again, expected));
  if (again.result.tensor_count() != all.tensors.size())
    expected.contradictions.push_back("the number of tensors differs from the plan's result");
  return {};
}

}  // namespace

std::string error_with_place_text(const Error& error) {
  std::string where = error.place.tensor;
  if (!error.place.file.empty()) where += (where.empty() ? "" : " in ") + error.place.file;
  return where.empty() ? error.message : where + ": " + error.message;
}

std::uint64_t SourceComparisonInputs::memory_of_side() const {
  return memory / (3 * worker_count());
}

namespace {

Result<ExpectedResult> expected_of_plan(const SourceComparisonInputs& against, const Plan& plan,
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
  add_replaced_to_expected(again->plan.all, expected);
  SHW_CHECK(describe_expected_result(*again, expected));
  expected.objects = [again] { return differing_target_entry(again->plan.all, again->result); };
  if (!expected.contradictions.empty()) return expected;
  expected.compare = [again](ChunkId chunk, Progress* on) { return again->compare(chunk, on); };
  return expected;
}

}  // namespace

Result<ExpectedResult> expected_of(const Certificate& certificate,
                                   const SourceComparisonInputs& against, Progress* progress) {
  if (certificate.plan.empty()) {
    return fail(ErrorKind::kUnsupported,
                "does not record how it was made from its source: an older version wrote it, or it "
                "was changed",
                {kCertificateFile});
  }
  auto plan = decode_stored_plan(certificate.plan);
  if (!plan)
    return fail(ErrorKind::kDamaged, "keeps a plan that " + plan.error().message,
                {kCertificateFile});
  if (fingerprint(*against.source) != fingerprint_in(*plan)) {
    return fail(ErrorKind::kUsage,
                "this is not the source of the result, or it has changed since: shapes, chunks or "
                "item positions differ");
  }
  SHW_TRY(const Plan read, plan_from_json(*against.source, *plan, kCertificateFile));
  return expected_of_plan(against, read, progress);
}

}  // namespace shw
