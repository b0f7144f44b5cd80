// The table of the evidence keys of findings: each key with the types and the meaning of its value,
// as assets/schema publishes them. Also reads the value of a key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "core/model/finding.h"

namespace shw {

// One bit for each type in EvidenceValue.
enum class EvidenceTypes : std::uint8_t {
  kBool = 1 << 0,
  kInteger = 1 << 1,
  kReal = 1 << 2,
  kText = 1 << 3,
  kExtents = 1 << 4,
  kTexts = 1 << 5,
  kBoxes = 1 << 6,
};
constexpr EvidenceTypes operator|(EvidenceTypes a, EvidenceTypes b) {
  return static_cast<EvidenceTypes>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

struct EvidenceKey {
  std::string_view name;  // snake_case; never built from a name of the checkpoint
  EvidenceTypes types{};  // types that its value may have
  std::string_view says;
};

std::span<const EvidenceKey> evidence_keys();  // by name

std::string_view evidence_description(std::string_view key);  // empty if the table lacks the key

// True if the table has the key, with the type of this value.
bool is_evidence(std::string_view key, const EvidenceValue& value);

// Null if the finding has no such evidence, or if its value has another type.
template <class Value>
const Value* find_evidence(const Finding& finding, std::string_view key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key) return std::get_if<Value>(&value);
  }
  return nullptr;
}

// True for an opening finding about a part of which nothing is known: it is damaged, or the system
// refused to read its file.
inline bool makes_content_unknown(const Finding& finding) {
  return finding.severity == Severity::kError ||
         find_evidence<std::string>(finding, "unread_file") != nullptr;
}

// The tensor of each of the `count` boxes in an evidence, which another one lists ("missing_in" of
// "missing_boxes"); null where the finding does not say.
const std::vector<std::string>* tensor_per_evidence_box(const Finding& finding, std::size_t count);

inline bool has_evidence(const Finding& finding, std::string_view key) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

}  // namespace shw
