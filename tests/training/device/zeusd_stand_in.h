// A stand-in for zeusd: its paths, parameters, checks and answers, in both dialects, over simulated GPUs.
//
// Like zeusd 0.5.0 in everything that a client can observe: parameters in the query (unknown ones: 400), per-GPU
// errors in an "errors" object, 200 for queued commands, connections that may close at any time.
// Threads: one of its own, and one a connection.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simulation/simulated_gpu/simulated_driver.h"

namespace perseus::device {

class ZeusdStandIn {
 public:
  struct Habits {
    bool older = false;             ///< before 0.3: no /discover, JSON bodies
    std::string token;              ///< required, if not empty
    bool controls = true;           ///< gpu-control is among its groups
    int requests_a_connection = 0;  ///< closes the connection without notice after this many; 0: never
    std::string nonsense;           ///< if not empty, answers everything with these bytes
    int failure = 0;                ///< if not 0, HTTP status of every command
    bool silent = false;            ///< reads and never answers
    bool amd = false;               ///< AMD GPUs: no reset of the GPU's clock alone
    std::string name;               ///< of every GPU, if not empty
    std::vector<std::string> pci;   ///< bus ids of the GPUs, if not empty
    bool refuses_maximum = false;   ///< AMD's second limit: 400, and the first one stays
    bool unknown_limits = false;    ///< power limits are UINT64_MAX uW, of which zeusd keeps the low bits in mW
  };

  /// GPUs: state files in the daemon's order, which may differ from other orders.
  ZeusdStandIn(const std::string& socket_path, const std::vector<std::string>& gpu_files, Habits habits);
  ZeusdStandIn(const ZeusdStandIn&) = delete;
  ZeusdStandIn& operator=(const ZeusdStandIn&) = delete;
  ~ZeusdStandIn();

  /// "POST /gpu/set_gpu_locked_clocks?..." and the body, in order of arrival.
  std::vector<std::string> requests();
  [[nodiscard]] int connections() const { return connections_; }
  void set_habits(Habits habits);

 private:
  void serve();
  void serve_connection(int socket);
  std::string answer(const std::string& head, const std::string& body);
  std::string reading(const std::string& path, const std::string& query);
  std::string command(const std::string& path, const std::string& query, const std::string& body);

  std::mutex mutex_;
  Habits habits_;
  std::vector<std::unique_ptr<simulated_gpu::SimulatedDriver>> gpus_;
  std::vector<std::string> requests_;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopping_ = false;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace perseus::device
