// Whether the files of a checkpoint open: each is asked once, and nothing is read.
#pragma once

#include <map>
#include <optional>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

class OpenableFiles {
 public:
  // `checkpoint` outlives it.
  explicit OpenableFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  // Why the file does not open; nothing where it does.
  const std::optional<Error>& error_of(FileId file);
  // Of the first tile whose file does not open.
  std::optional<Error> error_of(TensorId tensor);

 private:
  const Checkpoint& checkpoint_;
  std::map<FileId, std::optional<Error>> asked_;
};

}  // namespace shw
