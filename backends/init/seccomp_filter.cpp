#include "backends/init/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <unistd.h>

namespace dsec::init {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#else
#error "unknown architecture"
#endif

sock_filter statement(unsigned code, std::uint32_t k) {
  return {static_cast<std::uint16_t>(code), 0, 0, k};
}

sock_filter jump(unsigned code, std::uint32_t k, std::size_t yes, std::size_t no) {
  return {static_cast<std::uint16_t>(BPF_JMP | code | BPF_K), static_cast<std::uint8_t>(yes),
          static_cast<std::uint8_t>(no), k};
}

sock_filter load_number() {
  return statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
}

// Little-endian machines: the low word of a 64-bit argument comes first.
sock_filter load(unsigned argument) {
  return statement(BPF_LD | BPF_W | BPF_ABS,
                   static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument));
}

sock_filter fail_with(int number) {
  return statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number));
}

sock_filter end_process() {
  return statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
}

} // namespace

seccomp_filter::seccomp_filter() {
  program_ = {statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
              jump(BPF_JEQ, own_architecture, 1, 0), end_process(), load_number()};
#if defined(__x86_64__)
  // x32 shares the architecture word and marks the number instead.
  program_.push_back(jump(BPF_JGE, 0x40000000, 0, 1));
  program_.push_back(end_process());
#endif
}

void seccomp_filter::guarded(long number, std::vector<sock_filter> body) {
  // What falls out of the body must find the number in the accumulator again.
  program_.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(number), 0, body.size() + 1));
  program_.insert(program_.end(), body.begin(), body.end());
  program_.push_back(load_number());
}

void seccomp_filter::refuse(long number, int error_number) {
  program_.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(number), 0, 1));
  program_.push_back(fail_with(error_number));
}

void seccomp_filter::refuse_values(long number, unsigned argument,
                                   std::initializer_list<std::uint32_t> values, int error_number) {
  std::vector<sock_filter> body{load(argument)};
  for (auto value : values) {
    body.push_back(jump(BPF_JEQ, value, 0, 1));
    body.push_back(fail_with(error_number));
  }
  guarded(number, std::move(body));
}

void seccomp_filter::allow_only(long number, unsigned argument,
                                std::initializer_list<std::uint32_t> values, int error_number) {
  std::vector<sock_filter> body{load(argument)};
  auto left = values.size();
  for (auto value : values)
    body.push_back(jump(BPF_JEQ, value, left--, 0)); // Over what is left, and over the refusal.
  body.push_back(fail_with(error_number));
  guarded(number, std::move(body));
}

void seccomp_filter::refuse_masked(long number, unsigned argument, std::uint32_t mask,
                                   std::uint32_t value, int error_number) {
  guarded(number, {load(argument), statement(BPF_ALU | BPF_AND | BPF_K, mask),
                   jump(BPF_JEQ, value, 0, 1), fail_with(error_number)});
}

void seccomp_filter::refuse_bits(long number, unsigned argument, std::uint32_t bits,
                                 int error_number) {
  guarded(number, {load(argument), jump(BPF_JSET, bits, 0, 1), fail_with(error_number)});
}

void seccomp_filter::allow_only_where(long number, unsigned a, std::uint32_t value, unsigned b,
                                      std::initializer_list<std::uint32_t> values,
                                      int error_number) {
  std::vector<sock_filter> body{load(a), jump(BPF_JEQ, value, 0, values.size() + 2), load(b)};
  auto left = values.size();
  for (auto allowed : values)
    body.push_back(jump(BPF_JEQ, allowed, left--, 0));
  body.push_back(fail_with(error_number));
  guarded(number, std::move(body));
}

int seccomp_filter::install() {
  program_.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(program_.size()), program_.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
    return errno;
  return 0;
}

} // namespace dsec::init
