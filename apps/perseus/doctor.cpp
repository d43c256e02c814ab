// perseus doctor: reports what this machine's GPUs can do for Perseus, and why not more.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "command.h"
#include "interrupt.h"
#include "io/formats/boost_json_text.h"
#include "training/clock_control/daemon_protocol.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/process_state.h"
#include "training/clock_control/start_helper.h"
#include "training/device/ceiling_gpu.h"
#include "training/device/control_path.h"
#include "training/device/examination.h"
#include "training/device/gpu.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct DoctorArguments {
  std::string device;
  double seconds = 3;
  bool test_control = false;
};

/// One GPU, and the results of all queries; a failed query keeps its reason.
struct Patient {
  std::string selector;
  std::optional<device::DeviceError> closed;  ///< it cannot even be opened
  device::GpuIdentity identity;
  device::DeviceResult<std::vector<Megahertz>> clocks = device::DeviceError{};
  device::DeviceResult<Megahertz> clock = device::DeviceError{};
  device::DeviceResult<Watts> power = device::DeviceError{}, limit = device::DeviceError{};
  device::DeviceResult<device::ClockEvents> events = device::DeviceError{};
  device::DeviceResult<device::GpuConditions> conditions = device::DeviceError{};
  device::CounterExamination counter;
  device::ControlPath control;
  std::optional<device::SwitchExamination> switching;  ///< none: not requested
};

Patient examine(const std::string& selector, const DoctorArguments& arguments) {
  Patient patient;
  patient.selector = selector;
  auto gpu = device::open_gpu(selector);
  if (!gpu) {
    patient.closed = gpu.error();
    return patient;
  }
  patient.identity = (*gpu)->identity();
  patient.clocks = (*gpu)->supported_clocks();
  patient.clock = (*gpu)->clock();
  patient.power = (*gpu)->power();
  patient.limit = (*gpu)->power_limit();
  patient.events = (*gpu)->clock_events();
  patient.conditions = (*gpu)->conditions();
  patient.counter = device::examine_counter(**gpu, Seconds(arguments.seconds));
  patient.control = device::control_path(selector);
  return patient;
}

/// Restores the clock if this process ends early, also by SIGKILL: it waits for the lease.
class Guardian {
 public:
  explicit Guardian(const std::string& lease) {
    constexpr const char* longest_test_s = "600";
    const auto program = clock_control::find_helper("");
    if (!program) return;
    if (const auto started = clock_control::spawn_helper(*program, {"--restore", lease, longest_test_s}, {}))
      child_ = *started;
  }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  ~Guardian() {
    constexpr double limit_s = 5;
    if (child_ > 0) clock_control::reap(child_, limit_s);
  }

 private:
  pid_t child_ = 0;
};

/// Holds the lease on the clock, so that the test cannot run beside a job.
device::SwitchExamination test_with_lease(const std::string& selector) {
  device::SwitchExamination refused;
  auto opened = device::open_gpu(selector);
  if (!opened) {
    refused.why = opened.error().message;
    return refused;
  }
  const auto given = device::ceiling_of_environment();
  if (!given) {
    refused.why = given.error().message;
    return refused;
  }
  const Megahertz ceiling = *given;
  const std::unique_ptr<device::Gpu> gpu = device::with_ceiling(std::move(*opened), ceiling);
  std::optional<Guardian> guardian;  // its end waits for the lease's
  auto lease = clock_control::Lease::take(gpu->identity(), selector, 0, ceiling);
  if (!lease) {
    refused.why = lease.error().message;
    return refused;
  }
  if (lease->recorded()) {
    if (const device::DeviceStatus unlocked = clock_control::unlock_patiently(*gpu); !unlocked) {
      refused.why = "a lock that was left behind cannot be given back: " + unlocked.error().message;
      return refused;
    }
    lease->clear();
  }
  guardian.emplace(lease->path());  // before there is anything to restore
  if (const device::DeviceStatus recorded = lease->record(); !recorded) {
    refused.why = recorded.error().message;
    return refused;
  }
  constexpr int switches = 40;
  device::SwitchExamination seen =
      device::examine_switching(*gpu, switches, [] { return !InterruptGuard::interrupted(); });
  // Tries again, to unlock the GPU; the test has failed in any case.
  const bool unlocked = seen.restored || !seen.touched || clock_control::unlock_patiently(*gpu).ok();
  if (unlocked) lease->clear();
  return seen;
}

