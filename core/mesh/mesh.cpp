#include "core/mesh/mesh.h"
