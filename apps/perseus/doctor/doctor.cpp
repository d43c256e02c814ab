// perseus doctor: reports what this machine's GPUs can do for Perseus, and why not more.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "doctor/examined_gpu.h"
#include "training/clock_control/daemon_protocol.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/process_state.h"
#include "training/clock_control/urgency.h"
#include "training/device/examination.h"
#include "training/device/open_gpu.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct DoctorArguments {
  std::string device;
  double seconds = 3;
  bool test_control = false, beside_others = false;
};

std::string in_ms(Seconds time) { return fmt::format("{:.3g} ms", time.value() * 1e3); }

/// Warnings for users who are about to train on it.
std::vector<std::string> warnings_of(const ExaminedGpu& gpu) {
  std::vector<std::string> warnings;
  if (gpu.closed) return warnings;
  if (gpu.conditions) {
    const device::GpuConditions& conditions = *gpu.conditions;
    if (conditions.mig) {
      warnings.push_back(fmt::format("{}: Perseus measures and sets whole GPUs only",
                                     gpu.identity.amd ? "the card is divided into partitions" : "MIG is on"));
    }
    if (!conditions.persistence) {
      warnings.emplace_back("persistence mode is off: the driver may forget a clock when no process has the GPU open");
    }
    if (conditions.power_smoothing) {
      warnings.emplace_back("power smoothing holds a power floor: lower clocks while waiting save nothing");
    }
    if (!conditions.clocks_source.empty()) {
      warnings.push_back(fmt::format("the driver lists no clocks: these are steps of 15 MHz within its range ({})",
                                     conditions.clocks_source));
    }
    if (conditions.whole_module) warnings.emplace_back("power and energy are those of the module, CPU included");
    if (const std::string others = others_of(conditions); !others.empty()) {
      warnings.push_back(others + ": they share its energy counter and its clock");
    }
    if (gpu.limit && *gpu.limit < conditions.default_power_limit) {
      warnings.push_back(fmt::format("power-capped: {:.0f} W, the default is {:.0f} W", gpu.limit->value(),
                                     conditions.default_power_limit.value()));
    }
  }
  if (gpu.events && gpu.events->throttled()) warnings.emplace_back("it is throttled now");
  if (gpu.lock_holder.empty() && !gpu.identity.amd && gpu.events && gpu.clock && gpu.clocks && !gpu.events->idle &&
      !gpu.events->throttled() && !gpu.events->sync_boost && *gpu.clock < gpu.clocks->front()) {
    warnings.push_back(
        fmt::format("it computes at {} of {} MHz and the driver gives no reason: an administrator or a job may have "
                    "locked its clock; PERSEUS_CEILING_MHZ={} keeps that limit",
                    gpu.clock->value(), gpu.clocks->front().value(), gpu.clock->value()));
  }
  if (gpu.switching && !gpu.switching->remark.empty()) warnings.push_back(gpu.switching->remark);
  if (gpu.events && gpu.events->sync_boost) warnings.emplace_back("sync boost may override its clock");
  if (!gpu.counter.present) {
    warnings.emplace_back("no energy counter: energy is not measured");
  } else if (!gpu.counter.agrees()) {
    warnings.push_back(
        fmt::format("the energy counter shows {:.2g} times what the power sensor does", gpu.counter.ratio));
  } else if (gpu.counter.backward > 0) {
    warnings.push_back(
        fmt::format("the energy counter went back {} of {} times", gpu.counter.backward, gpu.counter.changes));
  } else if (gpu.counter.changes == 0) {
    warnings.emplace_back("the energy counter did not move");
  }
  return warnings;
}

std::string reasons_of(const device::ClockEvents& events) {
  std::vector<std::string_view> reasons;
  const auto add = [&](bool is, std::string_view word) {
    if (is) reasons.push_back(word);
  };
  add(events.power_cap, "the power limit");
  add(events.thermal, "heat");
  add(events.power_brake, "the power brake or hardware slowdown");
  add(events.sync_boost, "sync boost");
  add(events.idle, "idleness");
  return reasons.empty() ? "nothing" : fmt::format("{}", fmt::join(reasons, ", "));
}

