// What is linked statically here speaks over Unix sockets alone. These stand in for the C library's
// resolver, which libkj refers to and which would load plug-ins of the machine into a static
// program.

#include <netdb.h>

extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) {
  return EAI_FAIL;
}

extern "C" void freeaddrinfo(addrinfo*) noexcept {}
