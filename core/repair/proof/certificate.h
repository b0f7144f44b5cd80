// The proof of a result: what was moved, what was lost, and a digest of every byte. It has one line
// per tensor and per file, however many tiles there are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// kept + lost + out_of_range + damaged is the number of elements.
struct TensorCertificate {
  std::string fqn;
  std::int64_t kept = 0;
  std::int64_t lost = 0;
  std::vector<Box> lost_boxes;
  std::int64_t items = 0;  // number of tiles
  // digest_of_items() before and after the repair; the two are equal if only boxes were relabelled.
  // `before` covers the source's items that were kept unchanged; empty if none were.
  std::string before, after;
  std::string tiles;              // digest_of_tiles()
  Extents shape;                  // after the repair
  std::string renamed_from = {};  // FQN before the repair, if it was another
  // Source of the values in lost elements: "zero", "cast", "from"; empty if nothing is lost or for
  // a hole of the source. `fill_from` is a tensor, `fill_checkpoint` its checkpoint (for "from").
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
  std::string dtype = {};
  bool is_cast = false;  // true: the values were rounded to this dtype
  // Number of elements in rows at the end of the source's tensor that are padding by their bytes.
  // They are left out and do not count as lost.
  std::int64_t padding = 0;
  // Number of cast elements that the dtype cannot represent (is_out_of_range in
  // core/tensor/convert.h): they became an infinity, NaN or the largest number. Elements in lost
  // boxes count as lost instead.
  std::int64_t out_of_range = 0;
  // Number of elements in copied tiles that were damaged in the source: their bytes do not match
  // their saved checksum, or belong to another tile. `damage` describes the first.
  std::int64_t damaged = 0;
  std::string damage = {};
};

// Any other entry, by the hash of its item.
struct ObjectCertificate {
  std::string fqn;
  std::string item;         // XXH3-128 of its item; empty if it has none
  std::string damage = {};  // like TensorCertificate::damage
};

// A file next to the certificate: its size, and the hash of its bytes outside items. Together with
// the item hashes that certifies every byte without reading any twice.
struct FileCertificate {
  std::string path;
  std::uint64_t size = 0;
  std::string rest;
  std::string items = {};  // digests_of_files(); empty if it has no tile
};

// A non-tensor entry that now has another entry's value.
struct EntryCertificate {
  std::string fqn;
  std::string from;
  std::string item;  // XXH3-128 of its item now
};

struct Certificate {
  bool lossless = true;
  std::string source;   // as opened
  std::string version;  // of Shardwright
  std::vector<Operation> operations;
  std::vector<TensorCertificate> tensors;  // all tensors of the checkpoint, changed or not
  std::vector<EntryCertificate> entries;   // only those that changed
  std::vector<ObjectCertificate> objects = {};
  std::vector<FileCertificate> files = {};
  // For a result of steps: the steps as text, FQNs of source entries that are not in the result,
  // and the number of elements that were cut off.
  std::vector<std::string> steps = {}, dropped = {};
  std::int64_t trimmed = 0;
  // FQNs of source entries and tensors of which only the lowest rank's value was copied although
  // another rank had another one.
  std::vector<std::string> of_other_ranks = {};
  // Parts of the source that are neither tensors nor entries and are not in the result: "_metadata
  // of the state dict", "config.json".
  std::vector<std::string> left_out = {};
  // The plan that made it from the source, as JSON or compressed (encode_stored_plan()).
  std::string plan = {};
  // After reading: whether its own hash matches.
  enum class Seal : std::uint8_t { kMissing, kIntact, kBroken } seal = Seal::kMissing;
};

// By FQN: number of elements out of range, for tensors that have any.
std::map<std::string, std::int64_t> out_of_range_in(const Certificate& certificate);

std::string certificate_to_json(const Certificate& certificate);  // certificate_text.cpp
Result<Certificate> certificate_from_json(std::string_view json, const std::string& source,
                                          const Progress* progress = nullptr);
// Reads the certificate of a folder.
Result<Certificate> certificate_in(const Directory& directory, const Progress* progress = nullptr);

}  // namespace shw
