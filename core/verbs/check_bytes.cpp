#include "core/verbs/check_bytes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/in_runs.h"
#include "core/base/parallel.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/item_checks.h"
#include "core/formats/item_pass.h"

namespace shw::verbs {
namespace {

bool has_checksum(const Checkpoint& checkpoint, ChunkId chunk) {
  const ItemReader* reader = checkpoint.codec(chunk).reader;
  return checkpoint.item(chunk) && reader != nullptr && reader->check != nullptr;
}

Error bent_error(const Checkpoint& checkpoint, ChunkId chunk, const DataCheck& check) {
  return Error{ErrorKind::kDamaged,
               "nothing was written: the bytes are not those that were saved (record " +
                   check.record +
                   " does not match its checksum), and in a new file with good checksums nobody "
                   "could tell any more",
               {checkpoint.file(checkpoint.item(chunk)->file).path, check.record_offset,
                std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))},
               "`check --data` names all that is damaged. With --depth headers nobody looks."};
}

}  // namespace

Status check_bytes(const Checkpoint& checkpoint, Team* team, Progress* progress) {
  if (checkpoint.directory() == nullptr) return {};
  std::vector<ChunkId> items = chunks_on_disk(checkpoint);
  std::erase_if(items, [&](ChunkId chunk) { return !has_checksum(checkpoint, chunk); });
  std::vector<std::uint64_t> costs;
  std::uint64_t all = 0;
  for (ChunkId chunk : items) {
    costs.push_back(
        static_cast<std::uint64_t>(std::max<std::int64_t>(checkpoint.item(chunk)->length, 0)));
    all += costs.back();
  }
  if (progress != nullptr) progress->begin(Phase::kReadingBytes, all, /*bytes=*/true);
  Pool<ItemChecks> checks([&] { return std::make_unique<ItemChecks>(checkpoint); });
  auto look = [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    auto seen = checks.take()->check(items[i], progress, nullptr, nullptr);
    if (!seen && seen.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(seen).error());
    if (seen && seen->crc == DataCheck::Crc::kDiffers)
      return tl::unexpected<Error>(bent_error(checkpoint, items[i], *seen));
    return {};
  };
  if (team == nullptr) return each_in_runs(costs, look);
  EachWork work{"check what is read", costs, {}, progress};
  work.find = [&](std::size_t i) -> Result<std::string> {
    SHW_CHECK(look(i));
    return std::string();
  };
  SHW_TRY(std::vector<std::string> told, find_each(team, work));
  static_cast<void>(told);
  return {};
}

}  // namespace shw::verbs
