// Runs inside a sandbox (or bare): holds dirty anonymous memory and can prove that its contents
// survived.
//
// dsec-bench-hold hold SOCKET MB SEED   fills MB with pseudo-random words (they do not compress),
// then answers
//                                       everyone who connects to SOCKET with one byte: 1 if the
//                                       contents still have the sum they had at first, else 0
// dsec-bench-hold verify SOCKET         asks; exits 0 if they do. Waits until the holder is ready.

#include "bench/waits.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

constexpr auto patience = std::chrono::seconds{60};

sockaddr_un address_of(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

std::uint64_t next_word(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/// Every word counts, with its place.
std::uint64_t sum(const std::uint64_t* words, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i)
    total = (total ^ words[i]) * 0x9e3779b97f4a7c15u + (total >> 29);
  return total;
}

int fail(const char* what) {
  std::perror(what);
  return 1;
}

int hold(const char* path, std::size_t megabytes, std::uint64_t seed) {
  const std::size_t bytes = megabytes << 20;
  auto* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail("mmap");
  auto* words = static_cast<std::uint64_t*>(memory);
  const std::size_t count = bytes / sizeof *words;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t i = 0; i < count; ++i)
    words[i] = next_word(state);
  auto expected = sum(words, count);

  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Under its name once it listens: whoever waits for the name may connect.
  const auto early = std::string{path} + ".new";
  const auto address = address_of(early.c_str());
  if (listener < 0
      || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0
      || ::listen(listener, 8) < 0 || ::rename(early.c_str(), path) < 0)
    return fail(path);
  for (;;) {
    const int caller = ::accept(listener, nullptr, nullptr);
    if (caller < 0)
      continue;
    // Reads it back in large pieces if it was paged out.
    ::madvise(memory, bytes, MADV_WILLNEED);
    const char answer = sum(words, count) == expected ? 1 : 0;
    for (std::size_t i = 0; i < count; ++i)
      words[i] = ~words[i];
    expected = sum(words, count);
    if (::write(caller, &answer, 1) < 0)
      std::perror("write");
    ::close(caller);
  }
}

int verify(const char* path) {
  if (!dsec::bench::wait_for_file(path, dsec::bench::within(patience))) {
    errno = ETIMEDOUT;
    return fail(path);
  }
  const int holder = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(path);
  if (::connect(holder, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
    return fail(path);
  char answer = 0;
  return ::read(holder, &answer, 1) == 1 && answer == 1 ? 0 : 1;
}

} // namespace

int main(int count, char** words) {
  if (count == 5 && std::string_view{words[1]} == "hold")
    return hold(words[2], std::strtoul(words[3], nullptr, 10), std::strtoul(words[4], nullptr, 10));
  if (count == 3 && std::string_view{words[1]} == "verify")
    return verify(words[2]);
  std::fprintf(stderr, "usage: %s hold SOCKET MB SEED | verify SOCKET\n", words[0]);
  return 2;
}
