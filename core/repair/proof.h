// Hashes of items and what they prove: shared by apply, in-place repair and verify.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/filled.h"
#include "core/io/store.h"
#include "core/model/checkpoint.h"
#include "core/repair/certificate.h"
#include "core/repair/digests.h"
#include "core/repair/verify_report.h"

namespace shw {

class ItemDoubts;
class ItemPasses;
class PassingItems;
class Team;

// XXH3-128 of every chunk's item, by chunk id; in parallel, items that several chunks share once.
// `then` is called for every chunk when its item has been hashed, by the same thread. `doubts`
// hear of items that do not match their checksums, which the same pass holds them against; null:
// nobody does.
using ThenOf = std::function<Status(ChunkId)>;
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                  const ThenOf& then = {}, ItemDoubts* doubts = nullptr);
// The same where another checkpoint points into the same files, and `known` are its hashes: what
// both point to is not read again.
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, const Checkpoint& of_same_files,
                                  const ItemHashes& known, Progress* progress);
// What else is found of a chunk by whoever has hashed its item, and heard by all.
struct BesideHash {
  std::function<Result<Bytes>(ChunkId)> find = {};  // null: nothing
  std::function<Status(ChunkId, BytesView)> hear = {};
};
// The same, each item read by one member of the team. Outside the team's own errors, inside that of
// the first item that cannot be read: the same for all members.
Result<Result<ItemHashes>> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                          Team& team, const BesideHash& beside = {});
// XXH3-128 of an item of a source that came along: as it was seen on the way, or read for it.
Result<Hash128> hash_kept(const Checkpoint& source, ItemPlace item, const PassingItems& came_along,
                          ItemPasses& passes, Progress* progress);
// The bytes that hash_all_items() reads.
std::uint64_t item_bytes(const Checkpoint& checkpoint);
// 0 where it has no item.
std::uint64_t item_length(const Checkpoint& checkpoint, ChunkId chunk);
// What the first member of a team finds and writes, heard by all; alone it is this one.
Result<bool> by_first(Team* team, const std::function<Result<bool>()>& work);

// What no tile of a tensor covers; nothing where one is no box of it.
std::optional<std::vector<Box>> holes_of(const Checkpoint& checkpoint, TensorId tensor);
// None of its tiles holds elements that the tensor has no room for.
bool tiles_lie_inside(const Checkpoint& checkpoint, TensorId tensor);
// Two of its tiles, which are boxes of it, hold the same elements.
bool has_overlap(const Checkpoint& checkpoint, TensorId tensor);
// XXH3-128 of the item of an entry that is no tensor; an error where it has none.
Result<std::string> hash_entry(const Checkpoint& checkpoint, std::string_view fqn);

// The certificate of a plan that was carried out: `before` and `after` are the hashes in chunk
// order of the source and of what came out; kNoHash where the source's item did not come along. An
// error where an item that was to stay as it is did not. `doubts`: of the result.
Result<Certificate> certify(const Checkpoint& source, const ItemHashes& before,
                            const Checkpoint& result, const ItemHashes& after,
                            const ItemDoubts& doubts, const Plan& plan, Progress* progress);

// What a tensor of the result is: shape, dtype, tiles and the hashes of their items. Nothing of
// what it was.
TensorCertificate certify_tensor(const Checkpoint& result, TensorId tensor,
                                 const ItemHashes& hashes);

// Writes the list of hashes that Megatron-LM verifies (core/facts/integrity.h) beside what lies
// there. The certificate is not in it: it is made last, and certifies the list.
Status write_integrity(const Checkpoint& result, WritableDirectory& folder, Progress* progress);

// Every entry that is no tensor, and every file but those that a repair keeps for itself. The
// result must lie there as it will be, but for the certificate. Entries are held against their
// checksums on the way.
Result<std::vector<ObjectCertificate>> certify_objects(const Checkpoint& result,
                                                       Progress* progress);
Result<std::vector<FileCertificate>> certify_files(const Checkpoint& result,
                                                   const ItemHashes& hashes, Progress* progress);

// What the certificate says and what is there do not say the same: entries, files, lost.json, the
// record inside the checkpoint, and its own numbers.
struct Disagreements {
  std::vector<std::string> broken;
  // A file that the certificate does not name; an entry that does not match its checksums.
  std::vector<std::string> unknown;
};
Result<Disagreements> disagreements(const Certificate& certificate, const Checkpoint& checkpoint,
                                    const ItemHashes& hashes, Progress* progress);

// A record of losses, which `file` says, against the certificate: the same tensors, numbers, boxes
// and fills. One that speaks for all has every tensor that lost something.
void compare_record(const Certificate& certificate, const std::string& file,
                    const FilledRecord& record, bool speaks_for_all,
                    std::vector<std::string>& broken);

// Entries that are no tensors and are not what the certificate says, each with why.
std::vector<std::string> wrong_entries(const Certificate& certificate,
                                       const Checkpoint& checkpoint);
// Holds a checkpoint against its certificate. `hashes` in chunk order. `holes`: what lies in no
// tile and is certified as lost, a sentence a tensor; nothing is proved of that.
VerifyReport hold_against(const Certificate& certificate, const Checkpoint& checkpoint,
                          const ItemHashes& hashes, std::vector<std::string>& holes);

// The version of this program, as the certificate names it.
inline constexpr const char* kProgramVersion = "0.1.0";

}  // namespace shw
