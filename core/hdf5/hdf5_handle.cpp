#include "core/hdf5/hdf5_handle.h"

#include <hdf5.h>

#include <string_view>

namespace shw {
namespace {

// Extracts the system's message from "errno = 28, error message = 'No space left on device', buf =
// 0x55..".
std::string system_error_text(std::string_view description) {
  constexpr std::string_view kBefore = "error message = '";
  std::size_t at = description.find(kBefore);
  if (at == std::string_view::npos) return {};
  description.remove_prefix(at + kBefore.size());
  return std::string(description.substr(0, description.find('\'')));
}

// Takes only error names; descriptions contain pointers.
herr_t copy_first_error(unsigned, const H5E_error2_t* entry, void* words) {
  auto& text = *static_cast<std::string*>(words);
  if (!text.empty()) return 0;
  char name[64] = "";
  if (H5Eget_msg(entry->min_num, nullptr, name, sizeof name) > 0) text = name;
  std::string system = entry->desc == nullptr ? std::string() : system_error_text(entry->desc);
  if (!system.empty()) text += (text.empty() ? "" : ": ") + system;
  return 0;
}

}  // namespace

static_assert(sizeof(hid_t) == sizeof(std::int64_t));

Hdf5Handle::~Hdf5Handle() {
  close();
}

bool Hdf5Handle::close() {
  return id_ < 0 || H5Idec_ref(release()) >= 0;
}

Error hdf5_error(const std::string& what, const std::string& file, const std::string& object) {
  std::string words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_first_error, &words);
  H5Eclear2(H5E_DEFAULT);
  return {ErrorKind::kIo, words.empty() ? what : what + ": " + words, {file, std::nullopt, object}};
}

void disable_hdf5_messages() {
  // At exit the library would crash retrying failed writes. Files are closed by their
  // owners.
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace shw
