#include "backends/spawner/journal.hpp"

#include "backends/spawner/descriptor.hpp"

#include <sys/stat.h>

#include <ctime>
#include <fcntl.h>

namespace dsec::spawner {

journal::journal(std::string path, bool foreground)
  : path_{std::move(path)},
    foreground_{foreground} {}

void journal::line(std::string_view event, std::string_view text) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  char seconds[32];
  std::strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
  auto millis = std::to_string(1000 + now.tv_nsec / 1'000'000).substr(1);
  auto whole = std::string{seconds} + '.' + millis + "Z ";
  whole.append(event).append(" ").append(text).append("\n");
  if (foreground_) {
    (void)!::write(2, whole.data(), whole.size());
    return;
  }

  struct stat st {};

  if (::stat(path_.c_str(), &st) == 0 && static_cast<std::uint64_t>(st.st_size) > bytes_max)
    ::rename(path_.c_str(), (path_ + ".1").c_str());
  descriptor file{::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)};
  if (file)
    (void)!::write(file.get(), whole.data(), whole.size());
}

} // namespace dsec::spawner
