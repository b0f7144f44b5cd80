// A remote place as a Directory that formats read through.
#pragma once

#include <memory>
#include <string>

#include "core/io/remote/remote_files.h"
#include "core/io/source.h"

namespace shw {

class RemoteDirectory : public Directory {
 public:
  // What kept a question from being answered: stat() can only say "missing".
  virtual Status health() const = 0;
};

// Lists the place first, so that what cannot be reached is an error here.
Result<std::shared_ptr<const RemoteDirectory>> remote_directory(std::string shown,
                                                                std::unique_ptr<RemoteFiles> files);

}  // namespace shw