/// The distance of most neighbors; clocks are highest first.
int step_of(const std::vector<Megahertz>& clocks) {
  std::map<int, int> count;
  for (std::size_t i = 1; i < clocks.size(); ++i) ++count[clocks[i - 1].value() - clocks[i].value()];
  const auto most = std::ranges::max_element(count, {}, [](const auto& step) { return step.second; });
  return most == count.end() ? 0 : most->first;
}

template <class T, class F>
std::string or_why(const device::DeviceResult<T>& result, F words) {
  return result ? words(*result) : "not known: " + result.error().message;
}

std::string counter_words(const device::CounterExamination& counter) {
  if (!counter.present) return "none: " + counter.why;
  std::string words = counter.changes == 0 ? "present, did not move" : fmt::format("moved {} times", counter.changes);
  if (counter.refresh > Seconds(0)) words += ", every " + in_ms(counter.refresh) + " (median)";
  if (counter.ratio > 0) words += fmt::format("; {:.2f} of the integrated power", counter.ratio);
  return words;
}

std::string switching_words(const std::optional<device::SwitchExamination>& switching) {
  if (!switching) return "not run: it changes clocks; --test-control allows that";
  if (!switching->touched) return "not run: " + switching->why;
  std::string words = fmt::format("{} switches: call p50 {}, p99 {}; until the GPU has the clock p50 {}, p99 {}",
                                  switching->switches, in_ms(switching->call_p50), in_ms(switching->call_p99),
                                  in_ms(switching->settle_p50), in_ms(switching->settle_p99));
  if (switching->not_reached > 0) words += fmt::format("; {} not reached in 500 ms", switching->not_reached);
  if (switching->restored) {
    words += fmt::format("; given back, now {} MHz", switching->after.value());
    if (!switching->why.empty()) words += "; FAILED: " + switching->why;
  } else {
    words += switching->touched ? "; NOT given back: " + switching->why +
                                      "; when that is mended, perseus-clockd --restore gives it back"
                                : "; FAILED: " + switching->why;
  }
  return words;
}

std::string text_of(const ExaminedGpu& gpu) {
  if (gpu.closed) return fmt::format("{}\n  cannot be opened  {}\n", gpu.selector, gpu.closed->message);
  const device::GpuIdentity& identity = gpu.identity;
  std::string text = fmt::format("{}{}\n", gpu.selector, identity.simulated ? "   SIMULATED" : "");
  const auto line = [&](std::string_view what, const std::string& words) {
    text += fmt::format("  {:<16}{}\n", what, words);
  };
  const auto yes_or_no = [&](std::string_view what, bool device::GpuConditions::*is) {
    line(what, or_why(gpu.conditions, [&](const auto& conditions) { return conditions.*is ? "on" : "off"; }));
  };
  line("name", identity.name + (identity.architecture.empty() ? "" : ", " + identity.architecture));
  line("UUID, bus", fmt::format("{}, {}", identity.uuid, identity.pci_bus_id));
  line("driver", identity.driver);
  line("clocks", or_why(gpu.clocks, [](const auto& clocks) {
         return fmt::format("{}, from {} to {} MHz, step {} MHz", clocks.size(), clocks.back().value(),
                            clocks.front().value(), step_of(clocks));
       }));
  line("clock now", or_why(gpu.clock, [](Megahertz clock) { return fmt::format("{} MHz", clock.value()); }));
  line("held down by", or_why(gpu.events, reasons_of));
  line("Perseus's lock", gpu.lock_holder.empty() ? "none" : gpu.lock_holder);
  line("power now", or_why(gpu.power, [](Watts power) { return fmt::format("{:.1f} W", power.value()); }));
  line("power limit", or_why(gpu.limit, [&](Watts limit) {
         const bool known = gpu.conditions && gpu.conditions->default_power_limit > Watts(0);
         return fmt::format("{:.0f} W", limit.value()) +
                (known ? fmt::format(", default {:.0f} W", gpu.conditions->default_power_limit.value()) : "");
       }));
  line("energy counter", counter_words(gpu.counter));
  yes_or_no("MIG", &device::GpuConditions::mig);
  yes_or_no("persistence", &device::GpuConditions::persistence);
  yes_or_no("power smoothing", &device::GpuConditions::power_smoothing);
  line("other processes", or_why(gpu.conditions, [](const auto& c) { return std::to_string(c.other_processes); }));
  line("control", gpu.control.kind + ": " + gpu.control.why);
  line("control test", switching_words(gpu.switching));
  for (const std::string& warning : warnings_of(gpu)) line("WARNING", warning);
  return text;
}

