// A file descriptor that closes itself.
//
// Errors:  close() reports a delayed error of the system; the destructor ignores it.
// Threads: one owner.
#pragma once

namespace perseus {

class OwnedFd {
 public:
  /// -1: none.
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /// The descriptor, which the caller owns now.
  int release();
  void reset() { close(); }
  /// Closes now; false, with errno, if the system reports an error.
  bool close();

 private:
  int fd_;
};

}  // namespace perseus
