#include "core/repair/run/make_target.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/team.h"
#include "core/base/version.h"
#include "core/exec/folder_run.h"
#include "core/facts/storage/integrity.h"
#include "core/formats/item_pass.h"
#include "core/formats/replicas.h"
#include "core/formats/table.h"
#include "core/io/rights.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/ambiguous_elements.h"
#include "core/repair/proof/certify.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/compare_target.h"
#include "core/repair/proof/hash_each.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/config_dtype.h"
#include "core/repair/run/lost.h"
#include "core/repair/run/neighbours.h"
#include "core/repair/run/touched.h"

namespace shw {
namespace {

// Which of what was laid out a tile of an entry is, as WrittenFolder::made counts them. Outputs
// have the tiles of an entry in the order in which it is arranged.
class MadePlaces {
 public:
  MadePlaces(const Outputs& outputs, const LaidOut& laid_out) {
    for (const OutputTensor& tensor : outputs.tensors) {
      first_.push_back(made_.size());
      made_.resize(made_.size() + tensor.tiles.size(), kKept);
    }
    for (std::uint32_t i = 0; i < laid_out.made.size(); ++i)
      made_[first_[laid_out.made[i].tensor] + laid_out.made[i].tile] = i;
  }

  std::uint32_t tiles_of(std::uint32_t entry) const {
    const std::size_t end = entry + 1 < first_.size() ? first_[entry + 1] : made_.size();
    return static_cast<std::uint32_t>(end - first_[entry]);
  }
  // Nothing where its item comes along as it is.
  std::optional<std::uint32_t> find(std::uint32_t entry, std::uint32_t tile) const {
    const std::uint32_t made = made_[first_[entry] + tile];
    return made == kKept ? std::nullopt : std::optional(made);
  }

