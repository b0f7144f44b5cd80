#include "views/panels/palette_search.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/rules/rules.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOfKind = 8;
constexpr std::uint32_t kNamesPerFrame = 8192;
constexpr std::size_t kMinLetters = 2;  // almost every name contains a given single letter

std::optional<std::uint32_t> rank_in(std::string_view text) {
  for (std::string_view word : {"rank ", "rank:"}) {
    if (text.starts_with(word)) text.remove_prefix(word.size());
  }
  std::uint32_t rank = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return rank;
}

void search_findings(PaletteSearch& search, const CheckReport& report) {
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    if (search.findings.size() == kMaxOfKind || i == kNamesPerFrame) return;
    const Finding& finding = report.findings[i];
    const Rule* rule = find_rule(finding.rule);
    const std::string title(rule == nullptr ? std::string_view(finding.rule) : rule->title);
    const std::string subject = finding.subjects.empty() ? std::string() : finding.subjects.front();
    if (has_text_ignoring_case(finding.rule, search.text) ||
        has_text_ignoring_case(title, search.text))
      search.findings.push_back({FoundKind::kFinding, static_cast<std::uint32_t>(i),
                                 subject.empty() ? title : title + ": " + subject, "finding"});
  }
}

void search_tensors(PaletteSearch& search, const Checkpoint& c) {
  const std::uint32_t end = std::min(c.tensor_count(), search.tensors_seen + kNamesPerFrame);
  for (; search.tensors_seen < end && search.tensors.size() < kMaxOfKind; ++search.tensors_seen) {
    const TensorId tensor{search.tensors_seen};
    if (has_text_ignoring_case(c.fqn(tensor), search.text))
      search.tensors.push_back(
          {FoundKind::kTensor, search.tensors_seen, std::string(c.fqn(tensor)), "tensor"});
  }
}

void search_files(PaletteSearch& search, const Checkpoint& c) {
  const std::uint32_t end = std::min(c.file_count(), search.files_seen + kNamesPerFrame);
  for (; search.files_seen < end && search.files.size() < kMaxOfKind; ++search.files_seen) {
    const std::string& path = c.file(FileId{search.files_seen}).path;
    if (has_text_ignoring_case(path, search.text))
      search.files.push_back({FoundKind::kFile, search.files_seen, path, "bytes of the file"});
  }
}

}  // namespace

bool has_text_ignoring_case(std::string_view text, std::string_view wanted) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  auto equal = [&](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), equal) != text.end();
}

const FoundPlace& PaletteSearch::operator[](std::size_t i) const {
  for (const auto* list : {&findings, &tensors, &ranks}) {
    if (i < list->size()) return (*list)[i];
    i -= list->size();
  }
  return files[i];
}

void continue_search(PaletteSearch& search, const Frame& frame, const std::string& text) {
  const Snapshot& s = frame.snapshot;
  const bool same = search.text == text && search.checkpoint.lock() == s.checkpoint &&
                    search.report.lock() == s.report;
  if (!same) {
    search = {};
    search.text = text;
    search.checkpoint = s.checkpoint;
    search.report = s.report;
  }
  if (s.checkpoint == nullptr || text.empty()) return;
  const auto rank = rank_in(text);
  if (!same && rank && frame.digest.mesh != nullptr && *rank < frame.digest.mesh->ranks)
    search.ranks.push_back(
        {FoundKind::kRank, *rank, "rank " + std::to_string(*rank), "its tiles and tensors"});
  if (text.size() < kMinLetters) return;
  if (!same && s.report != nullptr) search_findings(search, *s.report);
  search_tensors(search, *s.checkpoint);
  search_files(search, *s.checkpoint);
}

}  // namespace shw
