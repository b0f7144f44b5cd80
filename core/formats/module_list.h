// The modules of a sentence-transformers model: modules.json lists their folders, and
// router_config.json those of a Router's branches. The components of a pipeline of diffusers, which
// model_index.json lists.
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

// Empty where there is no modules.json, or none that can be read.
std::vector<ListedModule> listed_modules(const DirectoryLook& look);

// Folders of modules that hold weights. Where modules.json cannot be read, the top folders whose
// name begins with a number.
std::vector<FolderPart> module_parts(const DirectoryLook& look, std::span<const Entry> entries,
                                     std::span<const FormatRow> rows);

// The checkpoint with a finding for each module whose files are not there, or whose weights have
// another shape than its config.json says.
std::shared_ptr<const Checkpoint> with_module_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryLook& look,
                                                       std::span<const FormatRow> rows);

// The same for the components that model_index.json of diffusers names.
std::shared_ptr<const Checkpoint> with_component_findings(std::shared_ptr<const Checkpoint> opened,
                                                          const DirectoryLook& look,
                                                          std::span<const FormatRow> rows);

}  // namespace shw