/// Changes clocks: only on request, on a GPU that no other process uses, one at a time.
device::SwitchExamination test_control(const Patient& patient) {
  device::SwitchExamination refused;
  if (patient.control.selector.empty()) {
    refused.why = "this process has no permission to set its clock";
  } else if (!patient.conditions) {
    refused.why = patient.conditions.error().message;
  } else if (patient.conditions->other_processes > 0) {
    refused.why = "other processes compute on it";
  } else {
    return test_with_lease(patient.control.selector);
  }
  return refused;
}

constexpr std::string_view kByDaemon = "clock daemon";

bool can_be_controlled(const Patient& patient) {
  const bool controlled = !patient.control.selector.empty() || patient.control.kind == kByDaemon;
  return !patient.closed && controlled && patient.clocks;
}

/// Without rights of its own, a training process has those of the node's daemon.
void count_on_daemon(Patient& patient, const std::string& socket) {
  const bool sliced = patient.conditions && patient.conditions->mig;
  if (patient.closed || !patient.control.selector.empty() || sliced) return;
  patient.control = {std::string(kByDaemon), "", "through " + socket + "; " + patient.control.why};
}

std::string milliseconds(Seconds time) { return fmt::format("{:.3g} ms", time.value() * 1e3); }

/// Warnings for users who are about to train on it.
std::vector<std::string> warnings_of(const Patient& patient) {
  std::vector<std::string> warnings;
  if (patient.closed) return warnings;
  if (patient.conditions) {
    const device::GpuConditions& conditions = *patient.conditions;
    if (conditions.mig) warnings.emplace_back("MIG is on: Perseus measures and sets whole GPUs only");
    if (!conditions.persistence) {
      warnings.emplace_back("persistence mode is off: the driver may forget a clock when no process has the GPU open");
    }
    if (conditions.power_smoothing) {
      warnings.emplace_back("power smoothing holds a power floor: lower clocks while waiting save nothing");
    }
    if (conditions.whole_module) warnings.emplace_back("power and energy are those of the module, CPU included");
    if (conditions.other_processes > 0) {
      warnings.push_back(fmt::format("{} other process{} compute{} on it: they share its energy counter and its clock",
                                     conditions.other_processes, conditions.other_processes == 1 ? "" : "es",
                                     conditions.other_processes == 1 ? "s" : ""));
    }
    if (patient.limit && *patient.limit < conditions.default_power_limit) {
      warnings.push_back(fmt::format("power-capped: {:.0f} W, the default is {:.0f} W", patient.limit->value(),
                                     conditions.default_power_limit.value()));
    }
  }
  if (patient.events && patient.events->throttled()) warnings.emplace_back("it is throttled now");
  if (patient.events && patient.clock && patient.clocks && !patient.events->idle && !patient.events->throttled() &&
      !patient.events->sync_boost && *patient.clock < patient.clocks->front()) {
    warnings.push_back(
        fmt::format("it computes at {} of {} MHz and the driver gives no reason: an administrator or a job may have "
                    "locked its clock; PERSEUS_CEILING_MHZ={} keeps that limit",
                    patient.clock->value(), patient.clocks->front().value(), patient.clock->value()));
  }
  if (patient.events && patient.events->sync_boost) warnings.emplace_back("sync boost may override its clock");
  if (!patient.counter.present) {
    warnings.emplace_back("no energy counter: energy has to be integrated from power");
  } else if (!patient.counter.agrees()) {
    warnings.push_back(
        fmt::format("the energy counter shows {:.2g} times what the power sensor does", patient.counter.ratio));
  } else if (patient.counter.changes == 0) {
    warnings.emplace_back("the energy counter did not move");
  }
  return warnings;
}

