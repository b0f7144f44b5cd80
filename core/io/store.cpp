#include "core/io/store.h"

namespace shw {

Result<std::unique_ptr<ByteSink>> WritableDirectory::create(const std::string& relative) {
  SHW_TRY(auto file, create_file(relative));
  return sink_into(std::move(file), relative);
}

}  // namespace shw
