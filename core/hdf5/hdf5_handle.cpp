#include "core/hdf5/hdf5_handle.h"

#include <hdf5.h>

namespace shw {
namespace {

herr_t take_words(unsigned, const H5E_error2_t* entry, void* words) {
  auto& text = *static_cast<std::string*>(words);
  if (text.empty() && entry->desc != nullptr) text = entry->desc;
  return 0;
}

}  // namespace

static_assert(sizeof(hid_t) == sizeof(std::int64_t));

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0) H5Idec_ref(id_);
}

Error hdf5_error(const std::string& what, const std::string& file, const std::string& object) {
  std::string words;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_words, &words);
  H5Eclear2(H5E_DEFAULT);
  return {ErrorKind::kIo, words.empty() ? what : what + ": " + words, {file, std::nullopt, object}};
}

void silence_hdf5() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace shw
