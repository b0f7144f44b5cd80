#include "core/maps/read_tensors.h"

namespace shw {
namespace {

// Segments that wrappers insert anywhere in names.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                          "_checkpoint_wrapped_module."};

}  // namespace

std::string map_input_name(std::string name) {
  for (std::string_view wrapper : kWrappers) {
    for (std::size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper, at))
      name.erase(at, wrapper.size());
  }
  return name;
}

ReadTensors read_tensors(std::span<const MapTensor> tensors, const std::string& prefix) {
  ReadTensors read;
  read.tensors.reserve(tensors.size());
  for (const MapTensor& tensor : tensors) {
    std::string fqn = map_input_name(tensor.fqn);
    if (!prefix.empty() && fqn.starts_with(prefix)) fqn.erase(0, prefix.size());
    read.names.add(fqn, read.tensors.size());
    if (fqn != tensor.fqn) read.stripped.emplace_back(tensor.fqn, fqn);
    read.tensors.push_back({std::move(fqn), tensor.shape});
  }
  return read;
}

}  // namespace shw
