#include "core/facts/storage/data_checks.h"

#include <functional>
#include <numeric>
#include <string>

#include "core/base/encoder.h"
#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/formats/file_check.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_check.h"
#include "core/tensor/statistics_counter.h"

namespace shw {
namespace {

void encode_data_check(Encoder& payload, const DataCheck& check) {
  payload.add(static_cast<std::uint64_t>(check.crc));
  payload.add(std::uint64_t{check.expected});
  payload.add(std::uint64_t{check.actual});
  payload.add(check.record);
  payload.add(check.record_offset);
  payload.add(check.record_length);
  std::vector<std::uint64_t> counts;
  if (check.floats) {
    for (std::int64_t one : {check.floats->count, check.floats->nan, check.floats->infinite,
                             check.floats->denormal, check.floats->zero, check.floats->huge})
      counts.push_back(static_cast<std::uint64_t>(one));
  }
  payload.add(counts);
}

Result<DataCheck> decode_data_check_fields(Decoder& payload) {
  DataCheck check;
  SHW_TRY(std::uint64_t crc, payload.number());
  if (crc > static_cast<std::uint64_t>(DataCheck::Crc::kDiffers))
    return fail(ErrorKind::kIo, "another process sent invalid data about an item");
  check.crc = static_cast<DataCheck::Crc>(crc);
  SHW_TRY(std::uint64_t expected, payload.number());
  SHW_TRY(std::uint64_t actual, payload.number());
  check.expected = static_cast<std::uint32_t>(expected);
  check.actual = static_cast<std::uint32_t>(actual);
  SHW_TRY(check.record, payload.text());
  SHW_TRY(check.record_offset, payload.number());
  SHW_TRY(check.record_length, payload.number());
  SHW_TRY(auto counts, payload.numbers());
  if (counts.size() == 6) {
    auto at = [&](std::size_t i) { return static_cast<std::int64_t>(counts[i]); };
    check.floats = FloatCounts{at(0), at(1), at(2), at(3), at(4), at(5)};
  }
  return check;
}

// Encodes a result or its error as text.
std::string in_words(const Result<DataCheck>& check) {
  Encoder payload;
  payload.add(std::uint64_t{check.has_value()});
  if (check)
    encode_data_check(payload, *check);
  else
    payload.add(check.error());
  return packed_text(payload.take());
}

Result<Result<DataCheck>> decode_data_check(const std::string& text) {
  Decoder payload(std::as_bytes(std::span(text)));
  SHW_TRY(std::uint64_t is_good, payload.number());
  if (is_good != 0) {
    SHW_TRY(DataCheck check, decode_data_check_fields(payload));
    return Result<DataCheck>(std::move(check));
  }
  SHW_TRY(Error error, payload.error());
  return Result<DataCheck>(tl::unexpected<Error>(std::move(error)));
}

std::uint64_t length_of(const std::optional<ItemPlace>& item) {
  return item && item->length > 0 ? static_cast<std::uint64_t>(item->length) : 0;
}

// A single process keeps every result as it arrives: as text millions would take hundreds of
// megabytes. `keep` is called once per item, from several threads.
Status run_each_check(Team* team, const std::string& step, const std::vector<std::uint64_t>& costs,
                      Progress* progress,
                      const std::function<Result<DataCheck>(std::size_t)>& check,
                      const std::function<void(std::size_t, Result<DataCheck>)>& keep) {
  if (team == nullptr) {
    return parallel_for_batched(costs, [&](std::size_t i) -> Status {
      if (is_cancelled(progress)) return cancelled_error();
      keep(i, check(i));
      return {};
    });
  }
  MapTask work{step, costs, {}, progress};
  work.find = [&](std::size_t i) -> Result<std::string> {
    Result<DataCheck> found = check(i);
    if (!found && found.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(found).error());
    return in_words(found);
  };
  SHW_TRY(std::vector<std::string> told, map_across_ranks(team, work));
  for (std::size_t i = 0; i < told.size(); ++i) {
    SHW_TRY(Result<DataCheck> one, decode_data_check(told[i]));
    keep(i, std::move(one));
  }
  return {};
}

// Checks a few items and returns the results in order.
Result<std::vector<Result<DataCheck>>> collect_checks(
    Team* team, const std::string& step, const std::vector<std::uint64_t>& costs,
    Progress* progress, const std::function<Result<DataCheck>(std::size_t)>& check) {
  std::vector<Result<DataCheck>> out(costs.size(), DataCheck{});
  SHW_CHECK(run_each_check(team, step, costs, progress, check,
                           [&](std::size_t i, Result<DataCheck> one) { out[i] = std::move(one); }));
  return out;
}

// Results by chunk; items are read in disk order.
Result<ItemDataChecks> check_items(const Checkpoint& checkpoint, const ItemHeaders& headers,
                                   Progress* progress, Team* team, CountedChunks* counted) {
  const std::vector<ChunkId> order = chunks_on_disk(checkpoint);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (ChunkId chunk : order) costs.push_back(length_of(checkpoint.item(chunk)));
  Pool<StatisticsCounter> counters([] { return std::make_unique<StatisticsCounter>(); });
  Pool<ItemCursor> items([&] { return std::make_unique<ItemCursor>(checkpoint, 0); });
  auto check = [&](std::size_t i) -> Result<DataCheck> {
    const ChunkId chunk = order[i];
    const Result<ItemHeader> found = headers[index_of(chunk)];
    const ItemHeader* header = found ? &*found : nullptr;
    if (counted == nullptr || team != nullptr || !has_numbers(checkpoint, chunk))
      return check_item_data(*items.take(), chunk, progress, header);
    auto counter = counters.take();
    ItemNumbers numbers{*counter};
    auto done = check_item_data(*items.take(), chunk, progress, header, &numbers);
    if (done && numbers.sums) counted->add(chunk, *numbers.sums);
    return done;
  };
  ItemDataChecksBuilder out(checkpoint.chunk_count());
  SHW_CHECK(run_each_check(
      team, "read items", costs, progress, check,
      [&](std::size_t i, Result<DataCheck> one) { out.set(index_of(order[i]), std::move(one)); }));
  return out.take();
}

}  // namespace

Result<DataChecks> read_all_data(const Checkpoint& checkpoint, const ItemHeaders& headers,
                                 Progress* progress, Team* team, CountedChunks* counted) {
  if (progress != nullptr)
    progress->begin(Phase::kReadingBytes, checkpoint.tensor_bytes(), /*bytes=*/true);
  DataChecks data;
  SHW_TRY(data.chunks, check_items(checkpoint, headers, progress, team, counted));
  std::vector<std::uint64_t> costs;
  for (const NonTensorEntry& object : checkpoint.objects()) costs.push_back(length_of(object.item));
  SHW_TRY(data.objects, collect_checks(team, "read entries", costs, progress, [&](std::size_t i) {
            return check_object_data(checkpoint, i, progress);
          }));
  SHW_CHECK(check_inlined_data(checkpoint, data.objects, progress));
  if (!has_file_checks(checkpoint)) return data;
  costs.clear();
  for (const FileRow& file : checkpoint.files()) costs.push_back(file.size);
  if (progress != nullptr)
    progress->begin(Phase::kReadingBytes,
                    std::accumulate(costs.begin(), costs.end(), std::uint64_t{0}),
                    /*bytes=*/true);
  SHW_TRY(data.files, collect_checks(team, "read files", costs, progress, [&](std::size_t i) {
            return check_file_data(checkpoint, FileId{static_cast<std::uint32_t>(i)}, progress);
          }));
  return data;
}

}  // namespace shw
