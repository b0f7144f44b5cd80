// The origin of a name in a pickle, and whether creating an object of it has side effects.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

enum class ModuleOrigin : std::uint8_t {
  kPython,     // Python's own library, of any version since 2.7
  kLibrary,    // torch and numpy
  kFramework,  // a package that trains models: its classes are in healthy checkpoints
  kMain,       // the script that runs
  kUnknown,
};
ModuleOrigin module_origin(std::string_view module);

// True if the module starts programs, opens files or connections, or evaluates text.
bool has_side_effects_in_module(std::string_view module);
// True if constructing the class has such effects, whatever module it is imported through (Popen,
// ZipFile), and for dotted names through a module ("os.system").
bool has_side_effects_in_name(std::string_view name);
// True if every part of a dotted name looks like a class: "Outer.Inner".
bool is_path_of_classes(std::string_view name);
// True for the modules of classes that a TorchScript file brings along: "__torch__.torch.nn".
bool is_script_module(std::string_view module);

// True for names of Python, torch and numpy that only construct data.
bool constructs_data_only(std::string_view module, std::string_view name);

}  // namespace shw