template <class T, class F>
void put(json::object& object, std::string_view key, const device::DeviceResult<T>& result, F value) {
  object[key] = result ? json::value(value(*result)) : json::value(nullptr);
}

json::object json_of(const device::SwitchExamination& switching) {
  return {{"done", switching.done},
          {"why", switching.why},
          {"touched", switching.touched},
          {"switches", switching.switches},
          {"not_reached", switching.not_reached},
          {"call_p50_s", switching.call_p50.value()},
          {"call_p99_s", switching.call_p99.value()},
          {"settle_p50_s", switching.settle_p50.value()},
          {"settle_p99_s", switching.settle_p99.value()},
          {"restored", switching.restored},
          {"clock_after_mhz", switching.after.value()}};
}

json::object json_of(const ExaminedGpu& gpu) {
  json::object object{{"device", gpu.selector}};
  if (gpu.closed) {
    object["error"] = gpu.closed->message;
    return object;
  }
  const device::GpuIdentity& identity = gpu.identity;
  object["name"] = identity.name;
  object["uuid"] = identity.uuid;
  object["pci_bus_id"] = identity.pci_bus_id;
  object["architecture"] = identity.architecture;
  object["driver"] = identity.driver;
  object["simulated"] = identity.simulated;
  put(object, "clocks", gpu.clocks, [](const auto& clocks) {
    return json::object{{"count", clocks.size()},
                        {"maximum_mhz", clocks.front().value()},
                        {"minimum_mhz", clocks.back().value()},
                        {"step_mhz", step_of(clocks)}};
  });
  put(object, "clock_mhz", gpu.clock, [](Megahertz clock) { return clock.value(); });
  put(object, "power_w", gpu.power, [](Watts power) { return power.value(); });
  put(object, "power_limit_w", gpu.limit, [](Watts limit) { return limit.value(); });
  put(object, "clock_events", gpu.events, [](const device::ClockEvents& events) {
    return json::object{{"idle", events.idle},
                        {"power_cap", events.power_cap},
                        {"thermal", events.thermal},
                        {"power_brake", events.power_brake},
                        {"sync_boost", events.sync_boost}};
  });
  object["lock_holder"] = gpu.lock_holder;
  put(object, "conditions", gpu.conditions, [](const device::GpuConditions& conditions) {
    return json::object{{"mig", conditions.mig},
                        {"persistence", conditions.persistence},
                        {"power_smoothing", conditions.power_smoothing},
                        {"whole_module", conditions.whole_module},
                        {"clocks_source", conditions.clocks_source},
                        {"other_processes", conditions.other_processes},
                        {"unknown_processes", conditions.unknown_processes},
                        {"default_power_limit_w", conditions.default_power_limit.value()}};
  });
  const device::CounterExamination& counter = gpu.counter;
  object["energy_counter"] = json::object{{"present", counter.present},
                                          {"why", counter.why},
                                          {"changes", counter.changes},
                                          {"refresh_s", counter.refresh.value()},
                                          {"ratio_to_power", counter.ratio}};
  object["control"] =
      json::object{{"path", gpu.control.kind}, {"device", gpu.control.selector}, {"why", gpu.control.why}};
  object["control_test"] = gpu.switching ? json::value(json_of(*gpu.switching)) : json::value(nullptr);
  const auto warnings = warnings_of(gpu);
  object["warnings"] = json::array(warnings.begin(), warnings.end());
  return object;
}

