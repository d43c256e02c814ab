#include "base/owned_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace perseus {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(OwnedFd, TheLastOwnerCloses) {
  const int fd = open_null();
  int replacement = -1;
  {
    OwnedFd first(fd);
    OwnedFd second(std::move(first));
    EXPECT_TRUE(second.valid());
    EXPECT_EQ(second.get(), fd);
    second = OwnedFd(open_null());
    replacement = second.get();
    EXPECT_FALSE(is_open(fd)) << "replaced";
    EXPECT_TRUE(is_open(replacement));
  }
  EXPECT_FALSE(is_open(replacement));
}

TEST(OwnedFd, AReleasedDescriptorStaysOpen) {
  int fd = -1;
  { fd = OwnedFd(open_null()).release(); }
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
}

TEST(OwnedFd, CloseReportsTheSystemsError) {
  OwnedFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_TRUE(none.close());
  const int fd = open_null();
  OwnedFd file(fd);
  ::close(fd);
  EXPECT_FALSE(file.close());
  EXPECT_EQ(errno, EBADF);
  EXPECT_FALSE(file.valid());
}

}  // namespace
}  // namespace perseus
