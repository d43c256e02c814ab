#include "server/sqlite/wal_checkpointer.h"

namespace perseus::sqlite {
namespace {

constexpr int kEnoughPages = 1000;    // SQLite's own default
constexpr int kTooManyPages = 16000;  // 64 MB: commits never pause, so here they must wait

void checkpoint(sqlite3* database) {
  sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace

WalCheckpointer::WalCheckpointer(const std::string& path, SQLite::Database& writer) : connection_(path) {
  connection_.database().exec("PRAGMA synchronous = FULL");
  sqlite3_wal_hook(writer.getHandle(), &WalCheckpointer::committed, this);
  thread_ = std::thread([this] { work(); });
}

WalCheckpointer::~WalCheckpointer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

int WalCheckpointer::committed(void* self, sqlite3* writer, const char* /*database*/, int pages) {
  if (pages >= kTooManyPages) {
    checkpoint(writer);
  } else if (pages >= kEnoughPages) {
    static_cast<WalCheckpointer*>(self)->want();
  }
  return SQLITE_OK;
}

void WalCheckpointer::want() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_one();
}

void WalCheckpointer::work() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return wanted_ || stopping_; });
      if (stopping_) return;
      wanted_ = false;
    }
    checkpoint(connection_.database().getHandle());
  }
}

}  // namespace perseus::sqlite
