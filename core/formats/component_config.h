// Compares a folder with the config of its library: diffusers' and timm's config.json,
// open_clip_config.json, and the params.json of Meta and Mistral.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

// kWhole: the folder that the user opened. kComponent: one component of a pipeline. The rules check
// whole folders of transformers; this file checks text encoders that are components.
enum class FolderRole : std::uint8_t { kWhole, kComponent };

// Adds a finding for each size or count that the config contradicts.
std::shared_ptr<const Checkpoint> with_config_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryContents& look,
                                                       FolderRole folder);

}  // namespace shw
