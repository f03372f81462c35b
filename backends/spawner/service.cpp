#include "backends/spawner/service.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <elf.h>
#include <link.h>

extern "C" const ElfW(Ehdr) __ehdr_start;

namespace dsec::spawner {

namespace {

/// A static program sorts all of its unwind tables at the first exception or stack trace, which
/// costs a millisecond. Done once here, every forked process inherits them sorted.
void sort_unwind_tables() {
  try {
    throw 0;
  } catch (int) {
  }
}

} // namespace

std::string program_version() {
  auto* start = reinterpret_cast<const char*>(&__ehdr_start);
  auto* headers = reinterpret_cast<const ElfW(Phdr)*>(start + __ehdr_start.e_phoff);
  for (int i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (headers[i].p_type != PT_NOTE)
      continue;
    auto* at = start + headers[i].p_offset;
    auto* end = at + headers[i].p_filesz;
    while (at + sizeof(ElfW(Nhdr)) < end) {
      auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      auto* name = at + sizeof *note;
      auto* bytes = name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::strcmp(name, "GNU") == 0) {
        std::string text;
        for (std::uint32_t k = 0; k < note->n_descsz; ++k) {
          constexpr const char* digits = "0123456789abcdef";
          text += digits[static_cast<unsigned char>(bytes[k]) >> 4];
          text += digits[bytes[k] & 15];
        }
        return text;
      }
      at = bytes + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return "unknown";
}

service::service(machine& on, const options& chosen, journal& to)
  : on_{on},
    chosen_{chosen},
    log_{to},
    clients_{loop_},
    networks_{chosen.warm},
    sweeper_{on},
    table_{on,
           chosen.blanks,
           loop_,
           networks_,
           sweeper_,
           to,
           [this](asker who, const error* e) {
             answer(who, e ? write_error(who.sequence, *e) : write_done(who.sequence));
           }},
    busy_at_{std::chrono::steady_clock::now()} {}

result<void> service::start() {
  sort_unwind_tables();
  // Reapers whose dsec-init has died come to us, and are reaped with the rest.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGCHLD, SIGTERM, SIGINT})
    sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!loop_.add(signals_.get(), source::signals))
    return errno_error(errno, "watch signals");
  if (auto ok = networks_.start(on_.lock.get()); !ok)
    return ok;
  if (!loop_.add(networks_.socket(), source::networks))
    return errno_error(errno, "watch the worker for networks");
  if (auto ok = sweeper_.start(); !ok)
    return ok;
  if (!loop_.add(sweeper_.socket(), source::sweeper))
    return errno_error(errno, "watch the sweeper");
  table_.adopt();
  table_.refill();
  return clients_.listen(on_.where.run("spawner.sock"), chosen_.group);
}

int service::idle_ms() {
  if (chosen_.idle_exit_s == 0)
    return -1;
  auto now = std::chrono::steady_clock::now();
  if (clients_.count() != 0 || table_.count() != 0)
    busy_at_ = now;
  auto left = std::chrono::seconds{chosen_.idle_exit_s} - (now - busy_at_);
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return ms < 0 ? 0 : static_cast<int>(ms) + 1;
}

result<void> service::run() {
  while (true) {
    int timeout = ending_ ? -1 : idle_ms();
    if (timeout == 0) {
      log_.line("spawner.idle", "for " + std::to_string(chosen_.idle_exit_s) + " s");
      begin_end();
    }
    if (asked_to_go_ && !ending_) {
      // Sandboxes outlive their spawner: the next one adopts them.
      if (table_.count() != 0) {
        log_.line("spawner.left", std::to_string(table_.count()) + " sandboxes");
        return {};
      }
      begin_end();
    }
    if (ending_ && table_.empty())
      return end();
    if (int soon = table_.refill_ms(); soon >= 0 && (timeout < 0 || soon < timeout))
      timeout = soon;
    // One that could not be started is tried again: without its sweeper nothing is ever removed.
    restart_workers();
    constexpr int retry_ms = 100;
    bool missing = networks_.socket() < 0 || sweeper_.socket() < 0;
    if (missing && (timeout < 0 || timeout > retry_ms))
      timeout = retry_ms;
    loop_.wait(timeout, [this](const event& e) { handle(e); });
    table_.refill();
  }
}

void service::begin_end() {
  ending_ = true;
  table_.retire();
}

result<void> service::end() {
  networks_.stop();
  sweeper_.stop();
  auto closed = on_.close();
  log_.line("spawner.ended", closed ? "" : closed.error().message);
  if (ended_for_)
    answer(*ended_for_, closed ? write_done(ended_for_->sequence)
                               : write_error(ended_for_->sequence, closed.error()));
  return closed;
}

void service::handle(const event& e) {
  switch (e.from) {
  case source::listener:
    if (auto why = clients_.accept())
      log_.line("connection.refused", *why);
    break;
  case source::signals: {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) > 0)
      if (info.ssi_signo != SIGCHLD)
        asked_to_go_ = true;
    while (true) {
      auto pid = ::waitpid(-1, nullptr, WNOHANG);
      if (pid <= 0)
        break;
      table_.on_exit(pid);
    }
    break;
  }
  case source::networks:
    if (!networks_.receive())
      restart_workers();
    answer_warm();
    break;
  case source::sweeper: {
    bool alive = true;
    while (auto done = sweeper_.receive(alive))
      table_.on_swept(*done);
    if (!alive)
      restart_workers();
    break;
  }
  case source::connection:
    if (e.what & EPOLLOUT)
      clients_.flush(e.serial);
    if (e.what & (EPOLLIN | EPOLLHUP | EPOLLERR))
      serve(e.serial);
    break;
  case source::report:
    table_.on_report(e.serial);
    break;
  case source::pidfd:
    table_.on_pidfd(e.serial);
    break;
  case source::events:
    table_.on_events(e.serial);
    break;
  }
}

