// What the pickle of a .metadata holds of that which changed from torch to torch. A torch opens
// only classes that it has, so what a repair writes takes the form of what was there: 2.2 keeps its
// tensor properties in another module, 2.3 knows no StorageMeta, no version before 2.9.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/io/source.h"

namespace shw {

// Made by default: as torch 2.9 to 2.14 write it.
struct PickledForm {
  enum class Field : std::uint8_t { kAbsent, kNone, kGiven };
  std::string properties_module = "torch.distributed.checkpoint.metadata";
  std::string memory_format = "_MEM_FORMAT_ENCODING";                      // in that module
  std::string storage_module = "torch.distributed.checkpoint.filesystem";  // of _StorageInfo
  Field planner_data = Field::kGiven;
  Field storage_meta = Field::kGiven;
  Field version = Field::kGiven;
  std::string version_text = "1.0.0";
  std::vector<std::string> storage_meta_fields = {"checkpoint_id", "save_id", "load_id", "modules"};
};

// Of the .metadata in a directory, or of the first `__R.metadata` where there is none.
Result<PickledForm> read_pickled_form(const Directory& directory);

// As write_dcp_metadata, in that form. An empty checkpoint_id or save_id is None.
Status write_dcp_metadata_as(const PickledForm& form, const DcpMetadata& metadata, ByteSink& sink);

}  // namespace shw
