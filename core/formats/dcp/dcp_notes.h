// Reports on unusable parts of a .metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/formats/pickle/pickle.h"
#include "core/model/builder.h"

namespace shw {

// Findings of the rule "bad-record": the first hundred by name, the others as a number on
// destruction.
class RecordFindings {
 public:
  RecordFindings(CheckpointBuilder& builder, std::string file)
      : builder_(builder), file_(std::move(file)) {}
  ~RecordFindings();
  RecordFindings(const RecordFindings&) = delete;
  RecordFindings& operator=(const RecordFindings&) = delete;

  // `subject`: empty for the whole file; `at`: byte offset.
  void add(Severity severity, std::string_view subject, std::uint64_t at, std::string cause);

 private:
  CheckpointBuilder& builder_;
  std::string file_;
  std::uint64_t count_ = 0;
};

// Reports storage records of a training library's own class (OLMo-core's _StorageInfo) with torch's
// three fields. They are read like torch's.
std::optional<Finding> custom_record_finding(const PickleTree& tree, const std::string& file);

}  // namespace shw
