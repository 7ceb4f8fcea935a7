#include "preload/recorder/record/mask.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace vramtrace::record {
namespace {

constexpr std::string_view kMask = "***";

constexpr std::string_view kSecretWords[] = {
    "token",  "key",        "apikey",      "password", "passwd",    "passphrase", "pwd",
    "secret", "credential", "credentials", "auth",     "accesskey", "bearer",     "authorization",
};

// Prefixes of tokens as their issuers document them, and how many characters follow at least.
struct TokenShape {
  std::string_view prefix;
  size_t rest;
};
constexpr TokenShape kTokenShapes[] = {
    {"hf_", 20},  {"sk-", 20},   {"ghp_", 20},   {"gho_", 20}, {"github_pat_", 20},
    {"AKIA", 16}, {"xoxb-", 20}, {"glpat-", 20}, {"eyJ", 40},
};

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
         });
}

bool LooksLikeToken(std::string_view value) {
  for (const TokenShape& shape : kTokenShapes) {
    if (!value.starts_with(shape.prefix) || value.size() < shape.prefix.size() + shape.rest) continue;
    const std::string_view rest = value.substr(shape.prefix.size());
    if (std::all_of(rest.begin(), rest.end(),
                    [](char c) { return IsWordCharacter(c) || c == '_' || c == '-' || c == '.'; })) {
      return true;
    }
  }
  return false;
}

// Length of `scheme://` and position of the @ behind the user information of a URL; npos when there is none.
size_t UserInformationEnd(std::string_view value, size_t* begin) {
  const size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return std::string_view::npos;
  *begin = scheme + 3;
  const size_t host_end = value.find_first_of("/?#", *begin);
  const size_t at = value.substr(0, host_end).rfind('@');
  return at != std::string_view::npos && at > *begin ? at : std::string_view::npos;
}

std::string_view Join(std::string_view a, std::string_view b, std::string_view c, char* room,
                      size_t room_bytes) {
  size_t used = 0;
  for (const std::string_view part : {a, b, c}) {
    const size_t copied = std::min(part.size(), room_bytes - used);
    if (copied == 0) continue;  // an empty part may have no address
    std::memcpy(room + used, part.data(), copied);
    used += copied;
  }
  return {room, used};
}

// NAME=VALUE, or a value alone.
std::string_view MaskValue(std::string_view text, char* room, size_t room_bytes) {
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view value = text.substr(equals + 1);
    if (!value.empty() && (NamesSecret(text.substr(0, equals)) || LooksLikeToken(value))) {
      return Join(text.substr(0, equals + 1), kMask, {}, room, room_bytes);
    }
  }
  if (LooksLikeToken(text)) return kMask;
  size_t begin = 0;
  const size_t at = UserInformationEnd(text, &begin);
  if (at != std::string_view::npos)
    return Join(text.substr(0, begin), kMask, text.substr(at), room, room_bytes);
  return text;
}

}  // namespace

bool NamesSecret(std::string_view name) noexcept {
  // Words are runs of letters and digits; a capital behind a small letter begins one (apiKey, hubToken).
  size_t begin = 0;
  while (begin < name.size()) {
    if (!IsWordCharacter(name[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < name.size() && IsWordCharacter(name[end]) &&
           !(std::isupper(static_cast<unsigned char>(name[end])) != 0 &&
             std::islower(static_cast<unsigned char>(name[end - 1])) != 0)) {
      ++end;
    }
    const std::string_view word = name.substr(begin, end - begin);
    for (const std::string_view secret : kSecretWords) {
      if (EqualIgnoringCase(word, secret)) return true;
    }
    begin = end;
  }
  return false;
}

std::string_view ArgumentMask::Apply(std::string_view argument, char* room, size_t room_bytes) noexcept {
  const bool is_option = argument.starts_with("-");
  if (mask_next_ && !argument.starts_with("--")) {
    mask_next_ = false;
    return kMask;
  }
  mask_next_ = is_option && argument.find('=') == std::string_view::npos && NamesSecret(argument);
  return MaskValue(argument, room, room_bytes);
}

std::string_view MaskVariable(std::string_view variable, char* room, size_t room_bytes) noexcept {
  return MaskValue(variable, room, room_bytes);
}

}  // namespace vramtrace::record