std::string verdict_of(const std::vector<ExaminedGpu>& gpus) {
  const auto controlled = std::ranges::count_if(gpus, can_be_controlled);
  const auto failed =
      std::ranges::count_if(gpus, [](const auto& gpu) { return gpu.switching && !gpu.switching->done; });
  if (failed > 0) return fmt::format("the control test failed on {} of {} GPUs", failed, gpus.size());
  const bool none_opens = std::ranges::all_of(gpus, [](const auto& gpu) { return gpu.closed.has_value(); });
  if (none_opens) {
    return fmt::format("no GPU {}: training runs unchanged, Perseus measures and sets nothing",
                       gpus.empty() ? "here" : "here can be opened");
  }
  if (controlled == 0) return "advice only: Perseus can measure here but not set clocks";
  if (static_cast<std::size_t>(controlled) < gpus.size()) {
    return fmt::format("Perseus can set the clocks of {} of {} GPUs", controlled, gpus.size());
  }
  return fmt::format("Perseus can measure and set the clocks of {}",
                     gpus.size() == 1 ? "this GPU" : fmt::format("all {} GPUs", gpus.size()));
}

/// Warnings that hold for every GPU of this machine or container, and those of leases.
std::vector<std::string> machine_warnings(bool daemon) {
  std::vector<std::string> warnings = clock_control::expired_leases();
  std::ranges::copy(clock_control::expired_leases_of_others(), std::back_inserter(warnings));
  if (!daemon && clock_control::in_pid_namespace()) {
    warnings.emplace_back(
        "this is a container (a PID namespace of its own) without a clock daemon: when its process 1 ends, the kernel "
        "kills the helper too, and a clock may stay locked; run perseus-clockd --daemon on the node");
  }
  return warnings;
}

/// 0: every GPU can be set and passed its test; 69: a clock was not given back; else 1.
int exit_code_of(const std::vector<ExaminedGpu>& gpus) {
  const auto failed = [](const ExaminedGpu& gpu) { return gpu.switching && !gpu.switching->done; };
  const auto kept = [](const ExaminedGpu& gpu) {
    return gpu.switching && gpu.switching->touched && !gpu.switching->restored;
  };
  if (std::ranges::any_of(gpus, kept)) return 69;
  if (gpus.empty() || std::ranges::any_of(gpus, failed)) return 1;
  return std::ranges::all_of(gpus, can_be_controlled) ? 0 : 1;
}

/// Of a helper that a job of this user starts itself.
device::DriverPresence helper_priority() {
  switch (clock_control::obtainable_urgency()) {
    case clock_control::Urgency::real_time:
      return {"priority", true, "real time: busy programs delay no clock"};
    case clock_control::Urgency::negative_nice:
      return {"priority", true, "nice -10: before other programs of the same session"};
    case clock_control::Urgency::none:
      break;
  }
  return {"priority", false, "a helper of this user has that of other programs: CAP_SYS_NICE gives real time"};
}

