#include "core/repair/proof/verify_words.h"

#include <algorithm>

#include "core/base/packed.h"

namespace shw {
namespace {

enum class Found : std::uint64_t { kNothing, kSomething, kError };

void add_index(Packer& words, const Extents& index) {
  words.add(std::vector<std::uint64_t>(index.begin(), index.end()));
}

Result<Extents> index_from(Unpacker& words) {
  SHW_TRY(auto numbers, words.numbers());
  return Extents(numbers.begin(), numbers.end());
}

void add_source(Packer& words, const SourceReport& against) {
  words.add(against.source);
  words.add(static_cast<std::uint64_t>(against.compared));
  words.add(static_cast<std::uint64_t>(against.tiles_that_differ));
  words.add(std::uint64_t{against.differences.size()});
  for (const Difference& one : against.differences) {
    words.add(one.tensor);
    add_index(words, one.index);
    words.add(one.file);
    words.add(one.value);
    words.add(one.expected);
  }
}

Result<SourceReport> source_from(Unpacker& words) {
  SourceReport against;
  SHW_TRY(against.source, words.text());
  SHW_TRY(std::uint64_t compared, words.number());
  SHW_TRY(std::uint64_t tiles, words.number());
  SHW_TRY(std::uint64_t count, words.number());
  against.compared = static_cast<std::int64_t>(compared);
  against.tiles_that_differ = static_cast<std::int64_t>(tiles);
  for (std::uint64_t i = 0; i < count; ++i) {
    Difference one;
    SHW_TRY(one.tensor, words.text());
    SHW_TRY(one.index, index_from(words));
    SHW_TRY(one.file, words.text());
    SHW_TRY(one.value, words.text());
    SHW_TRY(one.expected, words.text());
    against.differences.push_back(std::move(one));
  }
  return against;
}

}  // namespace

Bytes packed(const ComparedChunk& found) {
  Packer words;
  const bool differs = found && found->mismatch;
  const Found kind = !found ? Found::kError : differs ? Found::kSomething : Found::kNothing;
  words.add(static_cast<std::uint64_t>(kind));
  if (kind == Found::kError) words.add(found.error());
  if (kind == Found::kNothing) words.add(static_cast<std::uint64_t>(found->out_of_range));
  if (kind == Found::kSomething) {
    add_index(words, found->mismatch->index);
    words.add(found->mismatch->value);
    words.add(found->mismatch->expected);
  }
  return words.take();
}

Result<ComparedChunk> unpacked_chunk(BytesView bytes) {
  Unpacker words(bytes);
  SHW_TRY(std::uint64_t kind, words.number());
  if (kind == static_cast<std::uint64_t>(Found::kNothing)) {
    SHW_TRY(std::uint64_t out_of_range, words.number());
    return ComparedChunk(ComparedTile{{}, static_cast<std::int64_t>(out_of_range)});
  }
  if (kind != static_cast<std::uint64_t>(Found::kSomething)) {
    SHW_TRY(Error error, words.error());
    return ComparedChunk(tl::unexpected<Error>(std::move(error)));
  }
  Mismatch mismatch;
  SHW_TRY(mismatch.index, index_from(words));
  SHW_TRY(mismatch.value, words.text());
  SHW_TRY(mismatch.expected, words.text());
  return ComparedChunk(ComparedTile{std::move(mismatch)});
}

Bytes packed(const Result<std::optional<Error>>& object) {
  Packer words;
  const Found kind = !object ? Found::kError : *object ? Found::kSomething : Found::kNothing;
  words.add(static_cast<std::uint64_t>(kind));
  if (kind != Found::kNothing) words.add(object ? **object : object.error());
  return words.take();
}

Result<Result<std::optional<Error>>> unpacked_object(BytesView bytes) {
  using Object = Result<std::optional<Error>>;
  Unpacker words(bytes);
  SHW_TRY(std::uint64_t kind, words.number());
  if (kind == static_cast<std::uint64_t>(Found::kNothing)) return Object();
  SHW_TRY(Error error, words.error());
  if (kind == static_cast<std::uint64_t>(Found::kSomething)) return Object(std::move(error));
  return Object(tl::unexpected<Error>(std::move(error)));
}

Bytes packed(const VerifyReport& report) {
  Packer words;
  words.add(static_cast<std::uint64_t>(report.outcome));
  for (std::int64_t number :
       {report.tensors, report.kept, report.lost, report.out_of_range, report.damaged})
    words.add(static_cast<std::uint64_t>(number));
  words.add(std::uint64_t{report.reasons.size()});
  for (const std::string& reason : report.reasons) words.add(reason);
  words.add(std::uint64_t{report.against.has_value()});
  if (report.against) add_source(words, *report.against);
  return words.take();
}

Result<VerifyReport> unpacked_report(BytesView bytes) {
  Unpacker words(bytes);
  VerifyReport report;
  SHW_TRY(std::uint64_t outcome, words.number());
  report.outcome = static_cast<VerifyReport::Outcome>(
      std::min(outcome, static_cast<std::uint64_t>(VerifyReport::Outcome::kUndecided)));
  for (std::int64_t* number :
       {&report.tensors, &report.kept, &report.lost, &report.out_of_range, &report.damaged}) {
    SHW_TRY(std::uint64_t told, words.number());
    *number = static_cast<std::int64_t>(told);
  }
  SHW_TRY(std::uint64_t count, words.number());
  for (std::uint64_t i = 0; i < count; ++i) {
    SHW_TRY(std::string reason, words.text());
    report.reasons.push_back(std::move(reason));
  }
  SHW_TRY(std::uint64_t has_source, words.number());
  if (has_source != 0) {
    SHW_TRY(report.against, source_from(words));
  }
  return report;
}

}  // namespace shw
