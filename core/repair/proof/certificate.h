// The proof that goes with a result: what was moved, what was lost, and a digest of every byte. A
// line a tensor and a line a file, however many tiles there are.
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

// kept, lost, out_of_range and damaged are all its elements.
struct TensorCertificate {
  std::string fqn;
  std::int64_t kept = 0;
  std::int64_t lost = 0;
  std::vector<Box> lost_boxes;
  std::int64_t items = 0;  // its tiles
  // digest_of_items() of its items before and after: equal for a relabel. Before: of those that
  // came along; empty where none did.
  std::string before, after;
  std::string tiles;              // digest_of_tiles()
  Extents shape;                  // after the repair
  std::string renamed_from = {};  // its name before, where that was another
  // What stands where it is lost: "zero", "cast", "from"; empty where nothing is, or where a hole
  // was there before. `fill_from` names the tensor, `fill_checkpoint` where that lies ("from").
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
  std::string dtype = {};
  bool is_cast = false;  // its values were rounded to this dtype
  // Elements of rows at its end that the source had beyond this shape, and that were padding by
  // their bytes: left out, and not lost.
  std::int64_t padding = 0;
  // Elements of a tensor that was cast whose number the dtype cannot say (is_out_of_range in
  // core/tensor/convert.h): an infinity, NaN or its largest number stands there. Those in lost
  // boxes count as lost.
  std::int64_t out_of_range = 0;
  // Elements of tiles that came along as they lay, and that were damaged there already: their
  // bytes do not match the checksum that they were saved with, or are those of another tile.
  // `damage` says the first.
  std::int64_t damaged = 0;
  std::string damage = {};
};

// Every other entry: its item as it lies there.
struct ObjectCertificate {
  std::string fqn;
  std::string item;         // XXH3-128; empty where it has none
  std::string damage = {};  // as of a tensor
};

// Every file beside the certificate: its size, and the hash of what is in it and in no item. So
// that with the hashes of the items every byte is certified, and none is read twice.
struct FileCertificate {
  std::string path;
  std::uint64_t size = 0;
  std::string rest;
  std::string items = {};  // digests_of_files(); empty where it holds no tile
};

// An entry that is no tensor and says now what another one said.
struct EntryCertificate {
  std::string fqn;
  std::string from;
  std::string item;  // XXH3-128 of its item now
};

struct Certificate {
  bool lossless = true;
  std::string source;   // as opened
  std::string version;  // of this program
  std::vector<Operation> operations;
  std::vector<TensorCertificate>
      tensors;  // every tensor of the checkpoint, those that did not change too
  std::vector<EntryCertificate> entries;  // only those that changed
  std::vector<ObjectCertificate> objects = {};
  std::vector<FileCertificate> files = {};
  // Of what was made by steps: those, in words; entries of the source that are not there any more;
  // elements that were cut off.
  std::vector<std::string> steps = {}, dropped = {};
  std::int64_t trimmed = 0;
  // Of a source where each rank had its own: entries of it, tensors too, of which only the lowest
  // rank's came along, and another rank had another one.
  std::vector<std::string> of_other_ranks = {};
  // What lies beside the entries of the source and not of this: "_metadata of the state dict",
  // "config.json". No element and no entry is lost with it.
  std::vector<std::string> left_out = {};
  // How it was made of its source: the plan as JSON, or packed (keep_plan()).
  std::string plan = {};
  // Of one that was read: whether it is what was written, by its own hash.
  enum class Seal : std::uint8_t { kMissing, kHolds, kBroken } seal = Seal::kMissing;
};

// Of tensors that have any: how many elements of them are out of range.
std::map<std::string, std::int64_t> out_of_range_in(const Certificate& certificate);

std::string certificate_to_json(const Certificate& certificate);  // certificate_text.cpp
Result<Certificate> certificate_from_json(std::string_view json, const std::string& source,
                                          const Progress* progress = nullptr);
// The one that lies in a folder.
Result<Certificate> certificate_in(const Directory& directory, const Progress* progress = nullptr);

}  // namespace shw
