#include "core/io/store.h"

namespace shw {

Result<std::unique_ptr<ByteSink>> WritableDirectory::create(const std::string& relative) {
  SHW_TRY(auto file, create_file(relative));
  return make_buffered_sink(std::move(file), relative);
}

Status WritableDirectory::copy_whole_file_in(const std::string& source_path,
                                             const std::string& relative, Progress* progress) {
  SHW_CHECK(copy_file_durably(source_path, relative, nullptr, progress));
  return {};
}

Status write_text(WritableDirectory& folder, const std::string& relative, std::string_view text) {
  SHW_TRY(auto sink, folder.create(relative));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text))));
  return sink->finish();
}

}  // namespace shw