void service::restart_workers() {
  if (networks_.socket() < 0)
    if (auto ok = networks_.start(on_.lock.get()); ok) {
      log_.line("worker.restarted", "networks");
      if (!loop_.add(networks_.socket(), source::networks))
        networks_.stop();
    }
  if (sweeper_.socket() < 0)
    if (auto ok = sweeper_.start(); ok) {
      log_.line("worker.restarted", "sweeper");
      if (!loop_.add(sweeper_.socket(), source::sweeper))
        sweeper_.stop();
    }
}

void service::serve(std::uint64_t connection) {
  // A few at a time, so that one busy client does not shut out the others.
  for (int i = 0; i < 16; ++i) {
    auto datagram = clients_.receive(connection);
    if (!datagram)
      return;
    auto asked = read_request(*datagram);
    if (!asked) {
      log_.line("connection.dropped", asked.error().message);
      clients_.drop(connection);
      return;
    }
    carry_out(*asked, {connection, asked->sequence});
  }
}

void service::answer(asker to, std::string datagram) {
  clients_.send(to.connection, std::move(datagram));
}

void service::carry_out(const request& asked, asker from) {
  if (!asked.what) {
    answer(from, write_error(from.sequence, asked.what.error()));
    return;
  }
  auto& what = *asked.what;
  if (auto* create = std::get_if<create_order>(&what)) {
    if (ending_)
      answer(from, write_error(from.sequence, {errc::unavailable, "create " + create->id
                                                                    + ": the spawner is ending"}));
    else
      table_.create(*create, from);
  } else if (auto* destroy = std::get_if<destroy_order>(&what)) {
    table_.destroy(*destroy, from);
  } else if (std::holds_alternative<list_order>(what)) {
    answer(from, write_list(from.sequence, table_.list()));
  } else if (std::holds_alternative<hello_order>(what)) {
    answer(from, write_hello(from.sequence, facts()));
  } else if (auto* warm = std::get_if<warm_order>(&what)) {
    networks_.raise(warm->sandboxes);
    warming_.push_back(from);
    answer_warm();
  } else if (std::holds_alternative<shutdown_order>(what)) {
    shut_down(from);
  }
}

void service::answer_warm() {
  if (!networks_.full())
    return;
  for (auto& to : warming_)
    answer(to, write_done(to.sequence));
  warming_.clear();
}

hello_facts service::facts() const {
  return {program_version(),
          ::getpid(),
          slots_max,
          table_.slots_used(),
          static_cast<std::uint32_t>(table_.count()),
          on_.swap_bytes,
          on_.groups.layout().pure_v2() ? "v2" : "v1+v2",
          on_.where.cgroup_root()};
}

void service::shut_down(asker from) {
  if (table_.count() != 0) {
    answer(from, write_error(from.sequence, {errc::invalid_state, "shut down the spawner: "
                                                                    + std::to_string(table_.count())
                                                                    + " sandboxes are there"}));
    return;
  }
  ended_for_ = from;
  begin_end();
}

} // namespace dsec::spawner
