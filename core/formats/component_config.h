// Compares a folder with the config of its library: diffusers' and timm's config.json,
// open_clip_config.json, and the params.json of Meta and Mistral.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

// A folder that was opened for itself, or the component of a pipeline. The rules check a whole
// folder of transformers, and this file the text encoder that is a component.
enum class FolderRole : std::uint8_t { kWhole, kComponent };

// Adds a finding for each size or count that the config contradicts.
std::shared_ptr<const Checkpoint> with_config_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryContents& look,
                                                       FolderRole folder);

}  // namespace shw