 private:
  static constexpr std::uint32_t kKept = 0xFFFFFFFFu;
  std::vector<std::size_t> first_;   // by entry, in made_
  std::vector<std::uint32_t> made_;  // by entry and tile
};

struct ProvingTarget {
  const TargetState& all;
  const TargetRun& run;
  const MadePlaces& places;
  const std::vector<std::string> neighbours;  // files that do not come along
  const WrittenFolder& written;
  Progress* progress;
  ChecksumMismatches& mismatches;
  bool in_place = false;  // the files of the result are those of the source
  const Checkpoint& result = written.result;
};

bool is_same_place(const ProvingTarget& proving, const ItemPlace& before, const ItemPlace& now) {
  return before.offset == now.offset && before.length == now.length &&
         proving.all.source().file(before.file).path == proving.result.file(now.file).path;
}

Result<WrittenTensor> written_of(const ProvingTarget& proving, const TargetEntry& entry) {
  return written_tensor(proving.all, entry, proving.run.form, proving.result);
}

struct TileTask {
  std::uint32_t entry = 0;
  ChunkId chunk{};                      // of the result
  std::optional<std::uint32_t> made{};  // in WrittenFolder::made
  std::optional<ChunkId> kept{};        // else: what it was in the source
};

struct PassesOfBoth {
  PassesOfBoth(const Checkpoint& before, const Checkpoint& after) : source(before), result(after) {}
  ItemHasher source, result;
};

// The chunk of the source that begins where the tile does.
std::optional<ChunkId> kept_chunk_of(const IndexedTensor& tensor, const Checkpoint& result,
                                     ChunkId tile) {
  for (const Part* part : tensor.index.near(box_of(result, tile))) {
    const auto* from = std::get_if<FromChunk>(&part->from);
    if (from != nullptr && from->input == 0 && same(part->box.offsets, result.offsets(tile)))
      return from->chunk;
  }
  return std::nullopt;
}

// The item that came along as it was is the one of the source. Its hash.
Result<Hash128> prove_kept(const TileTask& task, const ProvingTarget& proving,
                           PassesOfBoth& passes) {
  const Checkpoint& source = proving.all.source();
  // In place a tile without elements stays as it is too, and is made of nothing.
  if (proving.in_place && is_empty(box_of(proving.result, task.chunk))) {
    if (!proving.result.item(task.chunk)) return kNoHash;
    SHW_TRY(VerifiedItem held, passes.result.hold(task.chunk, proving.progress));
    return held.hash;
  }
  auto before = task.kept ? source.item(*task.kept) : std::nullopt;
  auto now = proving.result.item(task.chunk);
  if (before && now) {
    SHW_TRY(VerifiedItem held, passes.result.hold(task.chunk, proving.progress));
    Hash128 wanted = held.hash;
    if (!proving.in_place || !is_same_place(proving, *before, *now)) {
      SHW_TRY(wanted,
              hash_kept(source, *before, proving.written.copied_items, passes.source, nullptr));
    }
    if (wanted == held.hash) {
      proving.mismatches.add(task.chunk, std::move(held.mismatch));
      return wanted;
    }
  }
  return differs_from_target(proving.all.tensors[task.entry].fqn,
                             "a tile that was to stay as it is does not");
}

// One tile, read back once: what passes by is held against the fingerprint of what was read for it,
// or against the item that it was. The item's hash.
Result<Hash128> prove_tile(const TileTask& task, const ProvingTarget& proving,
                           PassesOfBoth& passes) {
  if (!task.made) return prove_kept(task, proving, passes);
  SHW_TRY(ItemPass pass, passes.result.hash_and_fingerprint(task.chunk, proving.progress));
  const auto& read = proving.written.made[*task.made];
  if (read && read->fingerprint == pass.elements) return pass.hash;
  return differs_from_target(proving.all.tensors[task.entry].fqn,
                             "its tile at " + to_text(proving.result.offsets(task.chunk)) +
                                 " does not hold what was read for it");
}

// Every tile of one entry, which is written in the tiles that it was to be.
Result<std::vector<TileTask>> tasks_of(const ProvingTarget& proving, std::uint32_t entry) {
  SHW_TRY(WrittenTensor written, written_of(proving, proving.all.tensors[entry]));
  SHW_TRY(std::vector<std::uint32_t> tile_of,
          match_tiles(written, proving.result, proving.all.tensors[entry].fqn));
  std::vector<TileTask> tasks;
  tasks.reserve(tile_of.size());
  std::unique_ptr<const IndexedTensor> tensor;
  for (ChunkId chunk : proving.result.chunks(written.at)) {
    TileTask task{entry, chunk, proving.places.find(entry, tile_of[tasks.size()])};
    if (!task.made) {
      if (tensor == nullptr)
        tensor = std::make_unique<const IndexedTensor>(std::move(written.tensor));
      task.kept = kept_chunk_of(*tensor, proving.result, chunk);
    }
    tasks.push_back(task);
  }
  return tasks;
}

// By chunk of the result the hash of its item.
Result<ItemHashes> prove_tiles(const ProvingTarget& proving) {
  const TargetState& all = proving.all;
  if (proving.result.tensor_count() != all.tensors.size())
    return differs_from_target("", "another number of tensors");
  std::vector<std::vector<TileTask>> of_entries(all.tensors.size());
  SHW_CHECK(parallel_for(of_entries.size(), [&](std::size_t i) -> Status {
    SHW_TRY(of_entries[i], tasks_of(proving, static_cast<std::uint32_t>(i)));
    return {};
  }));
  std::vector<TileTask> tasks;
  tasks.reserve(proving.result.chunk_count());
  for (std::vector<TileTask>& own : of_entries) {
    tasks.insert(tasks.end(), own.begin(), own.end());
    own = {};
  }
  // Tiles of one tensor lie in as many files as there were ranks.
  std::vector<ChunkId> chunks;
  chunks.reserve(tasks.size());
  for (const TileTask& task : tasks) chunks.push_back(task.chunk);
  const std::vector<std::uint32_t> order = order_on_disk(proving.result, chunks);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (std::uint32_t i : order) costs.push_back(item_length(proving.result, chunks[i]));
  HashWork work{"prove", costs, {}, proving.progress};
  Pool<PassesOfBoth> passes(
      [&] { return std::make_unique<PassesOfBoth>(all.source(), proving.result); });
  work.find = [&](std::size_t i) { return prove_tile(tasks[order[i]], proving, *passes.take()); };
  SHW_TRY(const ItemHashes found, hash_each(proving.written.team, work));
  if (proving.written.team != nullptr) SHW_CHECK(proving.mismatches.share(*proving.written.team));
  ItemHashes hashes(proving.result.chunk_count());
  for (std::size_t i = 0; i < order.size(); ++i) hashes[index_of(chunks[order[i]])] = found[i];
  return hashes;
}

// Whether every value of an entry that another entry's replaces is still there under some name.
bool keeps_every_value(const TargetState& all) {
  std::set<std::size_t> replaced, used;
  for (const TargetNonTensorEntry& object : all.objects) {
    if (object.object != object.own) replaced.insert(object.own);
    used.insert(object.object);
  }
  return std::includes(used.begin(), used.end(), replaced.begin(), replaced.end());
}

// Entries that hold another one's value stay listed, under their names of now: those that this
// repair replaces, and those that earlier ones did.
Status certify_replaced(const ProvingTarget& proving, Certificate& certificate) {
  const Checkpoint& source = proving.all.source();
  const FilledReport earlier = filled_in(source);
  std::map<std::string_view, std::string_view> replaced_before;  // by name in the source: with what
  for (const FilledEntry& entry : earlier.entries) replaced_before.emplace(entry.fqn, entry.from);
  std::optional<EntryItems> items;
  for (const TargetNonTensorEntry& object : proving.all.objects) {
    std::string from = source.objects()[object.object].fqn;
    if (object.object == object.own) {
      auto before = replaced_before.find(from);
      if (before == replaced_before.end()) continue;
      from = before->second;
      certificate.lossless = false;
    }
    if (!items) items.emplace(proving.result);
    if (!items->has(object.fqn))
      return fail(ErrorKind::kUnsupported,
                  "a repair replaced it, and this format has no place to say so",
                  Place{.file = {}, .tensor = object.fqn}, "leave it out, or write DCP");
    SHW_TRY(std::string item, items->hash(object.fqn));
    certificate.entries.push_back({object.fqn, from, std::move(item)});
  }
  certificate.lossless = certificate.lossless && keeps_every_value(proving.all);
  return {};
}

// Elements of it that were out of range of what they were cast to. They were counted while they
// were cast, lost or not: those that are both are read again here, and left out.
Result<std::int64_t> out_of_range_in(const ProvingTarget& proving, std::uint32_t entry,
                                     const TargetTensor& tensor) {
  std::uint64_t count = 0;
  for (std::uint32_t tile = 0; tile < proving.places.tiles_of(entry); ++tile) {
    const auto made = proving.places.find(entry, tile);
    if (made && proving.written.made[*made]) count += proving.written.made[*made]->out_of_range;
  }
  if (count == 0 || tensor.loss.boxes.empty()) return static_cast<std::int64_t>(count);
  PartReader reader(proving.all, proving.run.memory);
  SHW_TRY(const std::int64_t lost,
          lost_out_of_range(PartIndex(tensor), whole(tensor.shape), reader, proving.progress));
  return static_cast<std::int64_t>(count) - lost;
}

// What the source says beside its entries and the result does not.
std::vector<std::string> only_beside(const Checkpoint& source, const Checkpoint& result) {
  std::vector<std::string> left = noted_additions(source);
  if (left.empty()) return left;
  const std::vector<std::string> kept = noted_additions(result);
  std::erase_if(left, [&](const std::string& one) {
    return std::find(kept.begin(), kept.end(), one) != kept.end();
  });
  return left;
}

Result<Certificate> certify_target(const ProvingTarget& proving, const ItemHashes& hashes) {
  const Checkpoint& result = proving.result;
  Certificate certificate;
  certificate.source = proving.all.source().directory()->name();
  certificate.version = kProgramVersion;
  certificate.operations = proving.run.operations;
  certificate.steps = proving.run.steps;
  certificate.dropped = proving.all.dropped;
  certificate.trimmed = proving.all.trimmed;
  certificate.plan = proving.run.plan;
  for (std::uint32_t i = 0; i < proving.all.tensors.size(); ++i) {
    const TargetEntry& entry = proving.all.tensors[i];
    SHW_TRY(WrittenTensor written, written_of(proving, entry));
    TensorCertificate tensor = certify_tensor(result, written.at, hashes);
    const Loss& loss = written.tensor.loss;
    tensor.lost_boxes = loss.boxes;
    for (const Box& box : loss.boxes) tensor.lost += volume(box.sizes).value_or(0);
    tensor.kept = volume(written.tensor.shape).value_or(0) - tensor.lost;
    SHW_TRY(tensor.out_of_range, out_of_range_in(proving, i, written.tensor));
    record_mismatches(result, written.at, proving.mismatches, tensor,
                      contested_in(result, written.at, hashes));
    tensor.kept -= tensor.out_of_range + tensor.damaged;
    tensor.fill = loss.fill;
    tensor.fill_from = loss.fill_from;
    tensor.fill_checkpoint = loss.fill_checkpoint;
    tensor.is_cast = written.tensor.is_cast;
    tensor.padding = written.tensor.padding;
    if (written.tensor.before) {
      std::string_view before = proving.all.source().fqn(*written.tensor.before);
      if (before != entry.fqn) tensor.renamed_from = before;
    }
    certificate.lossless =
        certificate.lossless && tensor.lost == 0 && !tensor.is_cast && tensor.damage.empty();
    certificate.tensors.push_back(std::move(tensor));
  }
  SHW_TRY(certificate.of_other_ranks,
          left_behind(proving.all.source(), certificate.dropped, proving.progress));
  certificate.left_out = only_beside(proving.all.source(), result);
  certificate.left_out.insert(certificate.left_out.end(), proving.neighbours.begin(),
                              proving.neighbours.end());
  certificate.lossless = certificate.lossless && certificate.dropped.empty() &&
                         certificate.trimmed == 0 && certificate.of_other_ranks.empty();
  SHW_CHECK(certify_replaced(proving, certificate));
  return certificate;
}

// What is none of the tiles, and the certificate. Whether nothing is lost.
Result<bool> certify_and_write(const ProvingTarget& proving, const ItemHashes& hashes,
                               RepairResult& told) {
  SHW_TRY(auto differs, differing_target_entry(proving.all, proving.result));
  if (differs) return tl::unexpected<Error>(std::move(*differs));
  SHW_TRY(Certificate certificate, certify_target(proving, hashes));
  told.out_of_range = out_of_range_in(certificate);
  told.of_other_ranks = certificate.of_other_ranks;
  told.left_out = certificate.left_out;
  SHW_CHECK(write_certificate(proving.written, hashes, proving.run.integrity, certificate,
                              proving.progress));
  told.damage = damage_in(certificate);
  return certificate.lossless;
}

Status prove_target(const ProvingTarget& proving, RepairResult& told) {
  if (proving.progress != nullptr)
    proving.progress->begin(Phase::kVerifying, item_bytes(proving.result), true);
  SHW_TRY(auto hashes, prove_tiles(proving));
  SHW_TRY(told.lossless, run_on_rank0_and_broadcast(proving.written.team, [&] {
            return certify_and_write(proving, hashes, told);
          }));
  return {};
}

}  // namespace

Result<Certificate> certify_in_place(const TargetState& all, const TargetRun& run,
                                     const Outputs& outputs, const Checkpoint& result,
                                     WritableDirectory& files, Progress* progress) {
  const CopyHasher none_passed;
  const WrittenFolder written{result, files, {}, none_passed};
  const MadePlaces places(outputs, {});
  ChecksumMismatches doubts;
  const ProvingTarget proving{all, run, places, {}, written, progress, doubts, true};
  if (progress != nullptr) progress->begin(Phase::kVerifying, item_bytes(result), true);
  SHW_TRY(const ItemHashes hashes, prove_tiles(proving));
  SHW_TRY(auto differs, differing_target_entry(all, result));
  if (differs) return tl::unexpected<Error>(std::move(*differs));
  SHW_TRY(Certificate certificate, certify_target(proving, hashes));
  SHW_TRY(certificate.objects, certify_objects(result, progress));
  certificate.lossless = certificate.lossless && !has_damage(certificate);
  SHW_TRY(certificate.files, certify_files(result, hashes, progress));
  return certificate;
}

Result<RepairResult> make_target(Store& store, const TargetState& all, const TargetRun& wanted,
                                 Progress* progress) {
  if (all.source().directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  SHW_TRY(LoweredTarget lowered, lower_target(all, wanted.form, progress));
  FolderRun run;
  run.writer = wanted.form.format->writer;
  run.outputs = std::move(lowered.outputs);
  run.laid_out = std::move(lowered.laid_out);
  run.program = std::move(lowered.program);
  run.inputs = std::move(lowered.inputs);
  run.made = std::move(lowered.made);
  run.out = wanted.form.out;
  run.request = wanted.request;
  run.memory = wanted.memory;
  run.device = wanted.device;
  run.partial = wanted.partial;
  run.team = wanted.team;
  SHW_TRY(run.watched, watch_inputs(run.inputs));
  const std::vector<std::string> neighbours =
      choose_neighbours(all.source(), wanted.weights_only, run);
  say_dtype_in_config(all.source(), run);
  const MadePlaces places(run.outputs, run.laid_out);
  const TouchCheck touch{run.watched, run.inputs, all.inputs.front(), wanted.memory};
  RepairResult result{wanted.form.out, wanted.form.out + "/" + kCertificateFile};
  auto prove = [&](const WrittenFolder& written) -> Status {
    ChecksumMismatches mismatches;
    SHW_CHECK(
        prove_target({all, wanted, places, neighbours, written, progress, mismatches}, result));
    return prove_touched(touch, written, progress);
  };
  SHW_TRY(FolderMade made, make_folder(store, std::move(run), prove, progress));
  result.files_kept = made.files_kept;
  result.device = made.device;
  result.traffic = made.traffic;
  return result;
}

}  // namespace shw