std::string reasons_of(const device::ClockEvents& events) {
  std::string reasons;
  const auto add = [&](bool is, const char* word) {
    if (is) reasons += (reasons.empty() ? "" : ", ") + std::string(word);
  };
  add(events.power_cap, "the power limit");
  add(events.thermal, "heat");
  add(events.power_brake, "the power brake or hardware slowdown");
  add(events.sync_boost, "sync boost");
  add(events.idle, "idleness");
  return reasons.empty() ? "nothing" : reasons;
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
  if (counter.refresh > Seconds(0)) words += ", every " + milliseconds(counter.refresh) + " (median)";
  if (counter.ratio > 0) words += fmt::format("; {:.2f} of the integrated power", counter.ratio);
  return words;
}

std::string switching_words(const std::optional<device::SwitchExamination>& switching) {
  if (!switching) return "not run: it changes clocks; --test-control allows that";
  if (!switching->touched) return "not run: " + switching->why;
  std::string words =
      fmt::format("{} switches: call p50 {}, p99 {}; until the GPU has the clock p50 {}, p99 {}", switching->switches,
                  milliseconds(switching->call_p50), milliseconds(switching->call_p99),
                  milliseconds(switching->settle_p50), milliseconds(switching->settle_p99));
  if (switching->not_reached > 0) words += fmt::format("; {} not reached in 500 ms", switching->not_reached);
  if (switching->restored) {
    words += fmt::format("; given back, now {} MHz", switching->after.value());
    if (!switching->why.empty()) words += "; FAILED: " + switching->why;
  } else {
    words += switching->touched ? "; NOT given back: " + switching->why : "; FAILED: " + switching->why;
  }
  return words;
}

