#include "app/gui/key_codes.h"

#include <GLFW/glfw3.h>
#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("keys: letters follow the layout where it prints Latin ones") {
  CHECK(key_of(GLFW_KEY_Q, "q") == Key::kQ);
  CHECK(key_of(GLFW_KEY_Q, "a") == Key::kA);  // French
  CHECK(key_of(GLFW_KEY_SEMICOLON, "m") == Key::kM);
  CHECK(key_of(GLFW_KEY_M, ",") == Key::kNone);
}

TEST_CASE("keys: letters are in their place where the layout prints others or none") {
  CHECK(key_of(GLFW_KEY_F, "\u0430") == Key::kF);  // Russian
  CHECK(key_of(GLFW_KEY_S, "\u03c3") == Key::kS);  // Greek
  CHECK(key_of(GLFW_KEY_F, nullptr) == Key::kF);
}

TEST_CASE("keys: digits are in their place where the layout prints signs") {
  CHECK(key_of(GLFW_KEY_1, "&") == Key::k1);  // French
  CHECK(key_of(GLFW_KEY_2, "\u00e9") == Key::k2);
  CHECK(key_of(GLFW_KEY_7, "7") == Key::k7);
  CHECK(key_of(GLFW_KEY_F5, nullptr) == Key::kF5);
  CHECK(key_of(GLFW_KEY_MENU, nullptr) == Key::kNone);
}
