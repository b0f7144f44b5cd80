// The modules of a sentence-transformers model (modules.json lists their folders,
// router_config.json those of a Router's branches), and the components of a diffusers pipeline
// (model_index.json).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/formats/format_row.h"
#include "core/formats/run_folder.h"
#include "core/model/checkpoint.h"

namespace shw {

struct ListedModule {
  std::string folder;  // "2_Dense"; "" for the top
  std::string type;    // "Dense"
  std::string list;    // the file that names it
};

// Empty if modules.json is missing or unreadable.
std::vector<ListedModule> listed_modules(const DirectoryContents& look);

// Folders of modules with weights. If modules.json is unreadable: top folders whose name begins
// with a number.
std::vector<FolderPart> module_parts(const DirectoryContents& look, std::span<const Entry> entries,
                                     std::span<const FormatRow> rows);

// Adds a finding for each module whose files are missing, or whose weights differ in shape from its
// config.json.
std::shared_ptr<const Checkpoint> with_module_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryContents& look,
                                                       std::span<const FormatRow> rows);

// Adds a finding for each component in diffusers' model_index.json whose files are missing or whose
// weights contradict its config.json.
std::shared_ptr<const Checkpoint> with_component_findings(std::shared_ptr<const Checkpoint> opened,
                                                          const DirectoryContents& look,
                                                          std::span<const FormatRow> rows);

}  // namespace shw