std::string text_of(const Patient& patient) {
  if (patient.closed) return fmt::format("{}\n  cannot be opened  {}\n", patient.selector, patient.closed->message);
  const device::GpuIdentity& identity = patient.identity;
  std::string text = fmt::format("{}{}\n", patient.selector, identity.simulated ? "   SIMULATED" : "");
  const auto line = [&](std::string_view what, const std::string& words) {
    text += fmt::format("  {:<16}{}\n", what, words);
  };
  const auto yes_or_no = [&](std::string_view what, bool device::GpuConditions::*is) {
    line(what, or_why(patient.conditions, [&](const auto& conditions) { return conditions.*is ? "on" : "off"; }));
  };
  line("name", identity.name + (identity.architecture.empty() ? "" : ", " + identity.architecture));
  line("UUID, bus", fmt::format("{}, {}", identity.uuid, identity.pci_bus_id));
  line("driver", identity.driver);
  line("clocks", or_why(patient.clocks, [](const auto& clocks) {
         return fmt::format("{}, from {} to {} MHz, step {} MHz", clocks.size(), clocks.back().value(),
                            clocks.front().value(), step_of(clocks));
       }));
  line("clock now", or_why(patient.clock, [](Megahertz clock) { return fmt::format("{} MHz", clock.value()); }));
  line("held down by", or_why(patient.events, reasons_of));
  line("power now", or_why(patient.power, [](Watts power) { return fmt::format("{:.1f} W", power.value()); }));
  line("power limit", or_why(patient.limit, [&](Watts limit) {
         const bool known = patient.conditions && patient.conditions->default_power_limit > Watts(0);
         return fmt::format("{:.0f} W", limit.value()) +
                (known ? fmt::format(", default {:.0f} W", patient.conditions->default_power_limit.value()) : "");
       }));
  line("energy counter", counter_words(patient.counter));
  yes_or_no("MIG", &device::GpuConditions::mig);
  yes_or_no("persistence", &device::GpuConditions::persistence);
  yes_or_no("power smoothing", &device::GpuConditions::power_smoothing);
  line("other processes", or_why(patient.conditions, [](const auto& c) { return std::to_string(c.other_processes); }));
  line("control", patient.control.kind + ": " + patient.control.why);
  line("control test", switching_words(patient.switching));
  for (const std::string& warning : warnings_of(patient)) line("WARNING", warning);
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

json::object json_of(const Patient& patient) {
  json::object object{{"device", patient.selector}};
  if (patient.closed) {
    object["error"] = patient.closed->message;
    return object;
  }
  const device::GpuIdentity& identity = patient.identity;
  object["name"] = identity.name;
  object["uuid"] = identity.uuid;
  object["pci_bus_id"] = identity.pci_bus_id;
  object["architecture"] = identity.architecture;
  object["driver"] = identity.driver;
  object["simulated"] = identity.simulated;
  put(object, "clocks", patient.clocks, [](const auto& clocks) {
    return json::object{{"count", clocks.size()},
                        {"maximum_mhz", clocks.front().value()},
                        {"minimum_mhz", clocks.back().value()},
                        {"step_mhz", step_of(clocks)}};
  });
  put(object, "clock_mhz", patient.clock, [](Megahertz clock) { return clock.value(); });
  put(object, "power_w", patient.power, [](Watts power) { return power.value(); });
  put(object, "power_limit_w", patient.limit, [](Watts limit) { return limit.value(); });
  put(object, "clock_events", patient.events, [](const device::ClockEvents& events) {
    return json::object{{"idle", events.idle},
                        {"power_cap", events.power_cap},
                        {"thermal", events.thermal},
                        {"power_brake", events.power_brake},
                        {"sync_boost", events.sync_boost}};
  });
  put(object, "conditions", patient.conditions, [](const device::GpuConditions& conditions) {
    return json::object{{"mig", conditions.mig},
                        {"persistence", conditions.persistence},
                        {"power_smoothing", conditions.power_smoothing},
                        {"whole_module", conditions.whole_module},
                        {"other_processes", conditions.other_processes},
                        {"default_power_limit_w", conditions.default_power_limit.value()}};
  });
  const device::CounterExamination& counter = patient.counter;
  object["energy_counter"] = json::object{{"present", counter.present},
                                          {"why", counter.why},
                                          {"changes", counter.changes},
                                          {"refresh_s", counter.refresh.value()},
                                          {"ratio_to_power", counter.ratio}};
  object["control"] =
      json::object{{"path", patient.control.kind}, {"device", patient.control.selector}, {"why", patient.control.why}};
  object["control_test"] = patient.switching ? json::value(json_of(*patient.switching)) : json::value(nullptr);
  const auto warnings = warnings_of(patient);
  object["warnings"] = json::array(warnings.begin(), warnings.end());
  return object;
}

std::string verdict_of(const std::vector<Patient>& patients) {
  const auto controlled = std::ranges::count_if(patients, can_be_controlled);
  const auto failed = std::ranges::count_if(
      patients, [](const auto& patient) { return patient.switching && !patient.switching->done; });
  if (failed > 0) return fmt::format("the control test failed on {} of {} GPUs", failed, patients.size());
  if (patients.empty()) return "no GPU here: training runs unchanged, Perseus measures and sets nothing";
  if (controlled == 0) return "advice only: Perseus can measure here but not set clocks";
  if (static_cast<std::size_t>(controlled) < patients.size()) {
    return fmt::format("Perseus can set the clocks of {} of {} GPUs", controlled, patients.size());
  }
  return fmt::format("Perseus can measure and set the clocks of {}",
                     patients.size() == 1 ? "this GPU" : fmt::format("all {} GPUs", patients.size()));
}

/// Warnings that hold for every GPU of this machine or container.
std::vector<std::string> machine_warnings(bool daemon) {
  if (daemon || !clock_control::in_pid_namespace()) return {};
  return {
      "this is a container (a PID namespace of its own) without a clock daemon: when its process 1 ends, the kernel "
      "kills the helper too, and a clock may stay locked; run perseus-clockd --daemon on the node"};
}

/// 0: every GPU can be set and passed its test; 69: a clock was not given back; else 1.
int exit_code_of(const std::vector<Patient>& patients) {
  const auto failed = [](const Patient& patient) { return patient.switching && !patient.switching->done; };
  const auto kept = [](const Patient& patient) {
    return patient.switching && patient.switching->touched && !patient.switching->restored;
  };
  if (std::ranges::any_of(patients, kept)) return 69;
  if (patients.empty() || std::ranges::any_of(patients, failed)) return 1;
  return std::ranges::all_of(patients, can_be_controlled) ? 0 : 1;
}

Result<int> run_doctor(const DoctorArguments& arguments, bool as_json) {
  std::vector<device::DriverPresence> drivers = device::examine_drivers();
  const std::string socket = clock_control::daemon_socket("");
  const bool daemon = clock_control::daemon_listens(socket);
  drivers.push_back({"clockd", daemon, daemon ? "daemon at " + socket : "no daemon on this node"});
  std::vector<std::string> selectors{arguments.device};
  if (arguments.device.empty()) {
    selectors = device::find_gpus();
    std::ranges::copy(device::find_failing_gpus(), std::back_inserter(selectors));
  }
  std::vector<std::future<Patient>> under_way;
  for (const std::string& selector : selectors) {
    under_way.push_back(
        std::async(std::launch::async, [&arguments, selector] { return examine(selector, arguments); }));
  }
  std::vector<Patient> patients;
  for (auto& one : under_way) patients.push_back(one.get());
  if (!arguments.device.empty() && patients.front().closed) {
    const device::DeviceError& error = *patients.front().closed;
    const bool no_selector = error.fault == device::DeviceFault::not_supported;
    return Error{no_selector ? ErrorCode::usage : ErrorCode::not_found, error.message};
  }
  if (daemon) {
    for (Patient& patient : patients) count_on_daemon(patient, socket);
  }
  if (arguments.test_control) {
    {
      const InterruptGuard guard;  // gives back a locked clock first
      for (Patient& patient : patients) {
        if (!patient.closed && !InterruptGuard::interrupted()) patient.switching = test_control(patient);
      }
    }
    die_if_interrupted();
  }

  const std::string verdict = verdict_of(patients);
  const std::vector<std::string> warnings = machine_warnings(daemon);
  if (as_json) {
    const json::array warning_list(warnings.begin(), warnings.end());
    json::array driver_list, gpu_list;
    for (const device::DriverPresence& driver : drivers) {
      driver_list.push_back(json::object{{"name", driver.name}, {"present", driver.present}, {"words", driver.words}});
    }
    for (const Patient& patient : patients) gpu_list.push_back(json_of(patient));
    print(formats::json_text(json::object{
              {"drivers", driver_list}, {"gpus", gpu_list}, {"warnings", warning_list}, {"verdict", verdict}}) +
          "\n");
  } else {
    for (const device::DriverPresence& driver : drivers) {
      print(fmt::format("{:<8}  {}{}\n", driver.name, driver.present ? "" : "none: ", driver.words));
    }
    for (const Patient& patient : patients) print("\n" + text_of(patient));
    print("\n");
    for (const std::string& warning : warnings) print("WARNING  " + warning + "\n");
    print(verdict + "\n");
  }
  return exit_code_of(patients);
}

}  // namespace

