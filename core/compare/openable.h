// Checks that the files of a checkpoint can be opened, once each, without reading them.
#pragma once

#include <map>
#include <optional>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

class OpenableFiles {
 public:
  // `checkpoint` must outlive it.
  explicit OpenableFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  // Why the file cannot be opened; empty if it can.
  const std::optional<Error>& error_of(FileId file);
  // The error for the first tile whose file cannot be opened.
  std::optional<Error> error_of(TensorId tensor);

 private:
  const Checkpoint& checkpoint_;
  std::map<FileId, std::optional<Error>> asked_;
};

}  // namespace shw
