#include "core/repair/proof/verify_words.h"

#include <algorithm>

#include "core/base/encoder.h"

namespace shw {
namespace {

enum class Found : std::uint64_t { kNothing, kSomething, kError };

void add_index(Encoder& payload, const Extents& index) {
  payload.add(std::vector<std::uint64_t>(index.begin(), index.end()));
}

Result<Extents> decode_extents(Decoder& payload) {
  SHW_TRY(auto numbers, payload.numbers());
  return Extents(numbers.begin(), numbers.end());
}

void add_source(Encoder& payload, const SourceReport& against) {
  payload.add(against.source);
  payload.add(static_cast<std::uint64_t>(against.compared));
  payload.add(static_cast<std::uint64_t>(against.tiles_that_differ));
  payload.add(std::uint64_t{against.differences.size()});
  for (const Difference& one : against.differences) {
    payload.add(one.tensor);
    add_index(payload, one.index);
    payload.add(one.file);
    payload.add(one.value);
    payload.add(one.expected);
  }
}

Result<SourceReport> decode_source_report(Decoder& payload) {
  SourceReport against;
  SHW_TRY(against.source, payload.text());
  SHW_TRY(std::uint64_t compared, payload.number());
  SHW_TRY(std::uint64_t tiles, payload.number());
  SHW_TRY(std::uint64_t count, payload.number());
  against.compared = static_cast<std::int64_t>(compared);
  against.tiles_that_differ = static_cast<std::int64_t>(tiles);
  for (std::uint64_t i = 0; i < count; ++i) {
    Difference one;
    SHW_TRY(one.tensor, payload.text());
    SHW_TRY(one.index, decode_extents(payload));
    SHW_TRY(one.file, payload.text());
    SHW_TRY(one.value, payload.text());
    SHW_TRY(one.expected, payload.text());
    against.differences.push_back(std::move(one));
  }
  return against;
}

}  // namespace

Bytes packed(const ComparedChunk& found) {
  Encoder payload;
  const bool differs = found && found->mismatch;
  const Found kind = !found ? Found::kError : differs ? Found::kSomething : Found::kNothing;
  payload.add(static_cast<std::uint64_t>(kind));
  if (kind == Found::kError) payload.add(found.error());
  if (kind == Found::kNothing) payload.add(static_cast<std::uint64_t>(found->out_of_range));
  if (kind == Found::kSomething) {
    add_index(payload, found->mismatch->index);
    payload.add(found->mismatch->value);
    payload.add(found->mismatch->expected);
  }
  return payload.take();
}

Result<ComparedChunk> decode_compared_chunk(BytesView bytes) {
  Decoder payload(bytes);
  SHW_TRY(std::uint64_t kind, payload.number());
  if (kind == static_cast<std::uint64_t>(Found::kNothing)) {
    SHW_TRY(std::uint64_t out_of_range, payload.number());
    return ComparedChunk(ComparedTile{{}, static_cast<std::int64_t>(out_of_range)});
  }
  if (kind != static_cast<std::uint64_t>(Found::kSomething)) {
    SHW_TRY(Error error, payload.error());
    return ComparedChunk(tl::unexpected<Error>(std::move(error)));
  }
  Mismatch mismatch;
  SHW_TRY(mismatch.index, decode_extents(payload));
  SHW_TRY(mismatch.value, payload.text());
  SHW_TRY(mismatch.expected, payload.text());
  return ComparedChunk(ComparedTile{std::move(mismatch)});
}

Bytes packed(const Result<std::optional<Error>>& object) {
  Encoder payload;
  const Found kind = !object ? Found::kError : *object ? Found::kSomething : Found::kNothing;
  payload.add(static_cast<std::uint64_t>(kind));
  if (kind != Found::kNothing) payload.add(object ? **object : object.error());
  return payload.take();
}

Result<Result<std::optional<Error>>> decode_compared_object(BytesView bytes) {
  using Object = Result<std::optional<Error>>;
  Decoder payload(bytes);
  SHW_TRY(std::uint64_t kind, payload.number());
  if (kind == static_cast<std::uint64_t>(Found::kNothing)) return Object();
  SHW_TRY(Error error, payload.error());
  if (kind == static_cast<std::uint64_t>(Found::kSomething)) return Object(std::move(error));
  return Object(tl::unexpected<Error>(std::move(error)));
}

Bytes packed(const VerifyReport& report) {
  Encoder payload;
  payload.add(static_cast<std::uint64_t>(report.outcome));
  for (std::int64_t number :
       {report.tensors, report.kept, report.lost, report.out_of_range, report.damaged})
    payload.add(static_cast<std::uint64_t>(number));
  payload.add(std::uint64_t{report.reasons.size()});
  for (const std::string& reason : report.reasons) payload.add(reason);
  payload.add(std::uint64_t{report.against.has_value()});
  if (report.against) add_source(payload, *report.against);
  return payload.take();
}

Result<VerifyReport> decode_verify_report(BytesView bytes) {
  Decoder payload(bytes);
  VerifyReport report;
  SHW_TRY(std::uint64_t outcome, payload.number());
  report.outcome = static_cast<VerifyReport::Outcome>(
      std::min(outcome, static_cast<std::uint64_t>(VerifyReport::Outcome::kUndecided)));
  for (std::int64_t* number :
       {&report.tensors, &report.kept, &report.lost, &report.out_of_range, &report.damaged}) {
    SHW_TRY(std::uint64_t told, payload.number());
    *number = static_cast<std::int64_t>(told);
  }
  SHW_TRY(std::uint64_t count, payload.number());
  for (std::uint64_t i = 0; i < count; ++i) {
    SHW_TRY(std::string reason, payload.text());
    report.reasons.push_back(std::move(reason));
  }
  SHW_TRY(std::uint64_t has_source, payload.number());
  if (has_source != 0) {
    SHW_TRY(report.against, decode_source_report(payload));
  }
  return report;
}

}  // namespace shw