void add_doctor(CLI::App& app, Command& command) {
  auto* doctor = app.add_subcommand(
      "doctor", "Report what Perseus can measure and set on this machine's GPUs, and what prevents the rest");
  auto arguments = std::make_shared<DoctorArguments>();
  doctor
      ->add_option("--device", arguments->device,
                   "Only this GPU: nvml:WHICH, zeusd:WHICH or amdsmi:WHICH with an index, a UUID or a PCI bus id, or "
                   "simulated:PATH")
      ->type_name("SELECTOR");
  doctor->add_option("--seconds", arguments->seconds, "Longest time to watch the energy counter, in seconds")
      ->capture_default_str()
      ->check(number_within(0, 60, "s"))
      ->type_name("S");
  doctor->add_flag(
      "--test-control", arguments->test_control,
      "Change the clock 40 times, measure the switch latency, and give the clock back; without this option, no "
      "clock changes. Skips GPUs on which other processes compute");
  add_json_flag(*doctor, command);
  doctor->footer(help_footer("  perseus doctor\n  perseus doctor --device nvml:0 --test-control\n") +
                 "   1  no GPU found, a clock that cannot be set from here, or a failed control test\n"
                 "  69  a control test could not give a clock back\n");
  doctor->callback(
      [arguments, &command] { command.run = [arguments, &command] { return run_doctor(*arguments, command.json); }; });
}

}  // namespace perseus::cli