Result<int> run_doctor(const DoctorArguments& arguments, bool as_json) {
  std::vector<device::DriverPresence> drivers = device::examine_drivers();
  const std::string socket = clock_control::daemon_socket("");
  const bool daemon = clock_control::daemon_listens(socket);
  drivers.push_back({"clockd", daemon, daemon ? "daemon at " + socket : "no daemon on this node"});
  if (!daemon) drivers.push_back(helper_priority());
  device::FoundGpus found{{arguments.device}, {}};
  if (arguments.device.empty()) found = device::find_all_gpus();
  std::vector<std::future<ExaminedGpu>> under_way;
  for (const std::string& selector : found.selectors) {
    under_way.push_back(std::async(
        std::launch::async, [&arguments, selector] { return examine_gpu(selector, Seconds(arguments.seconds)); }));
  }
  std::vector<ExaminedGpu> gpus;
  for (auto& one : under_way) gpus.push_back(one.get());
  for (device::FailingGpu& failing : found.failing) {
    gpus.emplace_back().selector = failing.selector;
    gpus.back().closed = std::move(failing.error);
  }
  if (!arguments.device.empty() && gpus.front().closed) {
    const device::DeviceError& error = *gpus.front().closed;
    const bool no_selector = error.fault == device::DeviceFault::not_supported;
    return Error{no_selector ? ErrorCode::usage : ErrorCode::not_found, error.message};
  }
  if (daemon) {
    for (ExaminedGpu& gpu : gpus) count_on_daemon(gpu, socket);
  }
  if (arguments.test_control) {
    {
      const InterruptGuard guard;  // gives back a locked clock first
      for (ExaminedGpu& gpu : gpus) {
        if (!gpu.closed && !InterruptGuard::interrupted()) gpu.switching = test_control(gpu, arguments.beside_others);
      }
    }
    die_if_interrupted();
  }

  const std::string verdict = verdict_of(gpus);
  const std::vector<std::string> warnings = machine_warnings(daemon);
  if (as_json) {
    const json::array warning_list(warnings.begin(), warnings.end());
    json::array driver_list, gpu_list;
    for (const device::DriverPresence& driver : drivers) {
      driver_list.push_back(json::object{{"name", driver.name}, {"present", driver.present}, {"words", driver.words}});
    }
    for (const ExaminedGpu& gpu : gpus) gpu_list.push_back(json_of(gpu));
    print_json({{"drivers", driver_list}, {"gpus", gpu_list}, {"warnings", warning_list}, {"verdict", verdict}});
  } else {
    for (const device::DriverPresence& driver : drivers) {
      print(fmt::format("{:<8}  {}{}\n", driver.name, driver.present ? "" : "none: ", driver.words));
    }
    for (const ExaminedGpu& gpu : gpus) print("\n" + text_of(gpu));
    print("\n");
    for (const std::string& warning : warnings) print("WARNING  " + warning + "\n");
    print(verdict + "\n");
  }
  return exit_code_of(gpus);
}

}  // namespace

void add_doctor(CLI::App& app, Command& command) {
  auto* doctor = app.add_subcommand(
      "doctor", "Report what Perseus can measure and set on this machine's GPUs, and what prevents the rest");
  auto arguments = std::make_shared<DoctorArguments>();
  add_value(*doctor, "--device SELECTOR", arguments->device,
            "Only this GPU: nvml:WHICH or zeusd:WHICH with an index, a UUID or a PCI bus id, or simulated:PATH");
  add_default(*doctor, "--seconds S", arguments->seconds, "Longest time to watch the energy counter, in seconds",
              number_within(0, 60, "s"));
  doctor->add_flag(
      "--test-control", arguments->test_control,
      "Change the clock 40 times, measure the switch latency, and give the clock back; without this option, no "
      "clock changes. Skips GPUs on which other processes compute");
  doctor->add_flag(
      "--beside-others", arguments->beside_others,
      "With --test-control: also test GPUs on which other processes compute. Where the driver lists processes "
      "by numbers of another PID namespace (containers), these may be your own");
  doctor->footer(help_footer(kDeviceErrors, "  perseus doctor\n  perseus doctor --device nvml:0 --test-control\n") +
                 "   1  no GPU found, a clock that cannot be set from here, or a failed control test\n"
                 "  69  a control test could not give a clock back\n");
  set_run(*doctor, command, arguments, run_doctor);
}

}  // namespace perseus::cli
