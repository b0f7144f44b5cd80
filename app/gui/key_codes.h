#pragma once

#include "views/keys.h"

namespace shw {

// The key of a GLFW key code. `printed` is its name of glfwGetKeyName, which may be null. Letters
// and digits follow the user's layout. Where it prints letters outside ASCII there (Cyrillic,
// Greek), or no digits (French), the key counts as the one in its place on a US keyboard.
Key key_of(int key, const char* printed);

}  // namespace shw
