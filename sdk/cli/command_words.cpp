#include "sdk/cli/command_words.hpp"

namespace dsec {

namespace {

/// Before a word that begins with a bracket, or with itself.
constexpr char mark = '\x01';

} // namespace

std::vector<std::string> marked_words(int count, char** words) {
  std::vector<std::string> all;
  bool of_command = false;
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    const bool marked = of_command && !word.empty() && (word[0] == '[' || word[0] == mark);
    of_command = of_command || word == "exec" || word == "run";
    all.push_back(marked ? mark + word : std::move(word));
  }
  return all;
}

std::string as_typed(std::string word) {
  if (!word.empty() && word[0] == mark)
    word.erase(0, 1);
  return word;
}

} // namespace dsec
