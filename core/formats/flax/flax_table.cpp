#include "core/formats/flax/flax_table.h"

#include "core/formats/common/codecs.h"
#include "core/formats/flax/flax_open.h"

namespace shw {
namespace {

FileRole flax_file_role(std::string_view file) {
  return file.ends_with(kFlaxSuffix) ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

constexpr Format kFlaxFormat = {
    .name = "flax",
    .title = "Flax (msgpack)",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

// File names are not specific, because datasets and caches use msgpack too.
constexpr FormatRow kFlaxRow = {
    .format = &kFlaxFormat,
    .sign = kFlaxSuffix,
    .recognises = has_flax,
    .open = open_flax,
    .named = flax_file_role,
    .names_are_common = true,
};

}  // namespace shw
