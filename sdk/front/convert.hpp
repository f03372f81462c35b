#pragma once

#include "backends/backend.hpp"
#include "schemas/dsec.capnp.h"
#include "state/event.hpp"
#include "state/records.hpp"
#include "state/reports.hpp"

#include <string>
#include <utility>
#include <vector>

/// Between schemas/dsec.capnp and what it means; for the front and for its clients.

namespace dsec::wire {

using variables = std::vector<std::pair<std::string, std::string>>;

void write(const lease_terms& from, Lease::Builder to);
lease_terms read(Lease::Reader from);

void write(const sandbox_clocks& from, Clocks::Builder to);
sandbox_clocks read(Clocks::Reader from);

void write(const environment& from, Environment::Builder to);
environment read(Environment::Reader from);

/// Without standard input that is streamed.
void write(const exec_spec& from, ExecRequest::Builder to);
exec_spec read(ExecRequest::Reader from);

void write(const sandbox_info& from, SandboxInfo::Builder to);
sandbox_info read(SandboxInfo::Reader from);

void write(const sandbox_stats& from, SandboxStats::Builder to);
sandbox_stats read(SandboxStats::Reader from);

void write(const preempt_report& from, PreemptReport::Builder to);
preempt_report read(PreemptReport::Reader from);

void write(const job_event& from, EventRecord::Builder to);
job_event read(EventRecord::Reader from);

} // namespace dsec::wire
