#include "fovea/layers/name_matches.h"

namespace fovea {

bool name_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  // The last star, and the end of the characters it matches so far. Each mismatch makes it match one more.
  std::size_t star = pattern.npos, star_end = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace fovea
