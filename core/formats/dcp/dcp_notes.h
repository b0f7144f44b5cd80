// What cannot be used of a .metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/formats/common/pickle.h"
#include "core/model/builder.h"

namespace shw {

// Findings of the rule "bad-record"; the first hundred by name, the rest as a number when it goes.
class RecordNotes {
 public:
  RecordNotes(CheckpointBuilder& builder, std::string file)
      : builder_(builder), file_(std::move(file)) {}
  ~RecordNotes();
  RecordNotes(const RecordNotes&) = delete;
  RecordNotes& operator=(const RecordNotes&) = delete;

  // `subject`: empty for the file; `at`: a byte of it.
  void add(Severity severity, std::string_view subject, std::uint64_t at, std::string cause);

 private:
  CheckpointBuilder& builder_;
  std::string file_;
  std::uint64_t count_ = 0;
};

// Storage records of a training library's own class (OLMo-core's _StorageInfo), which have torch's
// three fields and are read by them; nothing where they are torch's.
std::optional<Finding> own_records(const PickleTree& tree, const std::string& file);

}  // namespace shw
