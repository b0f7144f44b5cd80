#include "core/repair/proof/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/encoder.h"
#include "core/base/team.h"
#include "core/base/words.h"
#include "core/formats/open.h"
#include "core/repair/proof/against.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/certified_folder.h"
#include "core/repair/proof/check_against_certificate.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/proof/verify_words.h"

namespace shw {
namespace {

// Comparison with the source while items are hashed.
struct SourceComparison {
  std::shared_ptr<const Checkpoint> source;
  std::uint64_t memory = kDefaultMemory;
  ExpectedResult expected = {};
  std::optional<Error> why_not = {};  // why the plan cannot be applied
  // By chunk; nullopt for chunks that were not compared.
  std::vector<std::optional<ComparedChunk>> found = {};
};

void add_reasons(VerifyReport& report, VerifyReport::Outcome outcome,
                 const std::vector<std::string>& reasons) {
  if (reasons.empty()) return;
  if (report.outcome == VerifyReport::Outcome::kProved) report.reasons.clear();
  if (report.outcome != VerifyReport::Outcome::kBroken) report.outcome = outcome;
  report.reasons.insert(report.reasons.end(), reasons.begin(), reasons.end());
}

// Adds contradictions in the certificate itself and in the files next to it.
Status add_disagreements(const Certificate& certificate, const Checkpoint& checkpoint,
                         const ItemHashes& hashes, VerifyReport& report, Progress* progress) {
  if (certificate.seal == Certificate::Seal::kBroken) {
    add_reasons(report, VerifyReport::Outcome::kBroken,
                {std::string(kCertificateFile) +
                 ": was changed after it was written: its content_hash does not match"});
  }
  auto found = find_certificate_contradictions(certificate, checkpoint, hashes, progress);
  if (!found) {
    if (found.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(found.error());
    const Error& error = found.error();
    add_reasons(report, VerifyReport::Outcome::kBroken,
                {(error.place.file.empty() ? error.place.tensor : error.place.file) + ": " +
                 error.message});
    return {};
  }
  add_reasons(report, VerifyReport::Outcome::kBroken, found->broken);
  add_reasons(report, VerifyReport::Outcome::kUndecided, found->unknown);
  if (certificate.seal == Certificate::Seal::kMissing) {
    add_reasons(report, VerifyReport::Outcome::kUndecided,
                {std::string(kCertificateFile) + ": has no content_hash: an older version wrote "
                                                 "it, or it was changed, so it is not full proof"});
  }
  return {};
}

// All ranks must expect the same result, because they share the comparison.
Status check_ranks_expect_same(const SourceComparison& run, Team& team) {
  Encoder own;
  own.add(run.why_not ? error_with_place_text(*run.why_not) : std::string());
  for (const std::string& one : run.expected.contradictions) own.add(one);
  const Bytes words = own.take();
  SHW_TRY(auto told, team.allgather(words, "agree on the source"));
  for (std::size_t member = 0; member < told.size(); ++member) {
    if (told[member] == words) continue;
    Decoder theirs(told[member]);
    SHW_TRY(std::string why_not, theirs.text());
    return fail(ErrorKind::kIo,
                fmt::format("worker {} sees another source or result than worker {}{}", member,
                            team.rank(), why_not.empty() ? "" : ": " + why_not),
                {},
                "start all processes with the same arguments, on machines that see the same files");
  }
  return {};
}

// In a team, rank 0 reads the entries.
Status compare_objects(SourceComparison& run, Team* team) {
  if (run.expected.objects == nullptr) return {};
  SHW_TRY(Bytes told, run_on_rank0_and_broadcast(team, "entries", [&]() -> Result<Bytes> {
            return packed(run.expected.objects());
          }));
  SHW_TRY(auto object, decode_compared_object(told));
  if (object && !*object) return {};
  if (object)
    run.expected.contradictions.push_back(error_with_place_text(**object));
  else
    run.why_not = std::move(object).error();
  run.expected.compare = nullptr;
  return {};
}

Status begin_source_run(const Certificate& certificate, const Checkpoint& checkpoint,
                        SourceComparison& run, Team* team, Progress* progress) {
  run.found.resize(checkpoint.chunk_count());
  auto expected = expected_of(certificate, {run.source, checkpoint, run.memory}, progress);
  if (expected)
    run.expected = std::move(*expected);
  else
    run.why_not = std::move(expected).error();
  if (team != nullptr) SHW_CHECK(check_ranks_expect_same(run, *team));
  return compare_objects(run, team);
}

std::int64_t hole_elements_of(const ExpectedResult& expected, const std::string& fqn) {
  auto found = expected.holes.find(fqn);
  return found == expected.holes.end() ? 0 : found->second;
}

// Compares the certificate's numbers with those of the plan: it may claim that more was kept.
std::vector<std::string> wrong_claims(const Certificate& certificate,
                                      const ExpectedResult& expected) {
  std::vector<std::string> broken;
  compare_loss_record(certificate, "the recorded plan", expected.lost, true, broken);
  std::set<std::string_view> lost;
  for (const FilledTensor& tensor : expected.lost.tensors) lost.insert(tensor.fqn);
  for (const TensorCertificate& entry : certificate.tensors) {
    // Filled elements are compared above.
    if (entry.lost != 0 && entry.fill.empty() && !lost.contains(entry.fqn) &&
        entry.lost != hole_elements_of(expected, entry.fqn))
      broken.push_back(entry.fqn + ": the recorded plan loses nothing of it");
    if (entry.is_cast != expected.cast.contains(entry.fqn))
      broken.push_back(entry.fqn + ": the certificate and the recorded plan do not both cast it");
    auto padding = expected.padding.find(entry.fqn);
    // Certificates of old versions lack the padding.
    if (entry.padding != 0 &&
        entry.padding != (padding == expected.padding.end() ? 0 : padding->second))
      broken.push_back(entry.fqn +
                       ": the recorded plan drops a different number of padding elements");
  }
  std::vector<std::string> words;
  for (const Operation& operation : certificate.operations) words.push_back(operation.text);
  words.insert(words.end(), certificate.steps.begin(), certificate.steps.end());
  if (words != expected.words)
    broken.push_back("the certificate lists different operations from the recorded plan");
  if (certificate.dropped != expected.dropped || certificate.trimmed != expected.trimmed)
    broken.push_back(
        "the recorded plan leaves out different entries or elements from the certificate");
  return broken;
}

// Adds the results of all compared tiles.
void add_differences(const Checkpoint& checkpoint, const SourceComparison& run,
                     VerifyReport& report, std::vector<std::string>& unknown) {
  constexpr std::size_t kMaxTold = 20;
  SourceReport& against = *report.against;
  for (std::uint32_t i = 0; i < run.found.size(); ++i) {
    ChunkId chunk{i};
    std::string fqn(checkpoint.fqn(checkpoint.tensor_of(chunk)));
    std::int64_t elements = volume(checkpoint.sizes(chunk)).value_or(0);
    if (elements == 0) continue;
    if (!run.found[i] || !*run.found[i]) {
      if (unknown.size() >= kMaxTold) continue;
      unknown.push_back(
          fqn + ": its chunk at " + to_text(checkpoint.offsets(chunk)) + " was not compared with " +
          against.source + ": " +
          (run.found[i] ? error_with_place_text(run.found[i]->error()) : "it has no item"));
      continue;
    }
    const std::optional<Mismatch>& mismatch = (*run.found[i])->mismatch;
    if (!mismatch) {
      against.compared += elements;
      continue;
    }
    ++against.tiles_that_differ;
    if (against.differences.size() >= kMaxTold) continue;
    auto item = checkpoint.item(chunk);
    against.differences.push_back({std::move(fqn), mismatch->index,
                                   item ? checkpoint.file(item->file).path : std::string(),
                                   mismatch->value, mismatch->expected});
  }
}

// By tensor of the result: number of cast elements out of range; nullopt if the tensor differs or
// was not compared completely.
std::vector<std::optional<std::int64_t>> counted_out_of_range(const Checkpoint& checkpoint,
                                                              const SourceComparison& run) {
  std::vector<std::optional<std::int64_t>> counts(checkpoint.tensor_count(), 0);
  for (std::uint32_t i = 0; i < run.found.size(); ++i) {
    // A tile without elements may have no item to compare.
    if (volume(checkpoint.sizes(ChunkId{i})) == 0) continue;
    auto& count = counts[index_of(checkpoint.tensor_of(ChunkId{i}))];
    const auto& found = run.found[i];
    if (!found || !*found || (*found)->mismatch)
      count.reset();
    else if (count)
      *count += (*found)->out_of_range;
  }
  return counts;
}

// add_differences() reports the tensors that were not compared.
std::vector<std::string> wrong_counts(const Certificate& certificate, const Checkpoint& checkpoint,
                                      const SourceComparison& run) {
  std::vector<std::string> broken;
  const auto counts = counted_out_of_range(checkpoint, run);
  for (const TensorCertificate& entry : certificate.tensors) {
    const auto tensor = checkpoint.find(entry.fqn);
    if (!tensor) continue;
    const auto& count = counts[index_of(*tensor)];
    if (!count || *count == entry.out_of_range) continue;
    broken.push_back(fmt::format(
        "{}: {} of it {} out of range of {} by the recorded plan, and the certificate says {}",
        entry.fqn, plural(static_cast<std::uint64_t>(*count), "element"),
        *count == 1 ? "is" : "are", name(checkpoint.dtype(*tensor)), entry.out_of_range));
  }
  return broken;
}

std::vector<std::string> source_difference_texts(const SourceReport& against) {
  std::vector<std::string> words;
  for (const Difference& one : against.differences) {
    words.push_back(one.tensor + ": element " + to_text(one.index) + " in " + one.file + " is " +
                    one.value + ", and by " + against.source + " it is " + one.expected);
  }
  auto more = static_cast<std::uint64_t>(against.tiles_that_differ) - words.size();
  if (more != 0) words.push_back("and so in " + plural(more, "more chunk"));
  return words;
}

void end_source_run(const Certificate& certificate, const Checkpoint& checkpoint,
                    const SourceComparison& run, VerifyReport& report) {
  constexpr std::size_t kMaxStepsShown = 5;
  report.against.emplace();
  SourceReport& against = *report.against;
  against.source =
      run.source->directory() == nullptr ? "the source" : run.source->directory()->name();
  if (run.why_not) {
    add_reasons(
        report, VerifyReport::Outcome::kUndecided,
        {"was not compared with " + against.source + ": " + error_with_place_text(*run.why_not)});
    return;
  }
  add_reasons(report, VerifyReport::Outcome::kBroken, run.expected.contradictions);
  add_reasons(report, VerifyReport::Outcome::kBroken, wrong_claims(certificate, run.expected));
  if (!run.expected.contradictions.empty()) return;
  std::vector<std::string> unknown;
  bool as_certified = report.outcome == VerifyReport::Outcome::kProved;
  add_differences(checkpoint, run, report, unknown);
  add_reasons(report, VerifyReport::Outcome::kBroken, source_difference_texts(against));
  add_reasons(report, VerifyReport::Outcome::kBroken, wrong_counts(certificate, checkpoint, run));
  if (as_certified && !against.differences.empty()) {
    std::string sources = against.source;
    for (const std::string& other : run.expected.others) sources += " or " + other;
    add_reasons(report, VerifyReport::Outcome::kBroken,
                {"the result has every certified byte, so " + sources +
                 " is not its source or has changed since, or the certificate was rewritten"});
  }
  add_reasons(report, VerifyReport::Outcome::kUndecided, unknown);
  if (report.outcome != VerifyReport::Outcome::kProved) return;
  std::string steps;
  for (std::size_t i = 0; i < std::min(run.expected.words.size(), kMaxStepsShown); ++i)
    steps += (i == 0 ? "" : "; ") + run.expected.words[i];
  if (run.expected.words.size() > kMaxStepsShown)
    steps += fmt::format("; and {} more", run.expected.words.size() - kMaxStepsShown);
  report.reasons.push_back(fmt::format(
      "{} of {}, compared with {}: each matches the recorded plan's result{}{}",
      human_count(static_cast<std::uint64_t>(against.compared)),
      plural(static_cast<std::uint64_t>(report.kept + report.lost + report.out_of_range),
             "element"),
      against.source, steps.empty() ? "" : ": ", steps));
}

// Hashes all items and compares each with its source at once.
Result<Result<ItemHashes>> hash_and_compare(const Checkpoint& checkpoint, SourceComparison& run,
                                            Team* team, Progress* progress) {
  auto compare = [&](ChunkId chunk) -> Status {
    if (run.expected.compare == nullptr) return {};
    auto found = run.expected.compare(chunk, progress);
    if (!found && found.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(found).error());
    run.found[index_of(chunk)].emplace(std::move(found));
    return {};
  };
  if (team == nullptr) return hash_all_items(checkpoint, progress, compare);
  if (run.expected.compare == nullptr) return hash_all_items(checkpoint, progress, *team);
  ItemHashExtras extras;
  extras.find = [&](ChunkId chunk) -> Result<Bytes> {
    SHW_CHECK(compare(chunk));
    return packed(*run.found[index_of(chunk)]);
  };
  extras.receive = [&](ChunkId chunk, BytesView words) -> Status {
    SHW_TRY(ComparedChunk found, decode_compared_chunk(words));
    run.found[index_of(chunk)].emplace(std::move(found));
    return {};
  };
  return hash_all_items(checkpoint, progress, *team, extras);
}

// Makes a proved result undecided if elements are in no chunk: their value cannot be proved.
void report_holes(const std::vector<std::string>& holes, VerifyReport& report) {
  if (holes.empty() || report.outcome != VerifyReport::Outcome::kProved) return;
  report.outcome = VerifyReport::Outcome::kUndecided;
  report.reasons.insert(report.reasons.begin(), holes.begin(), holes.end());
}

// Reports bytes that equal the source's, but were already damaged there.
void report_damage(const Certificate& certificate, VerifyReport& report) {
  constexpr std::size_t kMaxTold = 20;
  std::vector<std::string> reasons;
  std::size_t damaged = 0;
  for (const TensorCertificate& entry : certificate.tensors) {
    if (entry.damage.empty() || ++damaged > kMaxTold) continue;
    reasons.push_back(entry.fqn + ": " + entry.damage +
                      ": it cannot be proved that its values are those that were saved");
  }
  if (damaged > kMaxTold)
    reasons.push_back("the same holds for " + plural(damaged - kMaxTold, "more tensor"));
  add_reasons(report, VerifyReport::Outcome::kUndecided, reasons);
}

// Combines all checks into the verdict.
Result<VerifyReport> judge(const Certificate& certificate, const Checkpoint& checkpoint,
                           const Result<ItemHashes>& hashes, const SourceComparison& run,
                           Progress* progress) {
  VerifyReport report;
  if (!hashes) {
    if (hashes.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(hashes.error());
    // A missing or truncated file breaks the proof, but does not prevent a verdict.
    const Error& error = hashes.error();
    report.outcome = VerifyReport::Outcome::kBroken;
    report.reasons = {error.place.tensor + " in " + error.place.file + ": " + error.message};
    return report;
  }
  std::vector<std::string> holes;
  report = check_against_certificate(certificate, checkpoint, *hashes, holes);
  SHW_CHECK(add_disagreements(certificate, checkpoint, *hashes, report, progress));
  if (run.source != nullptr) end_source_run(certificate, checkpoint, run, report);
  report_holes(holes, report);
  report_damage(certificate, report);
  return report;
}

// Verdict if the certificate could not be read: broken if it is not a certificate, undecided if the
// system refuses access or another version wrote it; nullopt if it was read.
std::optional<VerifyReport> verdict_of(const Result<Certificate>& read) {
  if (read) return std::nullopt;
  VerifyReport report;
  if (read.error().kind == ErrorKind::kDamaged) report.outcome = VerifyReport::Outcome::kBroken;
  report.reasons = {error_with_place_text(read.error())};
  return report;
}

// All ranks must reach the same verdict.
Result<std::optional<VerifyReport>> verify_unreadable(const Result<Certificate>& read, Team* team) {
  std::optional<VerifyReport> verdict = verdict_of(read);
  if (team == nullptr) return verdict;
  const Bytes own(1, verdict ? static_cast<std::byte>(verdict->outcome) : std::byte{0xFF});
  SHW_TRY(auto told, team->allgather(own, "read the certificate"));
  if (std::all_of(told.begin(), told.end(), [&](const Bytes& one) { return one == own; }))
    return verdict;
  if (!read) return tl::unexpected<Error>(read.error());
  return fail(ErrorKind::kIo, "another worker cannot read it", {kCertificateFile});
}

}  // namespace

Result<VerifyReport> verify_repair(const std::string& named, Progress* progress, Team* team) {
  const std::string checkpoint_path = folder_that_certifies(named);
  auto checkpoint = open_checkpoint(checkpoint_path, progress);
  SHW_TRY(auto broken,
          verdict_if_unopenable(checkpoint_path, checkpoint ? nullptr : &checkpoint.error(),
                                progress, team));
  if (broken) return std::move(*broken);
  if (!checkpoint) return tl::unexpected<Error>(std::move(checkpoint).error());
  return verify_repair(**checkpoint, progress, nullptr, team);
}

Result<VerifyReport> verify_repair(const Checkpoint& checkpoint, Progress* progress,
                                   std::shared_ptr<const Checkpoint> source, Team* team,
                                   std::uint64_t memory) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  const Directory& directory = *checkpoint.directory();
  VerifyReport report;
  if (directory.stat(kCertificateFile).kind != EntryKind::kFile) {
    report.reasons = {std::string("there is no ") + kCertificateFile +
                      ": nothing records what the checkpoint was before"};
    return report;
  }
  const Result<Certificate> read = certificate_in(directory, progress);
  if (!read && read.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(read.error());
  SHW_TRY(auto unread, verify_unreadable(read, team));
  if (unread) return std::move(*unread);
  const Certificate& certificate = *read;
  std::uint64_t sides = source == nullptr ? 1 : 2;
  if (progress != nullptr) progress->begin(Phase::kVerifying, sides * item_bytes(checkpoint), true);
  SourceComparison run{std::move(source), memory};
  if (run.source != nullptr)
    SHW_CHECK(begin_source_run(certificate, checkpoint, run, team, progress));
  SHW_TRY(auto hashes, hash_and_compare(checkpoint, run, team, progress));
  if (team == nullptr) return judge(certificate, checkpoint, hashes, run, progress);
  // Rank 0 reads everything else.
  SHW_TRY(Bytes told, run_on_rank0_and_broadcast(team, "judge", [&]() -> Result<Bytes> {
            SHW_TRY(VerifyReport found, judge(certificate, checkpoint, hashes, run, progress));
            return packed(found);
          }));
  return decode_verify_report(told);
}

}  // namespace shw
